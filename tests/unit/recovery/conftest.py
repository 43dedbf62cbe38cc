"""A failed host in the database and in the simulated cloud, and the recovery that is claimed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from masakari_ng.compute.nova import Cloud
from masakari_ng.db import claims, hosts, journal, notifications, segments, vmoves, workflows
from masakari_ng.db.session import Database
from masakari_ng.domain import (
    Correction,
    Host,
    JournalEntry,
    NotificationStatus,
    NotificationType,
    RecoveryMethod,
    VMove,
    VMoveStatus,
)
from masakari_ng.recovery.host import HostRecovery
from masakari_ng.recovery.move import InstanceMove
from masakari_ng.recovery.reserved_host import HostLocks
from masakari_ng.recovery.runner import FlowRunner
from masakari_ng.recovery.task import RecoveryContext

SERVICES = [{"host": "compute-1"}, {"host": "compute-2"}]
PAYLOAD = {"event": "STOPPED", "cluster_status": "OFFLINE", "host_status": "NORMAL"}


def uuid_of(name: str) -> str:
    """`vm-3` -> the uuid of the third server."""
    return f"11111111-0000-4000-8000-{int(name.removeprefix('vm-')):012}"


def described(name: str, **state: Any) -> dict[str, Any]:
    """A server of the failed host, for the description of a cloud."""
    return {"id": uuid_of(name), "name": name, "host": "compute-1", **state}


@pytest.fixture
def host(database: Database) -> Host:
    """`compute-1` of a segment with method `auto`."""
    segment = database.write(
        lambda session: segments.create(
            session, name="seg", service_type="COMPUTE", recovery_method=RecoveryMethod.AUTO
        )
    )
    return database.write(
        lambda session: hosts.create(
            session,
            segment_uuid=segment.uuid,
            name="compute-1",
            type="COMPUTE",
            control_attributes="SSH",
        )
    )


@pytest.fixture
def context(conf, clock, cloud, database: Database, host: Host) -> RecoveryContext:
    """The claimed failure of `host`."""
    notification = database.write(
        lambda session: notifications.create(
            session,
            type=NotificationType.COMPUTE_HOST,
            generated_time=clock.utcnow(),
            source_host_uuid=host.uuid,
            payload=PAYLOAD,
            failover_segment_uuid=host.segment.uuid,
        )
    )
    claim = database.write(
        lambda session: claims.take(
            session, notification, "engine-1", expected={NotificationStatus.NEW}
        )
    )
    assert claim
    return RecoveryContext(
        conf=conf,
        nova=Cloud(conf).nova("req-1"),
        clock=clock,
        database=database,
        claim=claim,
        notification=notification,
        locks=HostLocks(),
    )


@dataclass
class Recovery:
    """What a test does with the recovery and sees of it."""

    context: RecoveryContext
    host: Host
    cloud: Any
    reserved_hosts: Sequence[str] = ()

    def run(self) -> None:
        """Recover the host as an engine would."""
        runner = FlowRunner(self.context.database)
        recovery = HostRecovery(self.context, self.host.name, runner, self.reserved_hosts)
        recovery.run(self.host.segment.recovery_method)

    def frozen(self, after: int) -> "Recovery":
        """The same recovery in an engine that is frozen, until another has taken over.

        Args:
            after: number of requests to Nova before that.
        """
        nova = Freezing(self, after)
        return replace(self, context=replace(self.context, nova=nova))

    @property
    def changes_when_thawed(self) -> list[Any]:
        """What Nova was asked to change after the claim was lost."""
        assert self.context.nova.seen is not None
        late = self.cloud.frames[self.context.nova.seen :]
        return [frame["body"] for frame in late if frame["method"] != "GET"]

    def on(self, clock: Any) -> "Recovery":
        """The same recovery with a clock of one's own."""
        return replace(self, context=replace(self.context, clock=clock))

    def taken_over(self) -> "Recovery":
        """The same recovery after the death of its engine."""
        database, claim = self.context.database, self.context.claim
        database.write(lambda session: claims.hand_over(session, claim))
        stale = database.read(lambda session: claims.stale(session, 60))[0]
        taken = database.write(lambda session: claims.take_over(session, stale, "engine-2", 60))
        assert taken
        return replace(self, context=replace(self.context, claim=taken, resumed=True))

    def corrected(self, *corrections: str) -> "Recovery":
        """The same recovery without these mistakes of upstream's."""
        mended = frozenset(map(Correction, corrections))
        return replace(self, context=replace(self.context, corrections=mended))

    def begun(self, name: str, status: str = "pending", **entry: Any) -> VMove:
        """A move as it was planned, or as a dead engine may have left it.

        Args:
            name: of the server.
            status: of the vmove.
            entry: fields of its journal.
        """
        return self.context.database.write(
            lambda session: _begun(session, self.notification_uuid, name, status, entry)
        )

    def move(self, vmove: VMove) -> VMove:
        """Carry one move out, or on, as the evacuation task would."""
        (entry,) = [entry for entry in self.journal if entry.vmove_uuid == vmove.uuid]
        InstanceMove(self.context, vmove, entry).run()
        return self.context.database.read(lambda session: vmoves.by_uuid(session, vmove.uuid))

    @property
    def notification_uuid(self) -> str:
        return self.context.notification.notification_uuid

    @property
    def moves(self) -> list[VMove]:
        """The vmoves, first inserted first."""
        uuid = self.notification_uuid
        return self.context.database.read(lambda s: vmoves.of_notification(s, uuid))[::-1]

    @property
    def journal(self) -> list[JournalEntry]:
        uuid = self.notification_uuid
        return self.context.database.read(lambda s: journal.of_notification(s, uuid))

    def frames(self, name: str | None = None) -> list[str]:
        """Nova requests on one server, or those on none, in short: `GET`, `lock`, `os-stop`."""
        mine = f"/servers/{uuid_of(name)}" if name else ""
        return [
            _short(frame, mine)
            for frame in self.cloud.frames
            if frame["path"].startswith("/compute")
            and (mine in frame["path"] if mine else "/servers/1111" not in frame["path"])
        ]


class Freezing:
    """A Nova that answers some requests before the claim is lost.

    Attributes:
        seen: number of frames up to that moment.
    """

    def __init__(self, recovery: Recovery, after: int) -> None:
        self._recovery = recovery
        self._left = after
        self.seen: int | None = None
        self._count()

    def __getattr__(self, name: str) -> Any:
        request = getattr(self._recovery.context.nova, name)

        def counted(*arguments: Any) -> Any:
            try:
                return request(*arguments)
            finally:
                self._left -= 1
                self._count()

        return counted

    def _count(self) -> None:
        if self._left == 0:
            self._recovery.taken_over()
            self.seen = len(self._recovery.cloud.frames)


def _begun(
    session: Any, notification_uuid: str, name: str, status: str, entry: dict[str, Any]
) -> VMove:
    vmove = vmoves.create(
        session,
        notification_uuid=notification_uuid,
        instance_uuid=uuid_of(name),
        instance_name=name,
        source_host="compute-1",
    )
    vmoves.update(session, vmove.uuid, status=VMoveStatus(status))
    journal.plan(session, vmove)
    if entry:
        journal.update(session, vmove.uuid, **entry)
    return vmoves.by_uuid(session, vmove.uuid)


def _short(frame: dict[str, Any], mine: str) -> str:
    if not mine:
        return f"{frame['method']} {frame['path'].removeprefix('/compute/v2.1')}"
    if frame["method"] == "GET":
        return "GET"
    ((action, arguments),) = frame["body"].items()
    return f"{action} {arguments['state']}" if action == "os-resetState" else action


@pytest.fixture
def recovery(context: RecoveryContext, host: Host, cloud: Any) -> Recovery:
    return Recovery(context, host, cloud)


@pytest.fixture
def build(cloud) -> Callable[..., None]:
    """Gives the simulated cloud two hosts and these servers."""

    def build(*servers: dict[str, Any], **more: Any) -> None:
        cloud.reset({"services": SERVICES, "servers": list(servers), **more})
        cloud.arm_faults()

    return build


def details(recovery: Recovery) -> dict[str, tuple[str, list[tuple[float, str]]]]:
    """State and messages of each task with messages."""
    uuid = recovery.notification_uuid
    found = recovery.context.database.read(lambda session: workflows.details(session, uuid))
    return {
        task.name: (
            task.state,
            [(entry.progress, entry.message) for entry in task.progress_details],
        )
        for task in found
    }
