"""Plays a scenario on real daemons and collects what can be seen of it from outside."""

import json
import re
import signal
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from masakari_ng.demo.cloud import SimulatedCloud
from tests.conformance.recovery.frames import Frames, masked, masked_json
from tests.daemons import Api, Daemon, Daemons
from tests.servers import MariaDB, eventually

HISTORY = """
CREATE TABLE conformance_history (
    id BIGINT AUTO_INCREMENT PRIMARY KEY, row_uuid VARCHAR(64), value TEXT);
CREATE TRIGGER conformance_n1 AFTER INSERT ON notifications FOR EACH ROW
    INSERT INTO conformance_history (row_uuid, value) VALUES (NEW.notification_uuid, NEW.status);
CREATE TRIGGER conformance_n2 AFTER UPDATE ON notifications FOR EACH ROW
    INSERT INTO conformance_history (row_uuid, value)
    SELECT NEW.notification_uuid, NEW.status FROM DUAL WHERE NOT (NEW.status <=> OLD.status);
CREATE TRIGGER conformance_v1 AFTER INSERT ON vmoves FOR EACH ROW
    INSERT INTO conformance_history (row_uuid, value) VALUES (NEW.uuid, NEW.status);
CREATE TRIGGER conformance_v2 AFTER UPDATE ON vmoves FOR EACH ROW
    INSERT INTO conformance_history (row_uuid, value)
    SELECT NEW.uuid, NEW.status FROM DUAL WHERE NOT (NEW.status <=> OLD.status);
CREATE TRIGGER conformance_h AFTER UPDATE ON hosts FOR EACH ROW
    INSERT INTO conformance_history (row_uuid, value)
    SELECT NEW.uuid, CONCAT('reserved=', NEW.reserved, ' on_maintenance=', NEW.on_maintenance)
    FROM DUAL WHERE NOT (NEW.reserved <=> OLD.reserved
        AND NEW.on_maintenance <=> OLD.on_maintenance);
"""
"""Triggers that write down every change of status, for a schema in which scenarios are played."""


def read(path: Path) -> dict[str, Any]:
    """The scenario of a file, filled up from the one that it is `like`."""
    scenario: dict[str, Any] = json.loads(path.read_text())
    if "corrections" in scenario:
        named = {"masakari_ng": {"corrections": scenario["corrections"]}}
        scenario["config"] = _merged(scenario.get("config", {}), named)
    if "like" not in scenario:
        return scenario
    merged: dict[str, Any] = _merged(read(path.with_name(f"{scenario['like']}.json")), scenario)
    return merged


class Play:
    """One scenario: `run` plays it, `result` tells how it went.

    Args:
        scenario: the content of a scenario file.
        api: serves the database, whatever the scenario.
        daemons: starts the engines.
        schema: name of the database that the daemons use; without rows, with `HISTORY`.
        native: engines run on native threads.
    """

    def __init__(
        self,
        scenario: Mapping[str, Any],
        *,
        api: Api,
        daemons: Daemons,
        cloud: SimulatedCloud,
        mariadb: MariaDB,
        schema: str,
        native: bool,
    ) -> None:
        self._scenario = scenario
        self._api = api
        self._daemons = daemons
        self._arguments = ["--threads"] if native else []
        self._cloud = cloud
        self._mariadb = mariadb
        self._schema = schema
        self._engine: Daemon | None = None
        self._segments: dict[str, str] = {}
        self._hosts: dict[str, str] = {}
        self._notifications: dict[str, str] = {}
        self._posts: dict[str | None, str] = {}
        self._http: list[dict[str, Any]] = []

    def run(self) -> None:
        """Build the site, play the steps, wait for the end.

        Raises:
            WaitTimeout: a condition did not come true.
        """
        self._cloud.reset(self._scenario["cloud"])
        self._build_site()
        self._sql("TRUNCATE conformance_history")
        if self._scenario.get("engine", "auto") == "auto":
            self._step_start_engine(True, {})
        self._cloud.arm_faults()
        for step in self._scenario["steps"]:
            (kind,) = step.keys() - {"timeout", "stay"}
            getattr(self, f"_step_{kind}")(step[kind], step)
        stop = self._scenario["stop"]
        self._step_wait(stop["statuses"], {"timeout": 40} | stop)
        time.sleep(stop.get("settle", 0.5))

    def _build_site(self) -> None:
        for segment in self._scenario["segments"]:
            body = {"service_type": "COMPUTE"} | segment
            hosts = body.pop("hosts")
            made = self._api.call("POST", "/v1/segments", {"segment": body}, version="1.2")
            self._segments[segment["name"]] = made.json()["segment"]["uuid"]
            for host in hosts:
                path = f"/v1/segments/{self._segments[segment['name']]}/hosts"
                body = {"type": "COMPUTE", "control_attributes": "SSH"} | host
                made = self._api.call("POST", path, {"host": body})
                self._hosts[host["name"]] = made.json()["host"]["uuid"]
        for key, change in self._scenario.get("database", {}).items():
            table, name = key.split(":", 1)
            for column, value in change.items():
                self._sql(f"UPDATE `{table}` SET `{column}` = %s WHERE name = %s", value, name)

    # Steps.
    def _step_post(self, post: Mapping[str, Any], _step: object) -> None:
        body = {key: post[key] for key in ("type", "hostname", "payload")}
        body["generated_time"] = _instant(post).strftime("%Y-%m-%dT%H:%M:%S.%f")
        headers = {}
        if "request_id" in post:
            headers["X-OpenStack-Request-ID"] = post["request_id"]
            self._posts[post["request_id"]] = f"{post['id']}, given by caller"
        reply = self._api.call("POST", "/v1/notifications", {"notification": body}, headers=headers)
        entry = {"post": post["id"], "status": reply.status_code}
        if reply.status_code == 202:
            self._notifications[post["id"]] = reply.json()["notification"]["notification_uuid"]
            self._posts[reply.headers.get("x-openstack-request-id")] = post["id"]
        else:
            entry["body"] = reply.json()
        self._http.append(entry)

    def _step_insert(self, row: Mapping[str, Any], _step: object) -> None:
        self._notifications[row["id"]] = str(uuid.uuid4())
        self._sql(
            "INSERT INTO notifications (created_at, deleted, notification_uuid, generated_time,"
            " type, payload, status, source_host_uuid, failover_segment_uuid)"
            " VALUES (%s, 0, %s, %s, %s, %s, %s, %s, %s)",
            _instant({}),
            self._notifications[row["id"]],
            _instant(row),
            row["type"],
            json.dumps(row["payload"]),
            row["status"],
            self._hosts.get(row["hostname"], row["hostname"]),
            next(iter(self._segments.values())),
        )

    def _step_wait(self, wanted: Mapping[str, str | list[str]], step: Mapping[str, Any]) -> None:
        eventually(
            lambda: all(
                self._row("notifications", self._notifications[name])["status"]
                in ([status] if isinstance(status, str) else status)
                for name, status in wanted.items()
            ),
            timeout=step.get("timeout", 30),
        )

    def _step_wait_frame(self, want: dict[str, Any], step: Mapping[str, Any]) -> None:
        eventually(
            lambda: any(self._cloud.matches(want, frame) for frame in list(self._cloud.frames)),
            timeout=step.get("timeout", 30),
        )

    def _step_sleep(self, seconds: float, _step: object) -> None:
        time.sleep(seconds)

    def _step_start_engine(self, wait: str | bool, _step: object) -> None:
        self._engine = self._daemons.engine(
            self._scenario.get("config"), arguments=self._arguments, wait=wait != "nowait"
        )

    def _step_kill_engine(self, _value: object, _step: object) -> None:
        self._engine.kill()

    def _step_signal_engine(self, name: str, step: Mapping[str, Any]) -> None:
        number = signal.Signals[f"SIG{name}"]
        self._engine.process.signal(number)
        if not step.get("stay"):
            eventually(lambda: not self._engine.process.alive, timeout=step.get("timeout", 70))
            code = self._engine.process.exit_code
            self._http.append({"engine": number.name, "exit": code})

    def _step_patch_server(self, patch: Mapping[str, Any], _step: object) -> None:
        self._cloud.patch_server(patch["id"], patch["set"])

    def _step_faults(self, rules: list[dict[str, Any]], _step: object) -> None:
        self._cloud.arm_faults(rules)

    def _step_http(self, request: Mapping[str, Any], _step: object) -> None:
        ids = {**self._segments, **self._hosts, **self._notifications}
        path = re.sub(r"\{([^}]+)\}", lambda found: ids[found[1]], request["path"])
        reply = self._api.call(
            request["method"],
            f"/v1{path}",
            request.get("body"),
            version=request.get("version", "1.0"),
        )
        entry = {"request": f"{request['method']} {request['path']}", "status": reply.status_code}
        if reply.status_code >= 400 and reply.content:
            entry["body"] = reply.json()
        self._http.append(entry)

    # Result.
    def result(self) -> dict[str, Any]:
        """What a golden file holds, but for `keystone`."""
        servers = {server.id: server.name for server in self._cloud.servers.values()}
        names = {
            id: f"<{name}>"
            for ids in (self._notifications, self._hosts, self._segments)
            for name, id in ids.items()
        } | {id: f"<{name}>" for id, name in servers.items()}
        services = {one["id"]: f"<service of {one['host']}>" for one in self._cloud.services}
        frames = Frames(list(self._cloud.frames), servers, names | services)
        flags = ("ordered", "racing", "parallel")
        vmoves = self._vmoves(servers, names)
        if self._scenario.get("parallel"):
            vmoves.sort(key=lambda vmove: vmove["instance"])
        return {
            "http": masked_json(self._http, names),
            "notifications": {
                name: self._notification(id, names) for name, id in self._notifications.items()
            },
            "vmoves": vmoves,
            "hosts": {name: self._host(id) for name, id in self._hosts.items()},
            "workflow_details": {
                name: self._details(id, names) for name, id in self._notifications.items()
            },
            "vmoves_status": {
                name: self._api.call("GET", f"/v1/notifications/{id}/vmoves").status_code
                for name, id in self._notifications.items()
            },
            "frames": frames.result(**{flag: self._scenario.get(flag, False) for flag in flags}),
            "nova_headers": frames.headers(self._posts),
            "cloud": self._cloud_state(),
        }

    def _vmoves(self, servers: Mapping[str, str], names: Mapping[str, str]) -> list[dict[str, Any]]:
        notifications = {id: name for name, id in self._notifications.items()}
        return [
            {
                "notification": notifications.get(row["notification_uuid"]),
                "instance": servers.get(row["instance_uuid"]),
                "name_matches": row["instance_name"] == servers.get(row["instance_uuid"]),
                "type": row["type"],
                "source_host": row["source_host"],
                "dest_host": row["dest_host"],
                "history": self._history(row["uuid"]),
                "message": row["message"] and masked(row["message"], names),
                "start_time": row["start_time"] is not None,
                "end_time": row["end_time"] is not None,
            }
            for row in self._sql("SELECT * FROM vmoves ORDER BY id")
        ]

    def _notification(self, id: str, names: Mapping[str, str]) -> dict[str, Any]:
        message = self._row("notifications", id)["message"]
        return {"history": self._history(id), "message": message and masked(message, names)}

    def _host(self, id: str) -> dict[str, Any]:
        row = self._row("hosts", id)
        flags = {flag: row[flag] for flag in ("reserved", "on_maintenance")}
        return flags | {"history": self._history(id)}

    def _details(self, id: str, names: Mapping[str, str]) -> dict[str, Any]:
        reply = self._api.call("GET", f"/v1/notifications/{id}", version="1.1")
        details = None
        if reply.status_code == 200:
            details = _chronological(reply.json()["notification"]["recovery_workflow_details"])
        return {"status": reply.status_code, "details": masked_json(details, names)}

    def _cloud_state(self) -> dict[str, Any]:
        shown = ("vm_state", "task_state", "host", "locked")
        return {
            "servers": {
                server.name: {key: getattr(server, key) for key in shown}
                for server in self._cloud.servers.values()
            },
            "services": {
                service["host"]: [service["status"], service["disabled_reason"]]
                for service in self._cloud.services
                if service["binary"] == "nova-compute"
            },
            "aggregates": {one["name"]: one["hosts"] for one in self._cloud.aggregates},
        }

    def _history(self, id: str) -> list[str]:
        rows = self._sql(
            "SELECT value FROM conformance_history WHERE row_uuid = %s ORDER BY id", id
        )
        return [row["value"] for row in rows]

    def _row(self, table: str, id: str) -> dict[str, Any]:
        key = "notification_uuid" if table == "notifications" else "uuid"
        return self._sql(f"SELECT * FROM `{table}` WHERE {key} = %s", id)[0]

    def _sql(self, text: str, *values: object) -> list[dict[str, Any]]:
        return self._mariadb.sql(self._schema, text, *values)


def _merged(base: Any, own: Any) -> Any:
    """Objects are merged, whatever else is there twice is taken from `own`."""
    if not (isinstance(base, dict) and isinstance(own, dict)):
        return own
    both = base.keys() & own.keys()
    return base | own | {key: _merged(base[key], own[key]) for key in both}


def _instant(spec: Mapping[str, Any]) -> datetime:
    """Now, or so many seconds from now; naive UTC."""
    offset = timedelta(seconds=spec.get("generated_offset", 0))
    return datetime.now(UTC).replace(tzinfo=None) + offset


def _chronological(details: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Flows by time; a flow begins where a task name repeats."""
    flows: list[list[dict[str, Any]]] = []
    for task in details:
        if not flows or task["name"] in {other["name"] for other in flows[-1]}:
            flows.append([])
        flows[-1].append(task)
    flows.sort(key=lambda flow: flow[0]["progress_details"][0]["timestamp"])
    return [task for flow in flows for task in flow]
