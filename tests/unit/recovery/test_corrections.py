"""Protects each correction of a host's recovery: what upstream does without, what is right with."""

import re

import pytest

from masakari_ng import errors
from masakari_ng.domain import Correction
from masakari_ng.recovery import instance
from masakari_ng.recovery.runner import FlowRunner
from tests.unit.recovery.conftest import described, details, uuid_of
from tests.unit.recovery.test_host import Stopping
from tests.unit.recovery.test_move import LOCK, REALISTIC, TAKEN_OVER, VM

VM2 = uuid_of("vm-2")
EVACUATE, STOP = {"action": "evacuate"}, {"action": "os-stop"}
GONE = {"method": "GET", "path": f"/servers/{VM}$"}


def failing(match, status=500, **more):
    return {"faults": [{"match": match, "do": {"status": status}, **more}]}


def statuses(recovery):
    return [(move.instance_name, move.status) for move in recovery.moves]


@pytest.mark.parametrize("corrections", [(), ("vmove_accounting",)])
def test_vmove_accounting(recovery, build, corrections):
    recovery = recovery.corrected(*corrections)
    build(described("vm-1"))
    recovery.begun("vm-1", "failed")

    if corrections:
        recovery.run()
    else:
        with pytest.raises(errors.HostRecoveryFailure, match=f"'{VM}'"):
            recovery.run()

    assert statuses(recovery) == [("vm-1", "failed"), ("vm-1", "succeeded")]


def test_vmove_accounting_forgives_no_failure_that_was_not_made_good(recovery, build):
    recovery = recovery.corrected("vmove_accounting")
    build(described("vm-1", evacuate={"outcome": "error"}), described("vm-2"))
    recovery.begun("vm-1", "succeeded")

    with pytest.raises(errors.HostRecoveryFailure, match=f"instances '{VM}' from"):
        recovery.run()


ORDERS = [((), ["vm-3", "vm-1", "vm-4", "vm-2"])]
ORDERS += [(("evacuation_order",), ["vm-2", "vm-4", "vm-1", "vm-3"])]


@pytest.mark.parametrize(("corrections", "order"), ORDERS)
def test_evacuation_order(recovery, build, conf, corrections, order):
    conf.set_override("host_failure_recovery_threads", 1)
    ha = {"metadata": {"HA_Enabled": "True"}}
    names = ["vm-1", "vm-2", "vm-3", "vm-4"]
    build(*(described(name, **(ha if name in {"vm-2", "vm-4"} else {})) for name in names))

    recovery.corrected(*corrections).run()

    assert list(recovery.cloud.requests("evacuate")) == [uuid_of(name) for name in order]


@pytest.mark.parametrize(("corrections", "number"), [((), 2), (("pending_vmoves",), 1)])
def test_pending_vmoves(recovery, build, corrections, number):
    build(described("vm-1"), described("vm-2"))
    recovery.begun("vm-1")

    recovery.corrected(*corrections).run()

    assert recovery.cloud.requests("evacuate") == {VM: number, VM2: 1}
    assert [move.status for move in recovery.moves] == ["succeeded"] * (number + 1)


@pytest.mark.parametrize("names", [(), ("vm-1",)], ids=["nothing left", "others left"])
def test_pending_vmoves_that_are_needed_no_longer(recovery, build, names):
    recovery = recovery.corrected("pending_vmoves")
    build(*map(described, names))
    recovery.begun("vm-2")

    if names:
        recovery.run()
    else:
        with pytest.raises(errors.SkipHostRecovery):
            recovery.run()

    ignored, *others = recovery.moves
    assert (ignored.instance_name, ignored.status) == ("vm-2", "ignored")
    assert ignored.message == "Not begun by an aborted round, and needed no longer."
    assert ignored.end_time
    assert recovery.frames("vm-2") == []
    assert [move.status for move in others] == ["succeeded"] * len(names)
    assert recovery.journal == []


PLACES = [((), "compute-1.example.org", "compute-1")]
PLACES += [(("moved_by_service_host",), "compute-2", "compute-2")]


@pytest.mark.parametrize(("corrections", "dest_host", "really"), PLACES)
def test_moved_by_service_host(recovery, build, corrections, dest_host, really):
    names = {"hypervisor_hostname": "compute-1.example.org"}
    evacuate = {"polls": 6, "node": "compute-2.example.org"}
    build(described("vm-1", **names, evacuate=evacuate))

    move = recovery.corrected(*corrections).move(recovery.begun("vm-1"))

    assert (move.status, move.dest_host) == ("succeeded", dest_host)
    assert recovery.cloud.servers[VM].host == really


TIMEOUT = "Failed reason: timeout."
HIDDEN = "cannot access local variable 'timer' where it is not associated with a value"
WORKED = "The evacuation worked, what follows it did not."
# state, faults: upstream's message, the real one, where it is
TEXTS = {
    "D6, unknown": ({}, failing(EVACUATE, 404), "Resource could not be found.", "HTTP 404", None),
    "D6, conflict": ({}, failing(EVACUATE, 409), "Conflict", "HTTP 409", None),
    "D6, dropped": (
        {},
        {"faults": [{"match": EVACUATE, "do": {"drop": True}}]},
        "An unknown exception occurred.",
        "Unable to establish connection|Remote end closed",
        None,
    ),
    "D5, D21, faults 75": (
        {"vm_state": "error"},
        failing(STOP),
        HIDDEN,
        rf"^{WORKED} scripted fault \(HTTP 500\)",
        "compute-2",
    ),
    "D21, timeout": (
        {"vm_state": "paused", "stop": {"outcome": "never"}},
        {},
        TIMEOUT,
        f"^{WORKED} {TIMEOUT}$",
        "compute-2",
    ),
    "not moved": ({"evacuate": {"outcome": "never"}}, {}, TIMEOUT, f"^{TIMEOUT}$", None),
}


@pytest.mark.parametrize("case", TEXTS.values(), ids=list(TEXTS))
@pytest.mark.parametrize("corrected", [False, True])
def test_error_texts(recovery, build, case, corrected):
    state, faults, hidden, real, dest_host = case
    recovery = recovery.corrected(*(["error_texts"] if corrected else []))
    build(described("vm-1", **state), **faults)

    move = recovery.move(recovery.begun("vm-1"))

    assert move.status == "failed"
    assert move.dest_host == (dest_host if corrected else None)
    if corrected:
        assert re.search(real, move.message)
    else:
        assert move.message == hidden


CHANGED = {"paused": "The instance was paused, now it is stopped.", "error": None, "active": None}


@pytest.mark.parametrize(("vm_state", "message"), CHANGED.items())
@pytest.mark.parametrize("corrected", [False, True])
def test_error_texts_name_a_state_that_was_lost(recovery, build, vm_state, message, corrected):
    """faults 79"""
    recovery = recovery.corrected(*(["error_texts"] if corrected else []))
    build(described("vm-1", vm_state=vm_state))

    move = recovery.move(recovery.begun("vm-1"))

    assert (move.status, move.message) == ("succeeded", message if corrected else None)


@pytest.mark.parametrize("corrected", [False, True])
def test_error_texts_name_a_resize_that_was_lost(recovery, build, corrected):
    """faults 98"""
    recovery = recovery.corrected(*(["error_texts"] if corrected else []))
    build(described("vm-1", vm_state="resized", metadata={"HA_Enabled": "yes"}))

    instance.recover(recovery.context, VM, FlowRunner(recovery.context.database))

    _, reported = details(recovery)["StopInstanceTask"]
    assert ((0.0, f"Giving up the resize of instance: {VM}") in reported) is corrected


@pytest.mark.parametrize("skip", [0, 2], ids=["before", "while it moves"])
@pytest.mark.parametrize("corrected", [False, True])
def test_skip_deleted_instances(recovery, build, skip, corrected):
    recovery = recovery.corrected(*(["skip_deleted_instances"] if corrected else []))
    build(described("vm-1"), described("vm-2"), **failing(GONE, 404, skip=skip))

    if corrected:
        recovery.run()
    else:
        with pytest.raises(errors.HostRecoveryFailure, match=f"'{VM}'"):
            recovery.run()

    status = "ignored" if corrected else "failed"
    assert statuses(recovery) == [("vm-1", status), ("vm-2", "succeeded")]
    assert recovery.moves[0].end_time
    assert recovery.journal == []


@pytest.mark.parametrize("look", [{"status": 200}, {"status": 500}], ids=["is there", "unknown"])
def test_skip_deleted_instances_looks_again(recovery, build, look):
    """A target that Nova does not know is a 404, too."""
    recovery = recovery.corrected("skip_deleted_instances")
    faults = failing(EVACUATE, 404)["faults"]
    if look["status"] != 200:
        faults += failing(GONE, after=EVACUATE)["faults"]
    build(described("vm-1"), faults=faults)

    move = recovery.move(recovery.begun("vm-1"))

    assert (move.status, move.message) == ("failed", "Resource could not be found.")


LOCKS = {
    "upstream": ((), {"status": 500}, ["unlock"]),
    "refused": (("unlock_only_locked",), {"status": 500}, ["GET"]),
    "answer lost": (("unlock_only_locked",), {"status": 504, "apply": True}, ["GET", "unlock"]),
}


@pytest.mark.parametrize(("corrections", "do", "end"), LOCKS.values(), ids=list(LOCKS))
def test_unlock_only_locked(recovery, build, corrections, do, end):
    build(described("vm-1"), faults=[{"match": {"action": "lock"}, "do": do}])

    move = recovery.corrected(*corrections).move(recovery.begun("vm-1"))

    assert recovery.frames("vm-1") == [*LOCK, *end]
    assert not recovery.cloud.servers[VM].locked
    assert f"HTTP {do['status']}" in move.message


def test_unlock_only_locked_unlocks_where_nobody_can_tell(recovery, build):
    faults = (
        failing({"action": "lock"})["faults"] + failing(GONE, after={"action": "lock"})["faults"]
    )
    build(described("vm-1"), faults=faults)

    move = recovery.corrected("unlock_only_locked").move(recovery.begun("vm-1"))

    assert recovery.frames("vm-1") == [*LOCK, "GET", "unlock"]
    assert move.message.startswith("scripted fault (HTTP 500)")


# Takeovers with all of them.
@pytest.mark.parametrize("case", TAKEN_OVER.values(), ids=list(TAKEN_OVER))
def test_a_takeover_with_all_corrections_does_the_same(recovery, build, case):
    state, status, entry, frames, message = case
    build(described("vm-1", **state))
    vmove = recovery.begun("vm-1", status, **entry)

    move = recovery.corrected(*Correction).taken_over().move(vmove)

    assert recovery.frames("vm-1") == frames
    assert move.status == ("failed" if message else "succeeded")
    assert move.dest_host == (None if message else "compute-2")
    assert recovery.journal == []


@pytest.mark.parametrize("at", range(1, 8))
def test_a_stop_at_any_wait_with_all_corrections_evacuates_nothing_twice(recovery, build, at):
    recovery = recovery.corrected(*Correction)
    names = [f"vm-{number}" for number in range(1, 6)]
    build(*(described(name, evacuate={"polls": 3}) for name in names), **REALISTIC)

    with pytest.raises(errors.Stopped):
        recovery.on(Stopping(at=at)).run()
    recovery.taken_over().run()

    assert sorted(statuses(recovery)) == [(name, "succeeded") for name in names]
    assert recovery.cloud.requests("evacuate", accepted=True) == {uuid_of(n): 1 for n in names}
    assert not any(server.locked for server in recovery.cloud.servers.values())
    assert recovery.journal == []
