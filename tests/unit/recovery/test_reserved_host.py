"""Protects the methods with reserved hosts: who is tried when, what is opened, and takeovers."""

from dataclasses import replace

import pytest

from masakari_ng import errors
from masakari_ng.db import hosts, workflows
from masakari_ng.domain import Claim, Correction, RecoveryMethod
from tests.simulated_clock import SimulatedClock
from tests.unit.recovery.conftest import described, details, uuid_of
from tests.unit.recovery.test_host import Stopping

VM1, VM2 = uuid_of("vm-1"), uuid_of("vm-2")
SERVICES = [{"host": f"compute-{number}"} for number in range(1, 5)]
NEVER, BROKEN = {"evacuate": {"outcome": "never"}}, {"evacuate": {"outcome": "error"}}
OTHER = Claim(
    notification_uuid="n", source_host_uuid="h", engine="engine-1", version=1, working=True
)


@pytest.fixture
def reserved(recovery, database, build):
    """Two reserved hosts, compute-4 first, and a recovery of a method on instances."""

    def made(method, *servers, names=("compute-4", "compute-3"), **more):
        for name in reversed(names):
            database.write(
                lambda session, name=name: hosts.create(
                    session,
                    segment_uuid=recovery.host.segment.uuid,
                    name=name,
                    type="COMPUTE",
                    control_attributes="SSH",
                    reserved=True,
                )
            )
        build(*servers, **{"services": SERVICES} | more)
        segment = replace(recovery.host.segment, recovery_method=RecoveryMethod(method))
        host = replace(recovery.host, segment=segment)
        return replace(recovery, host=host, reserved_hosts=list(names))

    return made


def still_reserved(recovery):
    segment = recovery.host.segment.uuid
    found = recovery.context.database.read(lambda session: hosts.reserved_in(session, segment))
    return [host.name for host in found]


def targets(recovery):
    """Where instances were asked to go, in order."""
    return [
        frame["body"]["evacuate"].get("host")
        for frame in recovery.cloud.frames
        if "evacuate" in (frame["body"] or {})
    ]


def outcomes(recovery):
    return [(move.instance_name, move.status, move.dest_host) for move in recovery.moves]


def test_newest_reserved_host_is_enabled_and_takes_the_instances(reserved):
    services = [SERVICES[0], SERVICES[1], SERVICES[2], {"host": "compute-4", "status": "disabled"}]
    recovery = reserved("reserved_host", described("vm-1"), described("vm-2"), services=services)

    recovery.run()

    assert targets(recovery) == ["compute-4", "compute-4"]
    assert still_reserved(recovery) == ["compute-3"]
    assert {one["host"]: one["status"] for one in recovery.cloud.services} == {
        "compute-1": "disabled",
        "compute-2": "enabled",
        "compute-3": "enabled",
        "compute-4": "enabled",
    }
    _, reported = details(recovery)["EvacuateInstancesTask"]
    assert reported[1] == (0.1, "Enabling reserved host: 'compute-4'")


def test_aggregates_of_the_failed_host(reserved, conf):
    """faults 72: each of them, and one that holds the reserved host already is no failure."""
    conf.set_override("add_reserved_host_to_aggregate", True, "host_failure")
    aggregates = [
        {"id": 1, "name": "ssd", "hosts": ["compute-1"]},
        {"id": 2, "name": "rack", "hosts": ["compute-1", "compute-4"]},
        {"id": 3, "name": "gpu", "hosts": ["compute-2"]},
        {"id": 4, "name": "zone", "hosts": ["compute-2", "compute-1"]},
    ]
    recovery = reserved("reserved_host", described("vm-1"), aggregates=aggregates)

    recovery.run()

    assert {one["name"]: one["hosts"] for one in recovery.cloud.aggregates} == {
        "ssd": ["compute-1", "compute-4"],
        "rack": ["compute-1", "compute-4"],
        "gpu": ["compute-2"],
        "zone": ["compute-2", "compute-1", "compute-4"],
    }
    _, reported = details(recovery)["EvacuateInstancesTask"]
    assert reported[2:8] == [
        (0.2, "Add host compute-4 to aggregate ssd"),
        (0.3, "Added host compute-4 to aggregate ssd"),
        (0.2, "Add host compute-4 to aggregate rack"),
        (1.0, "Host 'compute-4' already has been added to aggregate 'rack'."),
        (0.2, "Add host compute-4 to aggregate zone"),
        (0.3, "Added host compute-4 to aggregate zone"),
    ]


@pytest.mark.parametrize("after", [4, 5, 6])
def test_who_was_frozen_meanwhile_opens_no_host(reserved, conf, after):
    conf.set_override("add_reserved_host_to_aggregate", True, "host_failure")
    aggregates = [{"id": 1, "name": "ssd", "hosts": ["compute-1"]}]
    recovery = reserved("reserved_host", described("vm-1"), aggregates=aggregates).frozen(after)

    with pytest.raises(errors.ClaimLost):
        recovery.run()

    assert recovery.changes_when_thawed == []


FAULTS = {
    "enable": {"method": "PUT", "body": {"status": "enabled"}},
    "look-up": {"path": "/os-services", "method": "GET"},
}


@pytest.mark.parametrize("what", FAULTS)
def test_reserved_host_that_cannot_be_opened_leaves_its_turn(reserved, what):
    """As upstream: what was planned for it stays, and is carried out with the next one."""
    skip = 1 if what == "look-up" else 0  # the first look-up is that of the failed host
    fault = {"match": FAULTS[what], "skip": skip, "times": 1, "do": {"status": 500}}
    recovery = reserved("reserved_host", described("vm-1"), faults=[fault])

    recovery.run()

    assert still_reserved(recovery) == ["compute-4"]
    assert set(targets(recovery)) == {"compute-3"}
    assert {move.status for move in recovery.moves} == {"succeeded"}
    assert len(recovery.moves) == 2


def test_all_reserved_hosts_fail(reserved):
    recovery = reserved("reserved_host", described("vm-1", **BROKEN))

    with pytest.raises(errors.HostRecoveryFailure, match=f"^Failed to evacuate instances '{VM1},"):
        recovery.run()

    assert targets(recovery) == ["compute-4", "compute-3"]
    assert still_reserved(recovery) == []
    assert recovery.journal == []


def test_no_reserved_host(reserved):
    recovery = reserved("reserved_host", described("vm-1"), names=())

    with pytest.raises(errors.ReservedHostsUnavailable, match="No reserved_hosts available"):
        recovery.run()

    assert recovery.cloud.frames == []


def test_reserved_host_that_another_recovery_fills_is_passed_over(reserved):
    recovery = reserved("reserved_host", described("vm-1"))

    with recovery.context.locks.held("compute-4", OTHER):
        recovery.run()

    assert still_reserved(recovery) == ["compute-4"]
    assert set(targets(recovery)) == {"compute-3"}


def test_only_reserved_host_is_being_filled(reserved):
    recovery = reserved("reserved_host", described("vm-1"), names=("compute-4",))

    with (
        recovery.context.locks.held("compute-4", OTHER),
        pytest.raises(errors.LockAlreadyAcquired, match="Lock is already acquired on compute-4"),
    ):
        recovery.run()

    assert outcomes(recovery) == [("vm-1", "pending", None)]
    with recovery.context.locks.held("compute-4", OTHER):
        pass  # given back


FALLBACKS = {
    "auto_priority": (
        [None, "compute-4", "compute-3"],
        "Failed to evacuate all instances from failed_host: 'compute-1' using 'auto' workflow, "
        "retrying using 'reserved_host' workflow.",
    ),
    "rh_priority": (
        ["compute-4", "compute-3", None],
        "Failed to evacuate all instances from failed_host 'compute-1' using 'reserved_host' "
        "workflow, retrying using 'auto' workflow",
    ),
}


@pytest.mark.parametrize(("method", "expected"), FALLBACKS.items(), ids=list(FALLBACKS))
def test_the_other_workflow_is_the_fallback(reserved, caplog, method, expected):
    recovery = reserved(method, described("vm-1", **BROKEN))

    with pytest.raises(errors.HostRecoveryFailure):
        recovery.run()

    assert targets(recovery) == expected[0]
    assert expected[1] in caplog.text


@pytest.mark.parametrize("method", FALLBACKS)
def test_fallback_is_for_failures_only(reserved, method, caplog):
    recovery = reserved(method)

    with pytest.raises(errors.SkipHostRecovery):
        recovery.run()

    assert "retrying using" not in caplog.text


def test_rh_priority_without_a_reserved_host(reserved):
    recovery = reserved("rh_priority", described("vm-1"), names=())

    recovery.run()

    assert targets(recovery) == [None]


def test_details_of_a_fallback_come_in_the_order_of_time(reserved):
    """faults 88"""
    recovery = reserved("auto_priority", described("vm-1", **BROKEN), names=("compute-4",))

    with pytest.raises(errors.HostRecoveryFailure):
        recovery.run()

    uuid = recovery.notification_uuid
    shown = recovery.context.database.read(lambda session: workflows.details(session, uuid))
    assert [task.name for task in shown] == 2 * [
        "DisableComputeServiceTask",
        "PrepareHAEnabledInstancesTask",
        "EvacuateInstancesTask",
    ]
    enabling = "Enabling reserved host: 'compute-4'"
    assert [enabling in str(task) for task in shown] == [*[False] * 5, True]


# Interruption and takeover.
METHODS = ["reserved_host", "rh_priority", "auto_priority"]


@pytest.mark.parametrize("method", METHODS)
def test_takeover_goes_on_with_the_same_reserved_host(reserved, method):
    """Each instance moves once, to the host that was opened."""
    at = 3  # one wait for Nova to see the host down, then polls
    names = [f"vm-{number}" for number in range(1, 5)]
    recovery = reserved(
        method,
        *(described(name, evacuate={"polls": 2}) for name in names),
        services=[{"host": "compute-1", "state": "down"}, *SERVICES[1:]],
        realistic=True,
    )
    if method == "auto_priority":
        # The first workflow fails as a whole, so that the engine dies in the second one.
        fault = {"method": "GET", "path": "/servers/detail"}
        recovery.cloud.arm_faults([{"match": fault, "times": 1, "do": {"status": 500}}])
        at += 1

    with pytest.raises(errors.Stopped):
        recovery.on(Stopping(at=at)).run()

    assert still_reserved(recovery) == ["compute-3"]
    assert {move.status for move in recovery.moves} & {"pending", "ongoing"}

    replace(recovery, reserved_hosts=still_reserved(recovery)).taken_over().run()

    assert set(targets(recovery)) == {"compute-4"}
    assert still_reserved(recovery) == ["compute-3"]
    assert set(recovery.cloud.requests("evacuate", accepted=True).values()) == {1}
    assert sorted(outcomes(recovery)) == [(name, "succeeded", "compute-4") for name in names]
    assert not any(server.locked for server in recovery.cloud.servers.values())
    assert recovery.journal == []


def test_takeover_goes_on_with_the_next_one_if_the_first_is_lost_too(reserved):
    recovery = reserved("reserved_host", described("vm-1"), names=("compute-3",))
    recovery.begun("vm-1", target="compute-4")
    enable = {"method": "PUT", "body": {"status": "enabled"}}
    recovery.cloud.arm_faults([{"match": enable, "times": 1, "do": {"status": 500}}])

    recovery.taken_over().run()

    assert targets(recovery) == ["compute-3"]
    assert outcomes(recovery) == [("vm-1", "succeeded", "compute-3")]


def test_takeover_of_a_fallback_to_auto_has_no_target(reserved):
    recovery = reserved("rh_priority", described("vm-1"), names=())
    recovery.begun("vm-1")

    recovery.taken_over().run()

    assert targets(recovery) == [None]
    assert outcomes(recovery) == [("vm-1", "succeeded", "compute-2")]


# A reserved host that is down itself.
DOWN = {"host": "compute-4", "state": "down", "status": "disabled"}


def test_reserved_host_that_is_down_is_passed_over(reserved):
    """faults 68: and what was planned for it is not carried out besides."""
    recovery = reserved("reserved_host", described("vm-1"), services=[*SERVICES[:3], DOWN])
    reason = "Reserved host 'compute-4' is not used: its compute service is down"

    recovery.run()

    assert [(move.status, move.message, bool(move.end_time)) for move in recovery.moves] == [
        ("ignored", reason, True),
        ("succeeded", None, True),
    ]
    assert targets(recovery) == ["compute-3"]
    assert still_reserved(recovery) == ["compute-4"]
    assert recovery.cloud.services[3]["status"] == "disabled"
    assert recovery.journal == []
    assert (0.7, reason) in details(recovery)["EvacuateInstancesTask"][1]


def test_only_reserved_host_is_down(reserved):
    recovery = reserved(
        "reserved_host", described("vm-1"), services=[*SERVICES[:3], DOWN], names=("compute-4",)
    )

    with pytest.raises(errors.HostRecoveryFailure, match="'compute-4' is not used"):
        recovery.run()

    assert (targets(recovery), recovery.journal) == ([], [])
    assert still_reserved(recovery) == ["compute-4"]


def test_takeover_still_watches_what_is_under_way_to_a_host_that_is_down(reserved):
    recovery = reserved(
        "reserved_host",
        described("vm-1", host="compute-4", locked=True),
        services=[*SERVICES[:3], DOWN],
    )
    sent = {"vm_state": "active", "compare_state": "active", "locked": True, "evacuate_sent": True}
    recovery.begun("vm-1", "ongoing", target="compute-4", **sent)

    recovery.taken_over().run()

    assert outcomes(recovery) == [("vm-1", "succeeded", "compute-4")]
    assert not recovery.cloud.servers[VM1].locked


# Corrections.
def corrected(recovery, *corrections):
    return replace(recovery, context=replace(recovery.context, corrections=frozenset(corrections)))


class Freeing(SimulatedClock):
    """The other recovery ends while this one sleeps for the third time."""

    def __init__(self, recovery):
        super().__init__()
        self._recovery = recovery
        self._left = 3
        self.moves = []

    def sleep(self, seconds):
        super().sleep(seconds)
        self._left -= 1
        if self._left >= 0:
            self.moves += self._recovery.moves
        if not self._left:
            self._recovery.context.locks.give_back(OTHER)


def test_reserved_host_in_use_is_waited_for_before_anything_is_planned(reserved):
    recovery = reserved("reserved_host", described("vm-1"), names=("compute-4",))
    clock = Freeing(recovery)
    recovery.context.locks.take("compute-4", OTHER)

    corrected(recovery, Correction.RESERVED_HOST_WAIT).on(clock).run()

    assert clock.moves == []
    assert outcomes(recovery) == [("vm-1", "succeeded", "compute-4")]
    assert recovery.context.locks.take("compute-4", OTHER)  # given back


def test_reserved_host_that_is_free_goes_first(reserved):
    recovery = reserved("reserved_host", described("vm-1"))

    with recovery.context.locks.held("compute-4", OTHER):
        corrected(recovery, Correction.RESERVED_HOST_WAIT).run()

    assert outcomes(recovery) == [("vm-1", "succeeded", "compute-3")]


def test_after_a_failure_the_next_free_one_is_waited_for(reserved):
    evacuate = {"outcome": "error"}
    recovery = reserved("reserved_host", described("vm-1", evacuate=evacuate))
    clock = Freeing(recovery)
    recovery.context.locks.take("compute-4", OTHER)

    with pytest.raises(errors.HostRecoveryFailure):
        corrected(recovery, Correction.RESERVED_HOST_WAIT).on(clock).run()

    assert targets(recovery) == ["compute-3", "compute-4"]
    assert [move.status for move in recovery.moves] == ["failed", "failed"]
    assert recovery.context.locks.take("compute-3", OTHER)


def test_no_lock_is_kept_where_there_is_nothing_to_move(reserved):
    recovery = reserved("reserved_host")

    with pytest.raises(errors.SkipHostRecovery):
        corrected(recovery, Correction.RESERVED_HOST_WAIT).run()

    assert recovery.context.locks.take("compute-3", OTHER)
    assert recovery.context.locks.take("compute-4", OTHER)


def test_a_stop_ends_the_wait_for_a_reserved_host(reserved):
    recovery = corrected(
        reserved("rh_priority", described("vm-1"), names=("compute-4",)),
        Correction.RESERVED_HOST_WAIT,
    )

    with recovery.context.locks.held("compute-4", OTHER), pytest.raises(errors.Stopped):
        recovery.on(Stopping(at=4)).run()

    assert recovery.moves == []


def shut(recovery):
    """Reserved hosts whose compute service is disabled, with the reason."""
    return {
        one["host"]: one["disabled_reason"]
        for one in recovery.cloud.services
        if one["status"] == "disabled" and one["host"] in {"compute-3", "compute-4"}
    }


RETURN = Correction.RETURN_RESERVED_HOST
CLOSED = [{"host": name, "status": "disabled"} for name in ("compute-3", "compute-4")]
MINE = "Reserved host of Masakari."


def test_reserved_hosts_that_took_nothing_are_reserved_again(reserved):
    recovery = reserved(
        "reserved_host", described("vm-1", **BROKEN), services=[*SERVICES[:2], *CLOSED]
    )

    with pytest.raises(errors.HostRecoveryFailure):
        corrected(recovery, RETURN).run()

    assert targets(recovery) == ["compute-4", "compute-3"]
    assert still_reserved(recovery) == ["compute-4", "compute-3"]
    assert shut(recovery) == {"compute-3": MINE, "compute-4": MINE}
    told = "No instance was moved to host 'compute-4': it is reserved again"
    assert (0.6, told) in details(recovery)["EvacuateInstancesTask"][1]


USED = {
    "by one of two": ([described("vm-1", **BROKEN), described("vm-2")], {}),
    "by somebody else": ([described("vm-1", **BROKEN), described("vm-9", host="compute-4")], {}),
    "soon": ([described("vm-1", **NEVER)], {"realistic": True}),
}


@pytest.mark.parametrize(("servers", "more"), USED.values(), ids=list(USED))
def test_reserved_host_that_is_used_is_reserved_no_longer(reserved, servers, more):
    services = [{"host": "compute-1", "state": "down"}, SERVICES[1], *CLOSED]
    recovery = reserved("reserved_host", *servers, services=services, names=("compute-4",), **more)

    with pytest.raises(errors.HostRecoveryFailure):
        corrected(recovery, RETURN).run()

    assert still_reserved(recovery) == []
    assert list(shut(recovery)) == ["compute-3"]


def test_nova_failing_while_a_host_is_returned_changes_no_outcome(reserved, caplog):
    match = {"method": "PUT", "body": {"status": "disabled", "disabled_reason": MINE}}
    recovery = reserved(
        "reserved_host",
        described("vm-1", **BROKEN),
        names=("compute-4",),
        faults=[{"match": match, "do": {"status": 500}}],
    )

    with pytest.raises(errors.HostRecoveryFailure, match="Failed to evacuate instances"):
        corrected(recovery, RETURN).run()

    assert still_reserved(recovery) == []
    assert "Host compute-4 is not reserved again" in caplog.text


class Dying:
    """The engine dies when it would look at what is on a reserved host."""

    def __init__(self, nova):
        self._nova = nova

    def __getattr__(self, name):
        return getattr(self._nova, name)

    def servers_on(self, host):
        if host != "compute-1":
            raise errors.Stopped("the engine dies")
        return self._nova.servers_on(host)


def test_takeover_returns_what_a_dead_engine_had_opened(reserved):
    """Its moves were over, so that nothing else tells of it."""
    recovery = corrected(
        reserved("reserved_host", described("vm-1", **BROKEN), services=[*SERVICES[:2], *CLOSED]),
        RETURN,
    )
    dying = replace(recovery.context, nova=Dying(recovery.context.nova))

    with pytest.raises(errors.Stopped):
        replace(recovery, context=dying).run()

    assert {move.status for move in recovery.moves} == {"failed"}
    assert still_reserved(recovery) == ["compute-3"]

    with pytest.raises(errors.HostRecoveryFailure):
        replace(recovery, reserved_hosts=["compute-3"]).taken_over().run()

    assert targets(recovery) == ["compute-4", "compute-4", "compute-3"]
    assert still_reserved(recovery) == ["compute-4", "compute-3"]
    assert shut(recovery) == {"compute-3": MINE, "compute-4": MINE}


def test_takeover_in_mid_evacuation_returns_the_host_in_the_end(reserved):
    down = {"host": "compute-1", "state": "down"}
    broken = described("vm-1", evacuate={"outcome": "error", "polls": 3})
    recovery = corrected(
        reserved("reserved_host", broken, services=[down, SERVICES[1], *CLOSED]), *Correction
    )

    with pytest.raises(errors.Stopped):
        recovery.on(Stopping(at=2)).run()

    assert still_reserved(recovery) == ["compute-3"]

    with pytest.raises(errors.HostRecoveryFailure):
        replace(recovery, reserved_hosts=["compute-3"]).taken_over().run()

    assert still_reserved(recovery) == ["compute-4", "compute-3"]
    assert shut(recovery) == {"compute-3": MINE, "compute-4": MINE}
