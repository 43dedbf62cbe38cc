"""Protects the eight end-to-end scenarios of Masakari's analysis, told as operators live them.

A monitor reports over HTTP, real services recover on MariaDB, RabbitMQ and the simulated cloud, and
then the operator looks where the analysis says one has to look.
"""

import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Api, Daemon, Daemons
from tests.servers import MariaDB, RabbitMQ, eventually

STOPPED = {"event": "STOPPED", "host_status": "NORMAL", "cluster_status": "OFFLINE"}
CRASHED = {"event": "LIFECYCLE", "vir_domain_event": "STOPPED_FAILED"}
HA = {"HA_Enabled": "True"}
RETRY_LOST = 4
SHORT = {
    "process_unfinished_notifications_interval": 3,
    "retry_notification_new_status_interval": RETRY_LOST,
}
HISTORY = """
CREATE TABLE history (id INT AUTO_INCREMENT PRIMARY KEY, uuid CHAR(36), status TEXT);
CREATE TRIGGER history_1 AFTER INSERT ON notifications FOR EACH ROW
    INSERT INTO history (uuid, status) VALUES (NEW.notification_uuid, NEW.status);
CREATE TRIGGER history_2 AFTER UPDATE ON notifications FOR EACH ROW
    INSERT INTO history (uuid, status)
    SELECT NEW.notification_uuid, NEW.status FROM DUAL WHERE NEW.status <> OLD.status;
"""


class Site:
    """One rack of hosts, its monitors, and the operator's view.

    Attributes:
        name: begins the name of whatever is in the rack.
    """

    def __init__(self, cloud: SimulatedCloud, api: Api, mariadb: MariaDB, schema: str) -> None:
        self.cloud = cloud
        self._api = api
        self._mariadb = mariadb
        self._schema = schema

    def rack(self, name: str, method: str = "auto") -> None:
        self.name = name
        segment = {"name": name, "recovery_method": method, "service_type": "COMPUTE"}
        self._segment = self._made("/v1/segments", "segment", segment)["uuid"]

    def host(self, role: str = "failing", *, reserved: bool = False) -> str:
        """A host of the rack; gives its name."""
        name = f"{self.name}-{role}"
        self.cloud.add_service(name, status="disabled" if reserved else "enabled")
        host = {"type": "COMPUTE", "control_attributes": "SSH", "reserved": reserved, "name": name}
        self._made(f"/v1/segments/{self._segment}/hosts", "host", host)
        return name

    def instance(self, host: str, name: str = "vm", **state: Any) -> str:
        """An instance, which goes to RACK-elsewhere unless Nova is told where; gives its uuid."""
        elsewhere = {"to": f"{self.name}-elsewhere"} | state.pop("evacuate", {})
        return self.cloud.add_server(f"{self.name}-{name}", host, evacuate=elsewhere, **state)

    # What monitors do.
    def post(self, kind: str, host: str, age: timedelta = timedelta(), **payload: str) -> Any:
        """Report a failure; gives the answer."""
        report = {
            "type": kind,
            "hostname": host,
            "generated_time": (datetime.now(UTC) - age).strftime("%Y-%m-%dT%H:%M:%S"),
            "payload": payload,
        }
        return self._api.call("POST", "/v1/notifications", {"notification": report})

    def report(self, kind: str, host: str, **payload: str) -> str:
        """Report what is accepted; gives the uuid of the notification."""
        answer = self.post(kind, host, **payload)
        assert answer.status_code == 202, answer.text
        reported = answer.json()["notification"]
        assert reported["status"] == "new"  # recorded, and no more
        return str(reported["notification_uuid"])

    def lose(self, kind: str, host: str, age: timedelta = timedelta(), **payload: str) -> str:
        """A report whose cast is lost: it is in the database, and no engine hears of it."""
        uuid = str(uuid4())
        self.sql(
            "INSERT INTO notifications (created_at, deleted, notification_uuid, generated_time,"
            " type, payload, status, source_host_uuid, failover_segment_uuid)"
            " SELECT UTC_TIMESTAMP(), 0, %s, %s, %s, %s, 'new', uuid, failover_segment_id"
            " FROM hosts WHERE name = %s",
            uuid,
            datetime.now(UTC).replace(tzinfo=None) - age,
            kind,
            json.dumps(payload),
            host,
        )
        return uuid

    # What operators see and do.
    def history(self, notification: str) -> list[str]:
        """Its statuses, one after the other."""
        query = "SELECT status FROM history WHERE uuid = %s ORDER BY id"
        return [row["status"] for row in self.sql(query, notification)]

    def wait(self, notification: str, *statuses: str) -> None:
        """Wait until it has gone through exactly these statuses."""
        eventually(lambda: self.history(notification)[-1] == statuses[-1], timeout=30)
        assert self.history(notification) == list(statuses)

    def show(self, notification: str) -> dict[str, Any]:
        return self._got(f"/v1/notifications/{notification}", "notification", version="1.1")

    def vmoves(self, notification: str) -> list[dict[str, Any]]:
        """In the order in which they were begun."""
        moves = self._got(f"/v1/notifications/{notification}/vmoves", "vmoves", version="1.3")
        return sorted(moves, key=lambda vmove: vmove["id"])

    def flags(self, host: str) -> tuple[bool, bool]:
        """`on_maintenance`, `reserved`."""
        found = self._host(host)
        return found["on_maintenance"], found["reserved"]

    def repaired(self, host: str) -> None:
        """Take it out of maintenance."""
        path = f"/v1/segments/{self._segment}/hosts/{self._host(host)['uuid']}"
        answer = self._api.call("PUT", path, {"host": {"on_maintenance": False}})
        assert answer.status_code == 200, answer.text

    def service(self, host: str) -> tuple[str, str | None]:
        """Status of nova-compute and why it is disabled."""
        (found,) = (service for service in self.cloud.services if service["host"] == host)
        return found["status"], found["disabled_reason"]

    def acts(self, instance: str) -> list[Any]:
        """What Nova was asked to do with an instance."""
        with self.cloud.lock:
            return [
                frame["body"]
                for frame in self.cloud.frames
                if frame["path"].endswith(f"/servers/{instance}/action")
            ]

    def sql(self, text: str, *values: object) -> list[dict[str, Any]]:
        return self._mariadb.sql(self._schema, text, *values)

    def _host(self, name: str) -> dict[str, Any]:
        hosts = self._got(f"/v1/segments/{self._segment}/hosts", "hosts")
        return next(host for host in hosts if host["name"] == name)

    def _made(self, path: str, noun: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._api.call("POST", path, {noun: body})
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()[noun]
        return made

    def _got(self, path: str, noun: str, version: str = "1.0") -> Any:
        answer = self._api.call("GET", path, version=version)
        assert answer.status_code == 200, answer.text
        return answer.json()[noun]


@pytest.fixture(scope="module")
def cloud() -> Iterator[SimulatedCloud]:
    simulated = SimulatedCloud().start()
    yield simulated
    simulated.stop()


@pytest.fixture(scope="module")
def schema(mariadb: MariaDB, synced_template: str) -> str:
    schema = mariadb.schema_of(mariadb.create_schema())
    mariadb.copy_schema(synced_template, schema)
    mariadb.sql(schema, HISTORY)
    return schema


@pytest.fixture(scope="module")
def daemons(
    cloud: SimulatedCloud,
    mariadb: MariaDB,
    schema: str,
    rabbitmq: RabbitMQ,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Daemons]:
    folder, broker = tmp_path_factory.mktemp("seeds"), rabbitmq.url(rabbitmq.new_vhost())
    started = Daemons(folder, database=mariadb.url(schema), broker=broker, cloud=cloud.url)
    yield started
    started.close()


@pytest.fixture(scope="module")
def api(daemons: Daemons) -> Api:
    return daemons.api()


@pytest.fixture(scope="module")
def engine(daemons: Daemons) -> Daemon:
    return daemons.engine({"DEFAULT": SHORT})


@pytest.fixture
def site(cloud: SimulatedCloud, api: Api, mariadb: MariaDB, schema: str) -> Site:
    return Site(cloud, api, mariadb, schema)


# Before any engine runs.
def test_periodic_expired_notification(site: Site, daemons: Daemons):
    """6: sent with a clock that is a day late, it expires without being processed."""
    site.rack("expired")
    late = site.lose("COMPUTE_HOST", site.host(), timedelta(hours=25), **STOPPED)
    instance = site.instance(f"{site.name}-failing")

    engine = daemons.engine({"DEFAULT": {"check_expired_notifications_interval": 1}})

    site.wait(late, "new", "failed")
    assert site.acts(instance) == []
    assert f"Notification {late} is expired." in engine.log.read_text()
    assert engine.terminate() == 0


def test_host_failure_auto(site: Site, engine: Daemon):
    """1: Nova chooses where each instance goes."""
    site.rack("auto")
    host = site.host()
    running, paused = site.instance(host, "vm-1"), site.instance(host, "vm-2", vm_state="paused")

    failure = site.report("COMPUTE_HOST", host, **STOPPED)

    site.wait(failure, "new", "running", "finished")
    assert site.service(host) == ("disabled", "Masakari detected host failed.")
    assert site.acts(running) == [{"lock": None}, {"evacuate": {}}, {"unlock": None}]
    assert site.acts(paused) == [
        {"lock": None},
        {"os-resetState": {"state": "error"}},
        {"evacuate": {}},
        {"os-stop": None},
        {"unlock": None},
    ]
    assert {site.cloud.servers[uuid].host for uuid in (running, paused)} == {"auto-elsewhere"}
    assert [
        (vmove["instance_uuid"], vmove["status"], vmove["source_host"], vmove["dest_host"])
        for vmove in site.vmoves(failure)
    ] == [(uuid, "succeeded", host, "auto-elsewhere") for uuid in (running, paused)]
    tasks = [
        (task["name"], task["state"]) for task in site.show(failure)["recovery_workflow_details"]
    ]
    assert tasks == [
        ("DisableComputeServiceTask", "SUCCESS"),
        ("PrepareHAEnabledInstancesTask", "SUCCESS"),
        ("EvacuateInstancesTask", "SUCCESS"),
    ]


def test_host_stays_on_maintenance_after_its_recovery(site: Site, engine: Daemon):
    """1, diagnostics: reset it once the node is repaired, or its next failure is refused."""
    site.rack("repaired")
    host = site.host()
    site.wait(site.report("COMPUTE_HOST", host, **STOPPED), "new", "running", "finished")
    again = STOPPED | {"cluster_status": "ONLINE"}  # no duplicate

    assert site.flags(host) == (True, False)
    assert site.post("COMPUTE_HOST", "nobody", **again).status_code == 400
    assert site.post("COMPUTE_HOST", host, **again).status_code == 409
    site.repaired(host)
    duplicate = site.post("COMPUTE_HOST", host, **STOPPED)

    assert duplicate.status_code == 409
    site.wait(site.report("COMPUTE_HOST", host, **again), "new", "running", "finished")


def test_instance_left_locked(site: Site, engine: Daemon):
    """1, diagnostics: look for "Failed to unlock instance"."""
    site.rack("locked")
    host = site.host()
    instance = site.instance(host)
    unlock = {"method": "POST", "path": instance, "action": "unlock"}
    site.cloud.arm_faults([{"match": unlock, "do": {"status": 503}, "times": 1}])

    failure = site.report("COMPUTE_HOST", host, **STOPPED)

    site.wait(failure, "new", "running", "finished")
    assert site.cloud.servers[instance].locked
    assert f"Failed to unlock instance {instance}" in engine.log.read_text()


def test_host_failure_reserved_host(site: Site, engine: Daemon):
    """2: the first reserved host is enabled, reserved no longer, and takes every instance."""
    site.rack("reserved", "reserved_host")
    host, other = site.host(), site.host("other-reserve", reserved=True)
    reserve = site.host("reserve", reserved=True)  # the newest one is the first
    instance = site.instance(host)

    failure = site.report("COMPUTE_HOST", host, **STOPPED)

    site.wait(failure, "new", "running", "finished")
    assert {"evacuate": {"host": reserve}} in site.acts(instance)
    assert site.cloud.servers[instance].host == reserve
    assert site.service(reserve) == ("enabled", None)
    assert site.service(other) == ("disabled", None)
    assert [site.flags(one) for one in (host, reserve, other)] == [
        (True, False),
        (False, False),
        (False, True),
    ]


def test_host_failure_no_reserved_host_then_periodic(site: Site, engine: Daemon):
    """2: with none, it is an error right away, and given up after one retry."""
    site.rack("none-reserved", "reserved_host")
    host = site.host()
    instance = site.instance(host)

    failure = site.report("COMPUTE_HOST", host, **STOPPED)

    site.wait(failure, "new", "running", "error", "running", "error", "failed")
    assert site.acts(instance) == []
    assert site.service(host) == ("enabled", None)


def test_host_failure_auto_priority_fallback(site: Site, engine: Daemon):
    """3: a succeeded vmove beside a failed one means that the recovery worked after all."""
    site.rack("priority", "auto_priority")
    host, reserve = site.host(), site.host("reserve", reserved=True)
    instance = site.instance(host, evacuate={"outcome_without_host": "never"})

    failure = site.report("COMPUTE_HOST", host, **STOPPED)

    # The retry finds no instance on the host any more.
    site.wait(failure, "new", "running", "error", "running", "finished")
    assert [
        (vmove["instance_uuid"], vmove["status"], vmove["dest_host"], vmove["message"])
        for vmove in site.vmoves(failure)
    ] == [
        (instance, "failed", None, "Failed reason: timeout."),
        (instance, "succeeded", reserve, None),
    ]
    assert "retrying using 'reserved_host' workflow." in engine.log.read_text()
    evacuations = [act for act in site.acts(instance) if "evacuate" in act]
    assert evacuations == [{"evacuate": {}}, {"evacuate": {"host": reserve}}]


def test_instance_failure(site: Site, engine: Daemon):
    """4: stopped and started where it is, without a lock, if it is to be kept up."""
    site.rack("instance")
    host = site.host()
    ends: dict[str, tuple[dict[str, Any], dict[str, str], list[str], str]] = {
        "crashed": ({"metadata": HA}, CRASHED, ["os-stop", "os-start"], "finished"),
        # Its user had stopped it; this event restarts it.
        "stopped": (
            {"metadata": HA, "vm_state": "stopped"},
            {"event": "IO_ERROR", "vir_domain_event": "IO_ERROR_REPORT"},
            ["os-start"],
            "finished",
        ),
        "no-ha": ({}, CRASHED, [], "finished"),
        "paused": ({"metadata": HA, "vm_state": "paused"}, CRASHED, [], "ignored"),
        "rescued": ({"metadata": HA, "vm_state": "rescued"}, CRASHED, [], "ignored"),
        "migrated": (
            {"metadata": HA},
            {"event": "LIFECYCLE", "vir_domain_event": "MIGRATED"},
            [],
            "ignored",
        ),
        "stuck": ({"metadata": HA, "stop": {"outcome": "never"}}, CRASHED, ["os-stop"] * 2, "-"),
    }

    for name, (state, event, acts, end) in ends.items():
        uuid = site.instance(host, name, **state)
        failure = site.report("VM", host, **event, instance_uuid=uuid)

        through = [end] if end != "-" else ["error", "running", "error", "failed"]
        site.wait(failure, "new", "running", *through)
        assert list(itertools.chain(*site.acts(uuid))) == acts, name
    assert site.flags(host) == (False, False)


def test_process_failure(site: Site, engine: Daemon):
    """5: nothing new is placed on a host without nova-compute."""
    site.rack("process")
    host = site.host()

    failure = site.report("PROCESS", host, event="STOPPED", process_name="nova-compute")

    site.wait(failure, "new", "running", "finished")
    assert site.service(host) == ("disabled", "Masakari detected process failed.")
    assert site.flags(host) == (True, False)


def test_failure_of_another_process_switches_recovery_off(site: Site, engine: Daemon):
    """5, diagnostics: a real failure of that host is refused until it is out of maintenance."""
    site.rack("other-process")
    host = site.host()
    instance = site.instance(host)

    failure = site.report("PROCESS", host, event="STOPPED", process_name="libvirtd")

    site.wait(failure, "new", "running", "finished")
    assert site.service(host) == ("enabled", None)
    assert site.flags(host) == (True, False)
    assert site.post("COMPUTE_HOST", host, **STOPPED).status_code == 409
    assert site.acts(instance) == []
    site.repaired(host)
    site.wait(site.report("COMPUTE_HOST", host, **STOPPED), "new", "running", "finished")
    assert site.cloud.servers[instance].host == "other-process-elsewhere"


def test_periodic_retry_lost_new_notification(site: Site, engine: Daemon):
    """6, and diagnostics of 1: stuck in `new`, it is found once it is old enough."""
    site.rack("lost")
    host = site.host()
    instance = site.instance(host)

    lost = site.lose("COMPUTE_HOST", host, **STOPPED)

    eventually(lambda: site.history(lost) != ["new"])
    age = "SELECT TIMESTAMPDIFF(SECOND, generated_time, UTC_TIMESTAMP()) AS age FROM notifications"
    (found,) = site.sql(f"{age} WHERE notification_uuid = %s", lost)
    assert found["age"] >= RETRY_LOST
    site.wait(lost, "new", "running", "finished")
    assert site.cloud.servers[instance].host == "lost-elsewhere"
