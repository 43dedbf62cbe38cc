"""Protects the methods with reserved hosts: who is tried when, what is opened, and takeovers."""

from dataclasses import replace

import pytest

from masakari_ng import errors
from masakari_ng.db import hosts, workflows
from masakari_ng.domain import RecoveryMethod
from tests.unit.recovery.conftest import described, details, uuid_of
from tests.unit.recovery.test_host import Stopping

VM1, VM2 = uuid_of("vm-1"), uuid_of("vm-2")
SERVICES = [{"host": f"compute-{number}"} for number in range(1, 5)]
NEVER, BROKEN = {"evacuate": {"outcome": "never"}}, {"evacuate": {"outcome": "error"}}


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

    with recovery.context.locks.held("compute-4"):
        recovery.run()

    assert still_reserved(recovery) == ["compute-4"]
    assert set(targets(recovery)) == {"compute-3"}


def test_only_reserved_host_is_being_filled(reserved):
    recovery = reserved("reserved_host", described("vm-1"), names=("compute-4",))

    with (
        recovery.context.locks.held("compute-4"),
        pytest.raises(errors.LockAlreadyAcquired, match="Lock is already acquired on compute-4"),
    ):
        recovery.run()

    assert outcomes(recovery) == [("vm-1", "pending", None)]
    with recovery.context.locks.held("compute-4"):
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
