"""Protects what is done to one instance in each state, and where it goes on after a takeover."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from masakari_ng import errors
from masakari_ng.domain import JournalEntry
from tests.simulated_clock import SimulatedClock
from tests.unit.recovery.conftest import Recovery, described, uuid_of

VM = uuid_of("vm-1")
LOCK = ["GET", "GET", "lock"]
RESET = ["os-resetState error", "GET"]
# One look finds the instance where it was, the next one elsewhere; where the instance was reset,
# the simulated cloud is one look ahead.
MOVE = ["evacuate", "GET", "GET"]
STOP = ["os-stop", "GET", "GET"]
END = ["GET", "unlock"]

# vm_state, task_state, power_state: frames, vm_state at the end. Spec: recovery §7.4 item 4.
STATES = {
    "active": ({}, [*LOCK, *MOVE, *END], "active"),
    "active, busy": ({"task_state": "powering-off"}, [*LOCK, *RESET, *MOVE, *END], "active"),
    "stopped": ({"vm_state": "stopped"}, [*LOCK, *MOVE, *END], "stopped"),
    "stopped, busy": (
        {"vm_state": "stopped", "task_state": "powering-on"},
        [*LOCK, *RESET, *MOVE, *STOP, *END],
        "stopped",
    ),
    "error": (
        {"vm_state": "error"},
        [*LOCK, *MOVE, *STOP, "os-resetState error", *END],
        "error",
    ),
    "error, busy": (
        {"vm_state": "error", "task_state": "deleting"},
        [*LOCK, *RESET, *MOVE, *STOP, "os-resetState error", *END],
        "error",
    ),
    "resized": ({"vm_state": "resized"}, [*LOCK, *RESET, *MOVE, *END], "active"),
    "resized, busy": (
        {"vm_state": "resized", "task_state": "resize_reverting"},
        [*LOCK, *RESET, *MOVE, *END],
        "active",
    ),
    "resized, shut down": (
        {"vm_state": "resized", "power_state": 4},
        [*LOCK, *RESET, *MOVE, *STOP, *END],
        "stopped",
    ),
    **{
        state: ({"vm_state": state}, [*LOCK, *RESET, *MOVE, *STOP, *END], "stopped")
        for state in (
            "paused",
            "suspended",
            "rescued",
            "shelved",
            "shelved_offloaded",
            "building",
            "soft-delete",
        )
    },
    "paused, busy": (
        {"vm_state": "paused", "task_state": "unpausing"},
        [*LOCK, *RESET, *MOVE, *STOP, *END],
        "stopped",
    ),
    "locked by its user": ({"locked": True}, ["GET", "GET", *MOVE, "GET"], "active"),
}


@pytest.mark.parametrize(("state", "frames", "end"), STATES.values(), ids=list(STATES))
def test_each_state_has_its_frames(recovery, build, state, frames, end):
    """faults 76, 77, 79: locked meanwhile, and back in the state that users expect."""
    build(described("vm-1", **state))

    move = recovery.move(recovery.begun("vm-1"))

    assert recovery.frames("vm-1") == frames
    server = recovery.cloud.servers[VM]
    assert (server.host, server.vm_state) == ("compute-2", end)
    assert server.locked is state.get("locked", False)
    assert (move.status, move.dest_host, move.message) == ("succeeded", "compute-2", None)
    assert move.start_time
    assert move.end_time
    assert recovery.journal == []


def test_a_target_is_named_to_nova(recovery, build):
    build(described("vm-1"))

    move = recovery.move(recovery.begun("vm-1", target="compute-9"))

    assert move.dest_host == "compute-9"
    assert {"evacuate": {"host": "compute-9"}} in [frame["body"] for frame in recovery.cloud.frames]


def test_where_it_went_is_what_the_hypervisor_calls_itself(recovery, build):
    build(described("vm-1", hypervisor_hostname="node-1", evacuate={"outcome": "never"}))

    move = recovery.move(recovery.begun("vm-1"))

    # As upstream: a name that differs from the start counts as moved at the first look.
    assert move.dest_host == "node-1"


LOCKED = {"locked": True}
SENT = {"vm_state": "active", "compare_state": "active", "locked": True, "evacuate_sent": True}
RESET_SENT = {
    "vm_state": "paused",
    "compare_state": "error",
    "stop_after": True,
    "locked": True,
    "evacuate_sent": True,
}


TIMEOUT = "Failed reason: timeout."
FAULT = "scripted fault (HTTP 500)"
STOP_REFUSED = "cannot access local variable 'timer' where it is not associated with a value"
GETS = {"method": "GET", "path": "/servers/1"}
# state, fault (match, skip): frames, message, whether the move had begun
FAILURES = {
    "first look": ({}, (GETS, 0), ["GET"], FAULT, False),
    "second look": ({}, (GETS, 1), ["GET", "GET"], FAULT, False),
    "lock": ({}, ({"action": "lock"}, 0), [*LOCK, "unlock"], FAULT, False),
    "reset": (
        {"vm_state": "paused"},
        ({"action": "os-resetState"}, 0),
        [*LOCK, RESET[0], "unlock"],
        FAULT,
        False,
    ),
    "evacuate": ({}, ({"action": "evacuate"}, 0), [*LOCK, "evacuate", "unlock"], FAULT, True),
    "a poll": ({}, (GETS, 3), [*LOCK, *MOVE, "unlock"], FAULT, True),
    "faults 53, 78: goes to error": (
        {"evacuate": {"outcome": "error"}},
        None,
        [*LOCK, *MOVE, "unlock"],
        f"Failed to evacuate instance {VM}",
        True,
    ),
    "faults 53, 54: never moves": (
        {"evacuate": {"outcome": "never"}},
        None,
        [*LOCK, "evacuate", *["GET"] * 92, "unlock"],
        TIMEOUT,
        True,
    ),
    "stop": (
        {"vm_state": "error"},
        ({"action": "os-stop"}, 0),
        [*LOCK, *MOVE, "os-stop", "unlock"],
        STOP_REFUSED,
        True,
    ),
    "never stops": (
        {"vm_state": "error", "stop": {"outcome": "never"}},
        None,
        [*LOCK, *MOVE, "os-stop", *["GET"] * 182, "unlock"],
        TIMEOUT,
        True,
    ),
    "reset after the stop": (
        {"vm_state": "error"},
        ({"action": "os-resetState"}, 0),
        [*LOCK, *MOVE, *STOP, "os-resetState error", "unlock"],
        FAULT,
        True,
    ),
    "last look": ({}, (GETS, 4), [*LOCK, *MOVE, *END], FAULT, True),
}


@pytest.mark.parametrize("case", FAILURES.values(), ids=list(FAILURES))
def test_a_failure_is_written_down_and_the_instance_unlocked(recovery, build, case):
    state, fault, frames, message, begun = case
    faults = [{"match": fault[0], "skip": fault[1], "do": {"status": 500}}] if fault else []
    build(described("vm-1", **state), faults=faults)

    move = recovery.move(recovery.begun("vm-1"))

    assert recovery.frames("vm-1") == frames
    assert (move.status, move.dest_host) == ("failed", None)
    assert move.message.partition(" (Request-ID")[0] == message
    assert (move.start_time is not None) is begun
    assert move.end_time
    assert recovery.journal == []


class Stepping(SimulatedClock):
    """Its calendar jumps by an hour, now forth, now back, whenever it is looked at."""

    _looks = 0

    def utcnow(self):
        self._looks += 1
        return super().utcnow() + timedelta(hours=(-1) ** self._looks)


def test_waits_do_not_mind_a_clock_that_is_set(recovery, build):
    """faults 56"""
    build(described("vm-1", evacuate={"outcome": "never"}))

    recovery.on(Stepping()).move(recovery.begun("vm-1"))

    assert recovery.frames("vm-1") == [*LOCK, "evacuate", *["GET"] * 92, "unlock"]


REFUSALS = {404: "Resource could not be found.", 409: "Conflict"}


@pytest.mark.parametrize(("status", "message"), REFUSALS.items())
def test_a_refused_evacuation_has_upstreams_text(recovery, build, status, message):
    match = {"action": "evacuate"}
    build(described("vm-1"), faults=[{"match": match, "do": {"status": status}}])

    move = recovery.move(recovery.begun("vm-1"))

    assert (move.status, move.message) == ("failed", message)
    assert recovery.frames("vm-1") == [*LOCK, "evacuate", "unlock"]


def test_a_failed_unlock_is_only_logged(recovery, build, caplog):
    build(described("vm-1"), faults=[{"match": {"action": "unlock"}, "do": {"status": 500}}])

    move = recovery.move(recovery.begun("vm-1"))

    assert (move.status, move.message) == ("succeeded", None)
    assert f"Failed to unlock instance {VM} after" in caplog.text
    assert recovery.journal == []


class Interrupted(SimulatedClock):
    """Runs `act` before the second wait."""

    act: Callable[[], object]
    _sleeps = 0

    def sleep(self, seconds: float) -> None:
        self._sleeps += 1
        if self._sleeps == 2:
            self.act()
        super().sleep(seconds)


def test_a_stop_leaves_everything_as_it_is(recovery, build):
    build(described("vm-1", evacuate={"outcome": "never"}))
    clock = Interrupted()
    clock.act = clock.stop
    vmove = recovery.begun("vm-1")

    with pytest.raises(errors.Stopped):
        recovery.on(clock).move(vmove)

    assert recovery.frames("vm-1") == [*LOCK, *MOVE]
    (left,) = recovery.moves
    assert (left.status, left.message, left.end_time) == ("ongoing", None, None)
    (entry,) = recovery.journal
    assert entry.locked
    assert entry.evacuate_sent


@pytest.mark.parametrize("lost", ["at the beginning", "while it moves"])
def test_a_lost_claim_ends_all_writing(recovery, build, lost):
    build(described("vm-1", evacuate={"polls": 3}))
    vmove = recovery.begun("vm-1")
    clock = Interrupted()
    clock.act = recovery.taken_over
    if lost == "at the beginning":
        recovery.taken_over()

    with pytest.raises(errors.ClaimLost):
        recovery.on(clock).move(vmove)

    frames = {"at the beginning": ["GET", "GET"], "while it moves": [*LOCK, *MOVE, *["GET"] * 3]}
    assert recovery.frames("vm-1") == frames[lost]
    (left,) = recovery.moves
    assert (left.status, left.end_time) == ({"a": "pending", "w": "ongoing"}[lost[0]], None)


BUSY = {"vm_state": "error", "task_state": "deleting"}  # asks most of Nova
REQUESTS = len(STATES["error, busy"][1])


@pytest.mark.parametrize("after", range(1, REQUESTS + 1))
def test_who_was_frozen_meanwhile_touches_nothing(recovery, build, after):
    build(described("vm-1", **BUSY))
    vmove, frozen = recovery.begun("vm-1"), recovery.frozen(after)

    with pytest.raises(errors.ClaimLost):
        frozen.move(vmove)

    assert frozen.changes_when_thawed == []


@pytest.mark.parametrize(("status", "after"), [("ongoing", 1), ("succeeded", 0), ("failed", 0)])
def test_who_was_frozen_after_a_takeover_touches_nothing(recovery, build, status, after):
    build(described("vm-1", locked=True))
    vmove, frozen = recovery.begun("vm-1", status, **SENT), recovery.frozen(after)

    with pytest.raises(errors.ClaimLost):
        frozen.move(vmove)

    assert frozen.changes_when_thawed == []


class Outage:
    """A database that fails at the write of this number and then tells what is stored."""

    def __init__(self, recovery: Recovery, at: int, error: Exception) -> None:
        self.read = recovery.context.database.read
        self._recovery, self._left, self._error = recovery, at, error

    def write(self, work: Callable[[Any], Any], **turn: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            self.stored = (self._recovery.moves, self._recovery.journal)
            raise self._error
        return self._recovery.context.database.write(work, **turn)


UNAVAILABLE, DEADLOCK = errors.DatabaseUnavailable("gone"), errors.DatabaseDeadlock("gave way")
WRITES = 8


@pytest.mark.parametrize(
    ("at", "error"), [*((at, UNAVAILABLE) for at in range(1, WRITES + 1)), (4, DEADLOCK)]
)
def test_an_outage_leaves_everything_to_a_takeover(recovery, build, at, error):
    build(described("vm-1", **BUSY))
    vmove, outage = recovery.begun("vm-1"), Outage(recovery, at, error)

    with pytest.raises(type(error)):
        replace(recovery, context=replace(recovery.context, database=outage)).move(vmove)

    assert (recovery.moves, recovery.journal) == outage.stored
    assert recovery.journal != []
    (left,) = recovery.moves
    recovery.taken_over().move(left)
    (move,) = recovery.moves
    assert (move.status, recovery.journal) == ("succeeded", [])
    assert recovery.cloud.requests("evacuate") == {VM: 1}
    server = recovery.cloud.servers[VM]
    assert (server.vm_state, server.locked) == ("error", False)


REFUSED = (
    "CREATE TRIGGER refused BEFORE UPDATE OF status ON vmoves WHEN new.{}"
    " BEGIN SELECT RAISE(ABORT, 'no'); END"
)


@pytest.mark.parametrize(
    ("refused", "stored"),
    [
        ("status = 'succeeded'", ("failed", "Failed reason: the outcome could not be stored.")),
        ("status <> 'ongoing'", ("ongoing", None)),
    ],
)
def test_an_outcome_that_cannot_be_stored_leaves_no_lock(recovery, build, caplog, refused, stored):
    build(described("vm-1"))
    vmove = recovery.begun("vm-1")
    refusal = text(REFUSED.format(refused))
    recovery.context.database.write(lambda session: session.execute(refusal))

    move = recovery.move(vmove)

    assert (move.status, move.message) == stored
    assert not recovery.cloud.servers[VM].locked
    assert recovery.journal == []
    assert "The outcome of the evacuation could not be stored" in caplog.text


class Watched:
    """A Nova that notes, at each call, what a takeover would read."""

    def __init__(self, recovery: Recovery) -> None:
        self._recovery = recovery
        self.seen: dict[str, tuple[str, JournalEntry]] = {}

    def __getattr__(self, name: str) -> Any:
        self.seen[name] = (self._recovery.moves[0].status, self._recovery.journal[0])
        return getattr(self._recovery.context.nova, name)


def test_the_journal_is_ahead_of_each_act(recovery, build):
    build(described("vm-1", vm_state="resized", power_state=4))
    vmove = recovery.begun("vm-1")
    nova = Watched(recovery)

    replace(recovery, context=replace(recovery.context, nova=nova)).move(vmove)

    planned = JournalEntry(
        vmove_uuid=vmove.uuid,
        notification_uuid=recovery.notification_uuid,
        instance_uuid=VM,
        vm_state="resized",
        compare_state="error",
        stop_after=True,
        locked=True,
    )
    begun = replace(planned, evacuate_sent=True)
    assert {name: nova.seen[name] for name in nova.seen if name != "server"} == {
        "lock": ("pending", planned),
        "reset_state": ("pending", planned),
        "evacuate": ("ongoing", begun),
        "stop": ("ongoing", begun),
        "unlock": ("succeeded", begun),
    }


MOVED = {"host": "compute-2", "locked": True}
# server, status of the vmove, journal: frames, message of a failure. Two looks and the last one.
TAKEN_OVER = {
    "moved": (MOVED, "ongoing", SENT, ["GET", "GET", *END], None),
    "moved after a reset": (MOVED, "ongoing", RESET_SENT, ["GET", "GET", *STOP, *END], None),
    "moved and stopped": (
        {**MOVED, "vm_state": "stopped"},
        "ongoing",
        RESET_SENT,
        ["GET", "GET", "os-stop", "GET", *END],
        None,
    ),
    "moved and locked by its user": (
        MOVED,
        "ongoing",
        {**SENT, "locked": False},
        ["GET", "GET", "GET"],
        None,
    ),
    "failed meanwhile": (
        {**LOCKED, "vm_state": "error"},
        "ongoing",
        SENT,
        ["GET", "unlock"],
        f"Failed to evacuate instance {VM}",
    ),
    "never sent": (LOCKED, "ongoing", SENT, ["GET", *MOVE, *END], None),
    "planned": ({}, "pending", {}, [*LOCK, *MOVE, *END], None),
    "to be locked": ({}, "pending", {**SENT, "evacuate_sent": False}, [*LOCK, *MOVE, *END], None),
    "locked": (
        LOCKED,
        "pending",
        {**SENT, "evacuate_sent": False},
        ["GET", "GET", *MOVE, *END],
        None,
    ),
    "reset": (
        {**LOCKED, "vm_state": "error"},
        "pending",
        {**RESET_SENT, "evacuate_sent": False},
        ["GET", "GET", *MOVE, *STOP, *END],
        None,
    ),
    "reset planned": (
        {**LOCKED, "vm_state": "paused"},
        "pending",
        {**RESET_SENT, "evacuate_sent": False},
        ["GET", "GET", *RESET, *MOVE, *STOP, *END],
        None,
    ),
}


@pytest.mark.parametrize("case", TAKEN_OVER.values(), ids=list(TAKEN_OVER))
def test_a_takeover_goes_on_where_the_dead_engine_was(recovery, build, case):
    state, status, entry, frames, message = case
    build(described("vm-1", **state))
    vmove = recovery.begun("vm-1", status, **entry)

    move = recovery.taken_over().move(vmove)

    assert recovery.frames("vm-1") == frames
    assert (move.status, move.message) == ("failed" if message else "succeeded", message)
    assert move.end_time
    assert recovery.journal == []


REALISTIC = {
    "realistic": True,
    "services": [{"host": "compute-1", "state": "down"}, {"host": "compute-2"}],
}


def test_a_move_under_way_is_watched(recovery, build):
    build(described("vm-1", locked=True, evacuate={"polls": 2}), **REALISTIC)
    recovery.context.nova.evacuate(VM)
    vmove = recovery.begun("vm-1", "ongoing", **SENT)

    move = recovery.taken_over().move(vmove)

    assert move.status == "succeeded"
    assert recovery.frames("vm-1") == ["evacuate", *["GET"] * 3, *END]


def test_a_late_request_of_the_frozen_engine_is_not_doubled(recovery, build):
    """It reaches Nova between our look and our own request, which Nova then refuses."""
    match = {"action": "evacuate"}
    late = {"match": match, "times": 1, "do": {"status": 409, "apply": True}}
    build(described("vm-1", locked=True), **REALISTIC, faults=[late])
    vmove = recovery.begun("vm-1", "ongoing", **SENT)

    move = recovery.taken_over().move(vmove)

    assert move.status == "succeeded"
    assert recovery.frames("vm-1").count("evacuate") == 1


def test_a_refusal_without_any_move_is_a_failure(recovery, build):
    build(
        described("vm-1", locked=True),
        faults=[{"match": {"action": "evacuate"}, "do": {"status": 409}}],
    )
    vmove = recovery.begun("vm-1", "ongoing", **SENT)

    move = recovery.taken_over().move(vmove)

    assert (move.status, move.message) == ("failed", "Conflict")
    assert recovery.frames("vm-1") == ["GET", "evacuate", "GET", "unlock"]


@pytest.mark.parametrize("status", ["succeeded", "failed"])
def test_what_is_over_is_only_unlocked(recovery, build, status):
    build(described("vm-1", locked=True))
    vmove = recovery.begun("vm-1", status, **SENT)

    move = recovery.taken_over().move(vmove)

    assert (move.status, move.updated_at) == (status, vmove.updated_at)
    assert recovery.frames("vm-1") == ["unlock"]
    assert recovery.journal == []
