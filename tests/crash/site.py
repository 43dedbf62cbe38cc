"""Where one recovery at a time is disturbed: a cloud, a schema, a vhost, two engines."""

import itertools
import signal
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pymysql.cursors import DictCursor

from masakari_ng import conf as options
from masakari_ng.db import hosts, notifications, segments
from masakari_ng.db.session import Database
from masakari_ng.demo.cloud import SimulatedCloud
from masakari_ng.domain import (
    Host,
    NotificationType,
    RecoveryMethod,
    RequestContext,
    Segment,
)
from masakari_ng.messaging.client import EngineClient
from masakari_ng.messaging.connection import Broker
from tests.crash.points import ROW_POINTS, connect
from tests.crash.proxy import Proxy
from tests.daemons import Daemon, Daemons
from tests.servers import MariaDB, RabbitMQ, eventually

CLAIM_TIMEOUT = 3
GRACE = 30.0
"""Seconds that a disturbed recovery may take beyond the life of a claim and its own time."""
IDLE = 20.0
"""Seconds after which MariaDB ends the transaction of a frozen engine."""
FLOW = 20.0
"""Seconds that an undisturbed one takes at most, on a machine that does much else."""

_HOST_DOWN = {"event": "STOPPED", "host_status": "NORMAL", "cluster_status": "OFFLINE"}
_FINAL = {"finished", "failed", "ignored"}
_SETTINGS = {
    "wait_period_after_service_update": 1,
    "wait_period_after_evacuation": 20,
    "wait_period_after_power_off": 10,
    "graceful_shutdown_timeout": 1,
    "process_unfinished_notifications_interval": 2,
    "retry_notification_new_status_interval": 2,
}


_HISTORY = (
    "CREATE TABLE crash_history (uuid VARCHAR(36), status VARCHAR(16))",
    "CREATE TRIGGER `crash history` AFTER UPDATE ON notifications FOR EACH ROW BEGIN"
    " IF NEW.status <> OLD.status THEN"
    " INSERT INTO crash_history VALUES (NEW.notification_uuid, NEW.status); END IF; END",
)


@dataclass(frozen=True)
class Failure:
    """One reported host failure.

    Attributes:
        uuid: of the notification.
        host: name of the one that failed.
    """

    uuid: str
    host: str


class Site:
    """Everything that one play needs; plays follow one another.

    Args:
        folder: for configurations and logs.
        engines: how many.

    Attributes:
        ids: what the names in the matches of points stand for in the present play.
        proxies: in front of the database and the broker.
    """

    def __init__(
        self, folder: Path, mariadb: MariaDB, template: str, rabbitmq: RabbitMQ, engines: int = 2
    ) -> None:
        folder.mkdir()
        self._port = mariadb.port
        url = mariadb.create_schema()
        self.schema = mariadb.schema_of(url)
        mariadb.copy_schema(template, self.schema)
        for statement in (*_HISTORY, *(point.trigger(self.schema) for point in ROW_POINTS)):
            mariadb.sql(self.schema, statement)
        broker = rabbitmq.url(rabbitmq.new_vhost())
        self.proxies = {"database": Proxy(mariadb.port), "broker": Proxy(rabbitmq.port)}
        self.cloud = SimulatedCloud().start()
        self.ids: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._database = Database(url)
        conf = options.load([], program="test", files=[])
        conf.set_override("transport_url", broker)
        self._client = EngineClient(Broker(conf), timeout=20)
        self.daemons = Daemons(
            folder,
            database=_through(url, mariadb.port, self.proxies["database"]),
            broker=_through(broker, rabbitmq.port, self.proxies["broker"]),
            cloud=self.cloud.url,
        )
        self.daemons.settings["DEFAULT"] |= _SETTINGS
        self.daemons.settings["masakari_ng"] = {
            "corrections": "all",
            "claim_heartbeat": 1,
            "claim_timeout": CLAIM_TIMEOUT,
            "nova_connect_timeout": 2,
            "nova_read_timeout": 4,
        }
        self.engines = [self.daemons.engine(wait=False) for _ in range(engines)]

    def wait_ready(self) -> None:
        """Until all engines consume; those that have ended are started again."""
        for engine in self.engines:
            if not engine.process.alive:
                engine.restart(wait=False)
        for engine in self.engines:
            engine.wait_ready()

    def fail_host(
        self, instances: int = 0, *, reserved: bool = False, more: bool = False
    ) -> Failure:
        """A new host dies; the failure is stored.

        Args:
            instances: how many it has; 0 stands for one that is active, one that is paused, and
                one that its user has locked.
            reserved: there is a reserved host for them.
            more: the cloud keeps what it has; else this host is alone in it.
        """
        name = f"host-{next(self._numbers)}"
        if not more:
            self.cloud.reset({"realistic": True, "services": [{"host": "spare"}]})
        for host in (f"{name}-reserved", name):
            self.cloud.add_service(host)
        states: dict[str, dict[str, Any]] = {
            "plain": {},
            "paused": {"vm_state": "paused"},
            "user-locked": {"locked": True},
        }
        if instances:
            states = {f"vm-{number}": {} for number in range(instances)}
        self.ids = {
            label: self.cloud.add_server(
                f"{name}-{label}", name, evacuate={"seconds": 0.5}, stop={"seconds": 0.3}, **state
            )
            for label, state in states.items()
        }
        services = {service["host"]: service["id"] for service in self.cloud.services}
        self.ids |= {"failed": services[name], "reserved": services[f"{name}-reserved"]}
        self.cloud.fail_host(name)
        return Failure(self._stored(name, reserved=reserved), name)

    def report(self, failure: Failure, *, casts: int = 1) -> None:
        """Tell the engines; as often as a broken connection might, or never."""
        found = self._database.read(lambda s: notifications.by_uuid(s, failure.uuid))
        for _ in range(casts):
            self._client.process_notification(RequestContext(request_id="req-post"), found)

    def worker(self, failure: Failure) -> Daemon:
        """The engine that holds the claim, be it committed or not, or has just deleted it."""
        held = self._rows("SELECT engine FROM masakari_ng_claims")
        pids = {int(row["engine"].split(":")[1]) for row in held if row["engine"]}
        line = f"Set host {failure.host} on maintenance"
        # On a busy machine both may have had it.
        worker, *_ = [
            engine
            for engine in self.engines
            if engine.process.pid in pids or (not pids and line in engine.log.read_text())
        ]
        return worker

    def strike(self, worker: Daemon, how: str) -> None:
        """Kill, stop or freeze an engine; the frozen one wakes when another has taken over."""
        if how == "kill":
            worker.kill()
        elif how == "term":
            worker.process.signal(signal.SIGTERM)
        else:
            worker.process.signal(signal.SIGSTOP)
            pid = f":{worker.process.pid}:"
            try:
                eventually(lambda: not self._holds(pid), timeout=IDLE + CLAIM_TIMEOUT + GRACE)
                # What has taken over does something before the other wakes.
                self.cloud.arm_faults([])
            finally:
                worker.process.signal(signal.SIGCONT)

    def settled(self, failure: Failure, *, within: float = CLAIM_TIMEOUT + GRACE + FLOW) -> str:
        """Wait for the final status, and for nothing to be left of the recovery."""
        eventually(
            lambda: self._status(failure) in _FINAL and not self._leftovers(), timeout=within
        )
        return self._status(failure)

    def audit(self, failure: Failure) -> dict[str, object]:
        """What must not be there, by what it is."""
        servers = self.cloud.servers.values()
        evacuations = self.cloud.requests("evacuate", accepted=True)
        attempts = self.attempts(failure)
        moves = self._rows(
            "SELECT instance_name, status FROM vmoves WHERE notification_uuid = %s", failure.uuid
        )
        wrong = {
            "locked by us": [s.name for s in servers if s.locked and "user" not in s.name],
            "user's lock": [s.name for s in servers if not s.locked and "user" in s.name],
            "open vmoves": [move for move in moves if move["status"] in {"pending", "ongoing"}],
            "claims and journal": self._leftovers(),
            "evacuated twice": [
                self.cloud.servers[uuid].name
                for uuid, count in evacuations.items()
                if count > max(1, attempts)
            ],
        }
        if self._status(failure) == "finished":
            wrong["not moved"] = [s.name for s in servers if s.host == failure.host]
        return {what: found for what, found in wrong.items() if found}

    def attempts(self, failure: Failure) -> int:
        """How often a recovery was begun."""
        history = self._rows("SELECT status FROM crash_history WHERE uuid = %s", failure.uuid)
        return sum(row["status"] == "running" for row in history)

    def link(self) -> Any:
        return connect(self._port, self.schema)

    def close(self) -> None:
        self.daemons.close()
        self._client.close()
        self._database.close()
        for proxy in self.proxies.values():
            proxy.close()
        self.cloud.stop()

    def _stored(self, name: str, *, reserved: bool) -> str:
        """A segment with the host, maybe a reserved one, and the report; gives its uuid."""
        method = RecoveryMethod.RESERVED_HOST if reserved else RecoveryMethod.AUTO
        segment = self._database.write(
            lambda s: segments.create(s, name=name, service_type="c", recovery_method=method)
        )
        if reserved:
            self._host(segment, f"{name}-reserved", reserved=True)
        host = self._host(segment, name)
        return self._database.write(
            lambda s: notifications.create(
                s,
                type=NotificationType.COMPUTE_HOST,
                generated_time=datetime.now(UTC).replace(tzinfo=None),
                source_host_uuid=host.uuid,
                payload=_HOST_DOWN,
                failover_segment_uuid=segment.uuid,
            )
        ).notification_uuid

    def _host(self, segment: Segment, name: str, *, reserved: bool = False) -> Host:
        return self._database.write(
            lambda s: hosts.create(
                s,
                segment_uuid=segment.uuid,
                name=name,
                type="COMPUTE",
                control_attributes="SSH",
                reserved=reserved,
            )
        )

    def _status(self, failure: Failure) -> str:
        uuid = failure.uuid
        return str(self._database.read(lambda s: notifications.by_uuid(s, uuid)).status)

    def _holds(self, process: str) -> bool:
        claimed = self._rows("SELECT engine FROM masakari_ng_claims")
        return any(process in row["engine"] for row in claimed)

    def _leftovers(self) -> list[dict[str, Any]]:
        return self._rows("SELECT notification_uuid, engine FROM masakari_ng_claims") + self._rows(
            "SELECT notification_uuid, instance_uuid, locked FROM masakari_ng_journal"
        )

    def _rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        with closing(self.link()) as link, link.cursor(DictCursor) as cursor:
            cursor.execute(query, values or None)
            return list(cursor.fetchall())


def _through(url: str, port: int, proxy: Proxy) -> str:
    return url.replace(f":{port}/", f":{proxy.port}/")
