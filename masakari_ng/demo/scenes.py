"""What is built and done on the stage, and whether it came out as it should."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from masakari_ng import errors
from masakari_ng.clock import Clock, wait_until
from masakari_ng.demo.cloud_server import Server
from masakari_ng.demo.picture import InstanceView, Picture, Summary
from masakari_ng.demo.screen import Screen
from masakari_ng.demo.stage import Stage
from masakari_ng.domain import NotificationStatus

_FAILED = "node-1"
_HOSTS = (_FAILED, "node-2", "node-3", "node-4")
_SEGMENT = "rack-1"
_NOTICED_AFTER = 2.5
"""Seconds until Nova reports the service of the dead host as down."""

_MOVE = {"evacuate": {"seconds": 2.5}, "stop": {"seconds": 0.5}}
_LOOK = 0.2
_LIMIT = 90.0
_UNDER_WAY = frozenset({NotificationStatus.NEW, NotificationStatus.RUNNING})

_HA = {"metadata": {"HA_Enabled": "True"}}


@dataclass(frozen=True, slots=True)
class _Actor:
    """One instance of the scene.

    Attributes:
        then: vm_state that it must have once it has moved. Spec: recovery §7.4.
    """

    name: str
    host: str
    then: str
    state: Mapping[str, Any] = field(default_factory=dict)


_CAST = (
    _Actor("web-1", _FAILED, "active", _HA),
    _Actor("web-2", _FAILED, "active", _HA | {"locked": True}),
    _Actor("web-3", _FAILED, "active"),
    _Actor("batch-1", _FAILED, "stopped", {"vm_state": "stopped"}),
    _Actor("db-1", _FAILED, "error", _HA | {"vm_state": "error"}),
    _Actor("db-2", _FAILED, "active", {"vm_state": "resized"}),
    _Actor("cache-1", _FAILED, "stopped", {"vm_state": "paused"}),
    _Actor("mail-1", _FAILED, "active", {"task_state": "pausing"}),
    _Actor("web-4", "node-2", "active", _HA),
    _Actor("db-3", "node-2", "active"),
    _Actor("web-5", "node-3", "active"),
    _Actor("batch-2", "node-4", "stopped", {"vm_state": "stopped"}),
)


class HostFailure:
    """A host of a segment dies; its instances, in all kinds of states, move to the others.

    Args:
        stage: where it is played.
        clock: measures and sleeps.
        stuck: names of instances that do not come to an end of their move.

    Raises:
        DemoFailure: the scene has no such instance on the host that fails.
    """

    title = "A host of a segment dies, and its instances come back on the other hosts."

    def __init__(self, stage: Stage, clock: Clock, stuck: frozenset[str] = frozenset()) -> None:
        self._cloud = stage.cloud
        self._rest = stage.rest
        self._clock = clock
        self._stuck = stuck
        self._ids: dict[str, str] = {}
        self._reported = 0.0
        unknown = stuck - {actor.name for actor in self._moving()}
        if unknown:
            raise errors.DemoFailure(f"There is no {', '.join(sorted(unknown))} on {_FAILED}")

    def play(self, screen: Screen) -> Summary:
        """Build, let the host fail, watch, judge.

        Raises:
            DemoFailure: the API does not answer as it should.
            WaitTimeout: the recovery does not end.
        """
        self._build_cloud()
        host_path = self._build_segment()
        screen.say(
            f"Segment {_SEGMENT} has {', '.join(_HOSTS)}; {len(_CAST)} instances run on them, "
            f"{len(self._moving())} of them on {_FAILED}."
        )
        self._cloud.fail_host(_FAILED, seconds=_NOTICED_AFTER)
        notification = self._report()
        screen.say(f"{_FAILED} has died, and a monitor has reported it to the API.")
        screen.say("")
        wait_until(
            functools.partial(self._ended, notification, screen),
            interval=_LOOK,
            timeout=_LIMIT,
            clock=self._clock,
        )
        return self._judge(self._picture(notification), host_path)

    # Building.
    def _build_cloud(self) -> None:
        for host in _HOSTS:
            self._cloud.add_service(host)
        for actor in _CAST:
            scripts: dict[str, Any] = dict(_MOVE)
            if actor.name in self._stuck:
                scripts["evacuate"] = {"outcome": "never"}
            state = scripts | dict(actor.state)
            self._ids[actor.name] = self._cloud.add_server(actor.name, actor.host, **state)

    def _build_segment(self) -> str:
        segment = {"name": _SEGMENT, "recovery_method": "auto", "service_type": "COMPUTE"}
        made = self._rest.post("/segments", {"segment": segment})["segment"]
        paths = {}
        for name in _HOSTS:
            host = {"name": name, "type": "COMPUTE", "control_attributes": "SSH"}
            path = f"/segments/{made['uuid']}/hosts"
            paths[name] = f"{path}/{self._rest.post(path, {'host': host})['host']['uuid']}"
        return paths[_FAILED]

    def _report(self) -> str:
        report = {
            "type": "COMPUTE_HOST",
            "hostname": _FAILED,
            "generated_time": self._clock.utcnow().isoformat(),
            "payload": {"event": "STOPPED", "host_status": "NORMAL", "cluster_status": "OFFLINE"},
        }
        self._reported = self._clock.monotonic()
        created = self._rest.post("/notifications", {"notification": report})["notification"]
        return f"/notifications/{created['notification_uuid']}"

    # Watching.
    def _ended(self, notification: str, screen: Screen) -> bool:
        picture = self._picture(notification)
        screen.show(picture)
        return picture.status not in _UNDER_WAY

    def _picture(self, notification: str) -> Picture:
        found = self._rest.get(notification)["notification"]
        moves = {
            move["instance_uuid"]: move
            for move in self._rest.get(f"{notification}/vmoves")["vmoves"]
        }
        names = {uuid: name for name, uuid in self._ids.items()}
        entries = [
            entry
            for task in found.get("recovery_workflow_details") or []
            for entry in task["progress_details"]
        ]
        entries.sort(key=lambda entry: str(entry["timestamp"]))
        servers = self._cloud.servers
        return Picture(
            seconds=self._clock.monotonic() - self._reported,
            status=found["status"],
            instances=tuple(_view(actor, servers[self._ids[actor.name]], moves) for actor in _CAST),
            messages=tuple(_readable(entry["message"], names) for entry in entries),
        )

    # Judging.
    def _moving(self) -> list[_Actor]:
        return [actor for actor in _CAST if actor.host == _FAILED]

    def _judge(self, picture: Picture, host_path: str) -> Summary:
        faults = [
            fault
            for actor, instance in zip(_CAST, picture.instances, strict=True)
            for fault in _faults(actor, instance)
        ]
        if picture.status != NotificationStatus.FINISHED:
            faults.append(f"The notification is {picture.status}.")
        host = self._rest.get(host_path)["host"]
        if not host["on_maintenance"]:
            faults.append(f"{_FAILED} is not on maintenance.")
        moved = sum(instance.host != instance.source for instance in picture.instances)
        requests = self._cloud.requests("lock").total(), self._cloud.requests("unlock").total()
        return Summary(
            headline=f"{moved} of {len(self._moving())} instances of {_FAILED} moved, "
            f"in {picture.seconds:.1f} seconds.",
            instances=picture.instances,
            faults=tuple(faults),
            remarks=_remarks(picture, *requests),
            steps=(*_rescues(picture), *_STEPS),
        )


_STEPS = (
    f"Repair {_FAILED}. It stays on maintenance and its compute service stays disabled, so that "
    "nothing happens to it behind your back.",
    f"openstack compute service set --enable {_FAILED} nova-compute",
    f"openstack segment host update --on_maintenance False {_SEGMENT} {_FAILED}",
)


def _view(actor: _Actor, server: Server, moves: Mapping[str, dict[str, Any]]) -> InstanceView:
    move = moves.get(server.id, {})
    own_lock = "user" if actor.state.get("locked") else "ours"
    return InstanceView(
        name=actor.name,
        ha_enabled=bool(actor.state.get("metadata")),
        before=_state(actor.state.get("vm_state", "active"), actor.state.get("task_state")),
        now=_state(server.vm_state, server.task_state),
        source=actor.host,
        host=server.host,
        move=move.get("status") or "",
        reason=move.get("message") or "",
        lock=own_lock if server.locked else "",
    )


def _state(vm_state: str, task_state: str | None) -> str:
    return f"{vm_state}/{task_state}" if task_state else vm_state


def _readable(message: str, names: Mapping[str, str]) -> str:
    """A progress message with names for uuids, and room to break a list of them."""
    for uuid, name in names.items():
        message = message.replace(uuid, name)
    return message.replace(",", ", ").replace(",  ", ", ")


def _faults(actor: _Actor, instance: InstanceView) -> list[str]:
    """What is wrong with one instance at the end."""
    faults = []
    should_move = actor.host == _FAILED
    if should_move and instance.host == actor.host:
        faults.append(f"{actor.name} is still on {actor.host}.")
    if not should_move and instance.host != actor.host:
        faults.append(f"{actor.name} has left {actor.host}.")
    if instance.now != actor.then:
        faults.append(f"{actor.name} is {instance.now}, not {actor.then}.")
    if should_move and instance.move != "succeeded":
        outcome = f"{instance.move or 'not recorded'}. {instance.reason}".strip()
        faults.append(f"The move of {actor.name} is {outcome}")
    if instance.lock != ("user" if actor.state.get("locked") else ""):
        faults.append(f"{actor.name} is locked by {instance.lock or 'nobody'}.")
    return faults


def _rescues(picture: Picture) -> list[str]:
    """What is to be done for instances that are still on the failed host."""
    left = [instance.name for instance in picture.instances if instance.host == _FAILED]
    if not left:
        return []
    return [f"Find out why {', '.join(left)} did not move, and move what can be moved by hand."]


def _remarks(picture: Picture, locks: int, unlocks: int) -> tuple[str, ...]:
    kept = [instance.name for instance in picture.instances if instance.lock == "user"]
    others = [instance for instance in picture.instances if instance.source != _FAILED]
    stayed = sum(instance.host == instance.source for instance in others)
    return (
        f"{stayed} of {len(others)} instances of the other hosts are where they were.",
        f"{locks} instances were locked while they moved and {unlocks} were unlocked afterwards; "
        f"the lock that its user had put on {', '.join(kept)} was left alone.",
        "Paused and stopped instances come back stopped, resized ones active, and those in error "
        "in error: what their users find is safe, not running by accident.",
    )


SCENES: Mapping[str, type[HostFailure]] = {"host-failure": HostFailure}
