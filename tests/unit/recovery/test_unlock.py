"""Protects that no instance stays locked because Nova was away at the wrong moment."""

from dataclasses import replace

import pytest

from masakari_ng.domain import Correction
from masakari_ng.recovery import cleanup
from tests.unit.recovery.conftest import described, uuid_of

VM, OTHER = uuid_of("vm-1"), uuid_of("vm-2")
CORRECTED = frozenset({Correction.RETRY_UNLOCK})
ALL_REPEATS = 7


def failing(times):
    return [{"match": {"action": "unlock"}, "do": {"status": 503}, "times": times}]


def corrected(recovery, corrections=CORRECTED):
    return replace(recovery, context=replace(recovery.context, corrections=corrections))


@pytest.mark.parametrize(
    ("corrections", "unlocks"), [(frozenset(), 1), (CORRECTED, 3)], ids=["upstream", "corrected"]
)
def test_failed_unlock_is_repeated_where_that_is_corrected(recovery, build, corrections, unlocks):
    build(described("vm-1"), faults=failing(2))

    move = corrected(recovery, corrections).move(recovery.begun("vm-1"))

    assert recovery.frames("vm-1").count("unlock") == unlocks
    assert (move.status, move.message) == ("succeeded", None)
    assert recovery.cloud.servers[VM].locked is (unlocks == 1)


def test_lock_that_stays_is_said_in_the_vmove(recovery, build, caplog):
    build(described("vm-1"), faults=failing(100))

    move = corrected(recovery).move(recovery.begun("vm-1"))

    assert recovery.frames("vm-1").count("unlock") == ALL_REPEATS
    assert recovery.context.clock.now < 90
    assert move.status == "succeeded"
    assert move.message.startswith("The instance is still locked: scripted fault (HTTP 503)")
    assert f"Failed to unlock instance {VM} after evacuation" in caplog.text
    assert recovery.journal == []


def test_lock_that_stays_is_said_beside_the_reason(recovery, build):
    build(described("vm-1", evacuate={"outcome": "error"}), faults=failing(100))

    move = corrected(recovery).move(recovery.begun("vm-1"))

    assert move.message.startswith(
        f"Failed to evacuate instance {VM} The instance is still locked: "
    )


def test_lock_of_a_user_is_never_touched(recovery, build):
    build(described("vm-1", locked=True), faults=failing(1))

    corrected(recovery).move(recovery.begun("vm-1"))

    assert "unlock" not in recovery.frames("vm-1")
    assert recovery.cloud.servers[VM].locked


@pytest.mark.parametrize("status", ["pending", "ongoing", "failed"])
def test_locks_of_a_dead_engine_are_released_in_the_end(recovery, build, status):
    """Without an option: nobody but us knows of them."""
    build(described("vm-1", locked=True), described("vm-2", locked=True), faults=failing(3))
    recovery.begun("vm-1", status, locked=True)
    recovery.begun("vm-2", status, locked=True)

    cleanup.settle(recovery.context)

    assert not any(server.locked for server in recovery.cloud.servers.values())
    assert {move.status for move in recovery.moves} == {"failed"}
    assert recovery.journal == []


def test_what_takes_over_repeats_without_an_option(recovery, build):
    build(described("vm-1", locked=True), faults=failing(2))
    vmove = recovery.begun("vm-1", "succeeded", locked=True)

    recovery.taken_over().move(vmove)

    assert not recovery.cloud.servers[VM].locked


def test_many_locks_are_given_up_after_a_minute_together(recovery, build):
    names = [f"vm-{number}" for number in range(1, 6)]
    build(*(described(name, locked=True) for name in names), faults=failing(1000))
    for name in names:
        recovery.begun(name, locked=True)

    cleanup.settle(recovery.context)

    assert recovery.context.clock.now < 90
    assert all("still locked" in move.message for move in recovery.moves)


class Broken:
    """A Nova whose client has a bug where one instance is to be unlocked."""

    def __init__(self, nova):
        self._nova = nova

    def unlock(self, uuid):
        if uuid == VM:
            raise KeyError("a bug")
        self._nova.unlock(uuid)


def test_one_lock_does_not_keep_the_others(recovery, build):
    build(described("vm-1", locked=True), described("vm-2", locked=True))
    recovery.begun("vm-1", locked=True)
    recovery.begun("vm-2", locked=True)

    cleanup.settle(replace(recovery.context, nova=Broken(recovery.context.nova)))

    assert not recovery.cloud.servers[OTHER].locked
    assert recovery.journal == []
