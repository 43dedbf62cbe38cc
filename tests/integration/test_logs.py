"""Protects that the log has each decision with its reason, and tracebacks of faults only."""

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Api, Daemons
from tests.servers import MariaDB, eventually

STOPPED = {"event": "STOPPED", "host_status": "NORMAL", "cluster_status": "OFFLINE"}
SERVICE = {"event": "STOPPED", "process_name": "libvirtd"}
VM_FAILED = {"event": "LIFECYCLE", "vir_domain_event": "STOPPED_FAILED"}
NOVA_AWAY = {"match": {"method": "GET", "path": "/os-services"}, "do": {"status": 503}, "times": 1}
HOSTS = ("up", "full", "empty", "unlucky", "broken", "disabled")

Decided = Callable[[], dict[str, str]]


class Reporter:
    """Asks the API; keeps what it answered.

    Attributes:
        requests: request id by uuid of the notification.
    """

    def __init__(self, api: Api) -> None:
        self.requests: dict[str, str] = {}
        self._api = api

    def add_segment(self, name: str, hosts: tuple[str, ...], **fields: Any) -> None:
        segment = {"name": name, "recovery_method": "auto", "service_type": "s", **fields}
        added = self._created("/v1/segments", {"segment": segment}, 201)["segment"]
        for host in hosts:
            body = {"host": {"name": host, "type": "T", "control_attributes": "c"}}
            self._created(f"/v1/segments/{added['uuid']}/hosts", body, 201)

    def report(self, host: str, kind: str, payload: object, *, status: int = 202) -> str:
        """Gives the uuid of the notification; the status of another answer is only compared."""
        body = {
            "type": kind,
            "hostname": host,
            "generated_time": "2026-03-01T10:00:00",
            "payload": payload,
        }
        created = self._created("/v1/notifications", {"notification": body}, status)
        return str(created["notification"]["notification_uuid"]) if status == 202 else ""

    def _created(self, path: str, body: object, status: int) -> Any:
        answer = self._api.call("POST", path, body, version="1.2")
        assert answer.status_code == status, answer.text
        if status == 202:
            uuid = answer.json()["notification"]["notification_uuid"]
            self.requests[uuid] = answer.headers["x-openstack-request-id"]
        return answer.json()


@pytest.fixture
def region(cloud: SimulatedCloud, daemons: Daemons) -> Daemons:
    cloud.reset({"realistic": True, "services": [{"host": host} for host in HOSTS]})
    for host in ("full", "unlucky", "broken"):
        outcome = {"outcome": "error"} if host == "broken" else {"seconds": 0.1}
        cloud.add_server(f"vm-{host}", host, evacuate=outcome)
    cloud.add_server("vm-up", "up")
    daemons.settings["DEFAULT"] |= {
        "process_unfinished_notifications_interval": 2,
        "wait_period_after_service_update": 0,
    }
    return daemons


@pytest.fixture
def statuses(mariadb: MariaDB, synced_url: str) -> Decided:
    """Status of each notification whose recovery is over, by uuid."""
    query = (
        "SELECT notification_uuid, status FROM notifications"
        " WHERE status NOT IN ('new', 'running', 'error')"
    )
    return lambda: {
        row["notification_uuid"]: row["status"]
        for row in mariadb.sql(mariadb.schema_of(synced_url), query)
    }


def test_each_decision_has_its_line_with_all_keys(
    region: Daemons, cloud: SimulatedCloud, statuses: Decided
):
    region.settings["DEFAULT"]["use_json"] = True
    api, engine = region.api(), region.engine()
    reporter = Reporter(api)
    reporter.add_segment("rack", HOSTS[:-1])
    reporter.add_segment("off", HOSTS[-1:], enabled=False)
    for host in HOSTS[1:]:
        cloud.fail_host(host)
    vm = next(uuid for uuid, server in cloud.servers.items() if server.name == "vm-up")

    expected = {
        reporter.report("full", "COMPUTE_HOST", STOPPED): ("finished", "Evacuation process"),
        reporter.report("empty", "COMPUTE_HOST", STOPPED): ("finished", "no instances needs to"),
        reporter.report("broken", "COMPUTE_HOST", STOPPED): ("failed", "Failed to evacuate"),
        reporter.report("disabled", "COMPUTE_HOST", STOPPED): ("ignored", "disabled"),
        reporter.report("up", "COMPUTE_HOST", STOPPED | {"host_status": "UNKNOWN"}): (
            "ignored",
            "host_status is 'UNKNOWN'",
        ),
        reporter.report("up", "VM", VM_FAILED | {"instance_uuid": vm}): (
            "finished",
            "not Ha_Enabled",
        ),
        reporter.report("up", "VM", VM_FAILED | {"instance_uuid": vm, "event": "REBOOT"}): (
            "ignored",
            "is ignored",
        ),
    }
    reporter.report("full", "COMPUTE_HOST", STOPPED, status=409)
    eventually(lambda: len(statuses()) == len(expected), timeout=90)
    expected[reporter.report("up", "PROCESS", SERVICE)] = ("finished", "Skipping recovery")
    eventually(lambda: len(statuses()) == len(expected))
    cloud.arm_faults([NOVA_AWAY])
    unlucky = reporter.report("unlucky", "COMPUTE_HOST", STOPPED)
    expected[unlucky] = ("finished", "exits with status: error")
    eventually(lambda: len(statuses()) == len(expected), timeout=60)
    assert engine.terminate() == 0

    lines = [json.loads(line) for line in engine.log.read_text().splitlines()]
    assert statuses() == {uuid: status for uuid, (status, _) in expected.items()}
    for uuid, (_, text) in expected.items():
        [line, *_] = [one for one in lines if text in one["message"] and about(one) == uuid]
        assert line["context"]["request_id"] == reporter.requests[uuid]
        assert line["extra"]["host"] in HOSTS
    ours = [one for one in lines if one["name"].startswith("masakari_ng.recovery")]
    assert [one for one in ours if not (one["extra"].get("host") and about(one))] == []
    named = {uuid for uuid in cloud.servers for one in ours if said_of(one, uuid)}
    assert named == set(cloud.servers)
    [refused] = [
        one
        for one in map(json.loads, api.log.read_text().splitlines())
        if "answers 409" in one["message"]
    ]
    assert refused["context"]["request_id"].startswith("req-")
    assert refused["extra"] == {"host": "full"}
    assert "Traceback" not in engine.log.read_text() + api.log.read_text()


def about(line: dict[str, Any]) -> str | None:
    uuid: str | None = line["extra"].get("notification_uuid")
    return uuid


def said_of(line: dict[str, Any], instance: str) -> bool:
    return bool(line["extra"].get("instance_uuid") == instance)


def test_sighup_changes_the_log_level_in_the_middle_of_a_recovery(
    region: Daemons, cloud: SimulatedCloud, statuses: Decided
):
    api, engine = region.api(), region.engine()
    reporter = Reporter(api)
    reporter.add_segment("rack", ("full", "broken"))
    slow = {"match": {"method": "GET", "path": "/os-services"}, "do": {"delay": 2}, "times": 1}
    cloud.arm_faults([slow])
    for host in ("full", "broken"):
        cloud.fail_host(host)

    uuid = reporter.report("full", "COMPUTE_HOST", STOPPED)
    eventually(lambda: "Disabling compute service" in engine.log.read_text())
    assert " DEBUG " not in engine.log.read_text()
    region.write_conf("engine-1", {"DEFAULT": {"host": "engine-1", "debug": True}})
    engine.process.signal(signal.SIGHUP)

    eventually(lambda: statuses() == {uuid: "finished"})
    assert " DEBUG masakari_ng.recovery" in engine.log.read_text()
