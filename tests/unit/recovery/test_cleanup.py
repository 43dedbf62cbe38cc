"""Protects that a recovery that is given up leaves no lock, open vmove or journal behind."""

import pytest

from masakari_ng import errors
from masakari_ng.recovery import cleanup
from tests.unit.recovery.conftest import described, uuid_of
from tests.unit.recovery.test_move import SENT

VM1, VM2, VM3 = (uuid_of(f"vm-{number}") for number in range(1, 4))
GIVEN_UP = "Failed reason: the recovery was given up."


@pytest.fixture
def left(recovery, build):
    """One that moves, one that waits and is its user's to unlock, one that has moved."""

    def made(**more):
        build(*(described(f"vm-{number}", locked=True) for number in range(1, 4)), **more)
        recovery.begun("vm-1", "ongoing", **SENT)
        recovery.begun("vm-2")
        recovery.begun("vm-3", "succeeded", **SENT)
        return recovery

    return made


def test_all_that_is_left_of_a_recovery_is_settled(left):
    recovery = left()

    cleanup.settle(recovery.context)

    moves = [(move.status, move.message, bool(move.end_time)) for move in recovery.moves]
    assert moves == [
        ("failed", GIVEN_UP, True),
        ("failed", GIVEN_UP, True),
        ("succeeded", None, False),
    ]
    assert recovery.journal == []
    assert recovery.cloud.requests("unlock") == {VM1: 1, VM3: 1}
    assert recovery.cloud.servers[VM2].locked


@pytest.mark.parametrize(("status", "unlocks"), [(404, 1), (503, 2)])
def test_a_refused_unlock_is_repeated_unless_the_instance_is_gone(left, status, unlocks):
    match = {"action": "unlock"}
    recovery = left(faults=[{"match": match, "times": 1, "do": {"status": status}}])

    cleanup.settle(recovery.context)

    assert recovery.journal == []
    assert sorted(recovery.cloud.requests("unlock").values()) == [1, unlocks]


def test_without_the_claim_nothing_is_settled(left):
    recovery = left()
    before = (recovery.moves, recovery.journal)
    recovery.taken_over()

    with pytest.raises(errors.ClaimLost):
        cleanup.settle(recovery.context)

    assert (recovery.moves, recovery.journal) == before
    assert recovery.frames("vm-1") == []
