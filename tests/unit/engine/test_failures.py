"""Protects the decision what a report means, before anything is done, and what the driver gets."""

import pytest

from masakari_ng import errors
from masakari_ng.db import hosts, segments
from masakari_ng.domain import (
    Correction,
    NotificationStatus,
    NotificationType,
    RecoveryMethod,
    RequestContext,
)
from masakari_ng.engine.failures import Failures
from masakari_ng.recovery.evacuation import save_reserved

IGNORED, FINISHED = NotificationStatus.IGNORED, NotificationStatus.FINISHED
HOST, VM, PROCESS = (
    NotificationType.COMPUTE_HOST,
    NotificationType.VM,
    NotificationType.PROCESS,
)


class Driver:
    """Stands for the recovery: notes what it was asked for."""

    def __init__(self):
        self.calls = []

    def execute_host_failure(self, context, *arguments, **keywords):
        self.calls.append((*arguments, keywords))

    def execute_instance_failure(self, context, *arguments):
        self.calls.append(arguments)

    def execute_process_failure(self, context, *arguments):
        self.calls.append(arguments)


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def handle(site, driver):
    """Let the handler of a type work on a payload; gives status and uuid."""
    failures = Failures(driver)
    handlers = {HOST: failures.host, VM: failures.instance, PROCESS: failures.process}

    def handled(kind, payload, host=None):
        host = host or site.host
        notification = site.report(payload=payload, type=kind, host=host.uuid)
        claim = site.take(notification, "engine-a")
        asked = RequestContext(request_id="req-1")
        context = site.recovery_context(asked, claim, notification, False)
        return handlers[kind](context, host), notification.notification_uuid

    return handled


def stored(site, host):
    return site.database.read(lambda session: hosts.by_uuid(session, host.uuid))


NOTHING_TO_DO = {
    "faults 6": (HOST, {"event": "STOPPED"}, (IGNORED, "as host_status is not provided.")),
    "faults 7": (
        HOST,
        {"event": "STOPPED", "host_status": "unknown"},
        (IGNORED, "as host_status is 'UNKNOWN'"),
    ),
    "host_status before event": (
        HOST,
        {"event": "STARTED", "host_status": "UNKNOWN"},
        (IGNORED, "as host_status is 'UNKNOWN'"),
    ),
    "host started": (HOST, {"event": "started", "host_status": "NORMAL"}, (FINISHED, "started")),
    "other host event": (
        HOST,
        {"event": "REBOOTED", "host_status": "normal"},
        (IGNORED, "its event is 'REBOOTED'"),
    ),
    "no host event": (HOST, {"host_status": "NORMAL"}, (IGNORED, "its event is ''")),
    "process started": (
        PROCESS,
        {"event": "started", "process_name": "nova-compute"},
        (FINISHED, "started"),
    ),
    "other process event": (
        PROCESS,
        {"event": "RESTARTED", "process_name": "nova-compute"},
        (IGNORED, "its event is 'RESTARTED'"),
    ),
    **{
        f"faults 95: {event}, {domain}": (
            VM,
            {"event": event, "vir_domain_event": domain, "instance_uuid": "vm-1"},
            (IGNORED, "is ignored."),
        )
        for event, domain in (
            ("LIFECYCLE", "STARTED_BOOTED"),
            ("LIFECYCLE", "IO_ERROR_REPORT"),
            ("IO_ERROR", "STOPPED_FAILED"),
            ("lifecycle", "STOPPED_FAILED"),
            ("REBOOT", "REBOOT"),
        )
    },
}


@pytest.mark.parametrize("case", NOTHING_TO_DO.values(), ids=list(NOTHING_TO_DO))
def test_nothing_is_touched_for_what_is_no_failure(site, handle, driver, caplog, case):
    kind, payload, (status, line) = case
    caplog.set_level("INFO")

    assert handle(kind, payload)[0] is status

    assert driver.calls == []
    assert line in caplog.text
    assert not stored(site, site.host).on_maintenance


@pytest.mark.parametrize("reserved", [False, True], ids=["", "faults 71"])
@pytest.mark.parametrize("cluster_status", ["ONLINE", "OFFLINE"])
def test_host_that_is_down_goes_on_maintenance_first(
    site, handle, driver, reserved, cluster_status
):
    failed = site.add_host("compute-2", reserved=reserved)
    payload = {"event": "stopped", "host_status": "normal", "cluster_status": cluster_status}

    status, uuid = handle(HOST, payload, failed)

    assert status is FINISHED
    nothing = {"update_host_method": None, "reserved_host_list": None}
    assert driver.calls == [("compute-2", RecoveryMethod.AUTO, uuid, nothing)]
    host = stored(site, failed)
    assert (host.on_maintenance, host.reserved) == (True, False)


@pytest.mark.parametrize("method", ["reserved_host", "auto_priority", "rh_priority"])
def test_reserved_hosts_that_may_be_used(site, handle, driver, method):
    """Newest first, neither the failed one nor one on maintenance (faults 70, 71)."""
    changes = {"recovery_method": RecoveryMethod(method)}
    site.database.write(lambda session: segments.update(session, site.segment.uuid, changes))
    failed = site.add_host("failed", reserved=True)
    for name, flags in {
        "older": {"reserved": True},
        "busy": {"reserved": True, "on_maintenance": True},
        "newer": {"reserved": True},
        "plain": {},
    }.items():
        site.add_host(name, **flags)

    _, uuid = handle(HOST, {"event": "STOPPED", "host_status": "NORMAL"}, stored(site, failed))

    reserved = {"update_host_method": save_reserved, "reserved_host_list": ["newer", "older"]}
    assert driver.calls == [("failed", method, uuid, reserved)]


@pytest.mark.parametrize(
    ("event", "domain"),
    [
        ("LIFECYCLE", "STOPPED_FAILED"),
        ("IO_ERROR", "IO_ERROR_REPORT"),
        ("QEMU_GUEST_AGENT_ERROR", "STOPPED_FAILED"),
    ],
)
def test_failed_instance_is_restarted_and_its_host_left_alone(site, handle, driver, event, domain):
    payload = {"event": event, "vir_domain_event": domain, "instance_uuid": "vm-1"}

    status, uuid = handle(VM, payload)

    assert status is FINISHED
    assert driver.calls == [("vm-1", uuid)]
    assert not stored(site, site.host).on_maintenance


@pytest.mark.parametrize(
    ("name", "recovered"),
    [("nova-compute", True), ("libvirtd", False), ("Nova-Compute", False), ("", False)],
)
def test_stopped_process_puts_its_host_on_maintenance(site, handle, driver, name, recovered):
    status, uuid = handle(PROCESS, {"event": "stopped", "process_name": name})

    assert status is FINISHED
    assert driver.calls == ([(name, "compute-1", uuid)] if recovered else [])
    assert stored(site, site.host).on_maintenance


@pytest.mark.parametrize("name", ["nova-compute", "libvirtd"])
def test_only_a_process_with_a_workflow_can_put_its_host_on_maintenance(site, handle, driver, name):
    """faults 11"""
    site.corrections = frozenset({Correction.PROCESS_MAINTENANCE})

    status, _ = handle(PROCESS, {"event": "stopped", "process_name": name})

    assert status is FINISHED
    assert stored(site, site.host).on_maintenance is (name == "nova-compute")


def test_nothing_is_written_without_the_claim(site, driver):
    notification = site.report()
    claim = site.take(notification, "engine-a")
    asked = RequestContext(request_id="req-1")
    context = site.recovery_context(asked, claim, notification, False)
    site.manager(None).close()  # hands over what this engine holds

    with pytest.raises(errors.ClaimLost):
        Failures(driver).host(context, site.host)

    assert driver.calls == []
    assert not stored(site, site.host).on_maintenance
