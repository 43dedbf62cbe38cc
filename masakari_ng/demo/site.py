"""One segment on the stage: built by a scene, reported about, looked at."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from masakari_ng.clock import Clock
from masakari_ng.demo.cloud_server import Server
from masakari_ng.demo.picture import InstanceView, Picture
from masakari_ng.demo.script import FAILED, HOSTS, RESERVE, SEGMENT, Actor, Report, Scene
from masakari_ng.demo.stage import Stage

_SPEED: Mapping[str, Any] = {
    "evacuate": {"seconds": 2.5},
    "stop": {"seconds": 0.5},
    "start": {"seconds": 0.5},
}


class Site:
    """Builds what the scene needs, in the cloud and by the API.

    Args:
        stage: where.
        scene: what.
        clock: gives the time of reports.

    Raises:
        DemoFailure: the API does not answer as it should.
    """

    def __init__(self, stage: Stage, scene: Scene, clock: Clock) -> None:
        self._cloud = stage.cloud
        self._rest = stage.rest
        self._scene = scene
        self._clock = clock
        for host in HOSTS:
            spare = scene.reserve and host == RESERVE
            self._cloud.add_service(host, status="disabled" if spare else "enabled")
        self._ids = {
            actor.name: self._cloud.add_server(actor.name, actor.host, **{**_SPEED, **actor.state})
            for actor in scene.cast
        }
        if scene.forgotten:
            evacuation: dict[str, Any] = {
                "path": self._ids[scene.forgotten],
                "body": {"evacuate": {}},
            }
            self._cloud.arm_faults([{"match": evacuation, "do": {"status": 200, "body": {}}}])
        segment = {"name": SEGMENT, "recovery_method": scene.method, "service_type": "COMPUTE"}
        made = self._rest.post("/segments", {"segment": segment})["segment"]
        self._hosts = f"/segments/{made['uuid']}/hosts"
        for name in HOSTS:
            spare = scene.reserve and name == RESERVE
            described = {
                "name": name,
                "type": "COMPUTE",
                "control_attributes": "SSH",
                "reserved": spare,
            }
            self._rest.post(self._hosts, {"host": described})

    def report(self, report: Report) -> str:
        """Report as a monitor does; gives the path of the notification.

        Raises:
            DemoFailure: it is refused.
        """
        body = self._body(report)
        created = self._rest.post("/notifications", body)["notification"]
        return f"/notifications/{created['notification_uuid']}"

    def refusal(self, report: Report) -> tuple[int, str]:
        """Status and text of the answer to a report.

        Raises:
            DemoFailure: the API does not answer.
        """
        return self._rest.answer("POST", "/notifications", self._body(report))

    def host(self, name: str) -> dict[str, Any]:
        """What the API says about a host."""
        hosts: list[dict[str, Any]] = self._rest.get(self._hosts)["hosts"]
        return next(host for host in hosts if host["name"] == name)

    def picture(self, notification: str, seconds: float) -> Picture:
        """All that can be seen now.

        Args:
            notification: its path.
            seconds: since the report.
        """
        found = self._rest.get(notification)["notification"]
        moves = []
        if found["type"] == "COMPUTE_HOST":
            moves = self._rest.get(f"{notification}/vmoves")["vmoves"]
        names = {uuid: name for name, uuid in self._ids.items()}
        entries = [
            entry
            for task in found.get("recovery_workflow_details") or []
            for entry in task["progress_details"]
        ]
        entries.sort(key=lambda entry: str(entry["timestamp"]))
        return Picture(
            seconds=seconds,
            status=found["status"],
            instances=self.instances(moves),
            messages=tuple(_readable(entry["message"], names) for entry in entries),
        )

    def instances(self, moves: list[dict[str, Any]]) -> tuple[InstanceView, ...]:
        """Every instance as it is now, with these vmoves."""
        servers = self._cloud.servers
        moves = sorted(moves, key=lambda move: int(move["id"]))
        return tuple(
            _view(actor, servers[self._ids[actor.name]], moves) for actor in self._scene.cast
        )

    def _body(self, report: Report) -> dict[str, Any]:
        happened = self._clock.utcnow() - timedelta(hours=report.hours_ago)
        payload = dict(report.payload)
        if report.instance:
            payload["instance_uuid"] = self._ids[report.instance]
        described = {
            "type": report.kind,
            "hostname": FAILED,
            "generated_time": happened.isoformat(),
            "payload": payload,
        }
        return {"notification": described}


def _view(actor: Actor, server: Server, moves: list[dict[str, Any]]) -> InstanceView:
    mine = [move for move in moves if move["instance_uuid"] == server.id]
    own_lock = "user" if actor.state.get("locked") else "ours"
    return InstanceView(
        name=actor.name,
        ha_enabled=bool(actor.state.get("metadata")),
        before=_state(actor.state.get("vm_state", "active"), actor.state.get("task_state")),
        now=_state(server.vm_state, server.task_state),
        source=actor.host,
        host=server.host,
        move=", ".join(move["status"] for move in mine),
        reason=" ".join(move["message"] for move in mine if move["message"]),
        lock=own_lock if server.locked else "",
    )


def _state(vm_state: str, task_state: str | None) -> str:
    return f"{vm_state}/{task_state}" if task_state else vm_state


def _readable(message: str, names: Mapping[str, str]) -> str:
    """A progress message with names for uuids, and room to break a list of them."""
    for uuid, name in names.items():
        message = message.replace(uuid, name)
    return message.replace(",", ", ").replace(",  ", ", ")
