"""Protects that one attempt evacuates no instance twice because a look at it had failed."""

from datetime import timedelta

import pytest

from masakari_ng.db import vmoves
from tests.unit.recovery.conftest import described, uuid_of

VM = uuid_of("vm-1")
GETS = {"method": "GET", "path": "/servers/1"}
FIRST = ["GET", "GET", "lock", "evacuate", "GET", "unlock"]


def fail_a_poll(build, **state):
    """The first look after the evacuation fails; Nova goes on with it."""
    build(
        described("vm-1", evacuate={"polls": 4}, **state),
        realistic=True,
        services=[{"host": "compute-1", "state": "down"}, {"host": "compute-2"}],
        faults=[{"match": GETS, "skip": 2, "times": 1, "do": {"status": 503}}],
    )


@pytest.mark.parametrize("state", ["active", "stopped"])
def test_next_workflow_waits_for_the_evacuation_that_is_under_way(recovery, build, state):
    fail_a_poll(build, vm_state=state)

    first = recovery.move(recovery.begun("vm-1"))
    second = recovery.move(recovery.begun("vm-1"))

    assert (first.status, second.status) == ("failed", "succeeded")
    assert recovery.frames("vm-1").count("evacuate") == 1
    assert not any("os-resetState" in frame for frame in recovery.frames("vm-1"))
    assert second.dest_host == "compute-2"
    server = recovery.cloud.servers[VM]
    assert (server.vm_state, server.locked) == (state, False)
    assert recovery.journal == []


def test_next_attempt_does_as_upstream(recovery, build):
    """The evacuation may hang for ever: then only another one helps."""
    fail_a_poll(build)
    first = recovery.move(recovery.begun("vm-1"))
    long_ago = first.start_time - timedelta(hours=1)
    recovery.context.database.write(
        lambda session: vmoves.update(session, first.uuid, start_time=long_ago)
    )

    recovery.move(recovery.begun("vm-1"))

    assert recovery.frames("vm-1")[: len(FIRST) + 5] == [
        *FIRST,
        "GET",
        "GET",
        "lock",
        "os-resetState error",
        "GET",
    ]
    assert recovery.frames("vm-1").count("evacuate") == 2


def test_evacuation_of_somebody_else_is_reset(recovery, build):
    """As upstream: what an operator had begun before the host failed does not count."""
    build(described("vm-1", task_state="rebuilding"))

    recovery.move(recovery.begun("vm-1"))

    assert "os-resetState error" in recovery.frames("vm-1")
