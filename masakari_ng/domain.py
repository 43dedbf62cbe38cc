"""What the service talks about: enums and frozen records, free of any library.

Values are the ones stored and sent (Spec: data-model §2, rpc §5.2), so a member may be renamed but
never its value.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class RecoveryMethod(StrEnum):
    """How a segment chooses where instances of a failed host go."""

    AUTO = "auto"
    RESERVED_HOST = "reserved_host"
    AUTO_PRIORITY = "auto_priority"
    RH_PRIORITY = "rh_priority"


class NotificationType(StrEnum):
    """What failed."""

    COMPUTE_HOST = "COMPUTE_HOST"
    VM = "VM"
    PROCESS = "PROCESS"


class NotificationStatus(StrEnum):
    """Where a notification stands. Spec: data-model §9."""

    NEW = "new"
    RUNNING = "running"
    ERROR = "error"
    FAILED = "failed"
    IGNORED = "ignored"
    FINISHED = "finished"


UNFINISHED = frozenset(
    {NotificationStatus.NEW, NotificationStatus.RUNNING, NotificationStatus.ERROR}
)
"""A segment with a notification in one of these is in use and cannot be changed."""


class VMoveStatus(StrEnum):
    """Where the move of one instance stands."""

    PENDING = "pending"
    ONGOING = "ongoing"
    IGNORED = "ignored"
    FAILED = "failed"
    SUCCEEDED = "succeeded"


class VMoveType(StrEnum):
    """How an instance is moved; only evacuation is ever written."""

    EVACUATION = "evacuation"
    MIGRATION = "migration"
    LIVE_MIGRATION = "live_migration"


class Correction(StrEnum):
    """A mistake of upstream's that `[masakari_ng] corrections` mends. See docs/differences.md."""

    VMOVE_ACCOUNTING = "vmove_accounting"
    EVACUATION_ORDER = "evacuation_order"
    PENDING_VMOVES = "pending_vmoves"
    MOVED_BY_SERVICE_HOST = "moved_by_service_host"
    ERROR_TEXTS = "error_texts"
    RETRY_LOST_NOTIFICATIONS = "retry_lost_notifications"
    PROCESS_MAINTENANCE = "process_maintenance"
    PARALLEL_INSTANCE_RECOVERY = "parallel_instance_recovery"
    SKIP_DELETED_INSTANCES = "skip_deleted_instances"
    RESERVED_HOST_WAIT = "reserved_host_wait"
    USER_STOPPED_INSTANCES = "user_stopped_instances"
    EVENT_FAULTS = "event_faults"
    UNLOCK_ONLY_LOCKED = "unlock_only_locked"
    EXPIRY_BY_RECEIPT = "expiry_by_receipt"
    RETURN_RESERVED_HOST = "return_reserved_host"
    SERVICE_DOWN_POLL = "service_down_poll"
    RETRY_UNLOCK = "retry_unlock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What every stored row has. Instants are naive UTC with whole seconds."""

    id: int
    created_at: datetime | None = None
    updated_at: datetime | None = None
    deleted_at: datetime | None = None
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment(Record):
    """A failover segment: hosts that can take over each other's instances."""

    uuid: str
    name: str
    service_type: str
    description: str | None
    recovery_method: RecoveryMethod
    enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Host(Record):
    """A compute host, named as Nova names its compute service."""

    uuid: str
    name: str
    type: str
    control_attributes: str
    reserved: bool
    on_maintenance: bool
    failover_segment_id: str
    segment: Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification(Record):
    """A failure that a monitor reported."""

    notification_uuid: str
    generated_time: datetime
    source_host_uuid: str
    type: NotificationType
    payload: dict[str, str]
    status: NotificationStatus
    failover_segment_uuid: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VMove(Record):
    """The move of one instance within the recovery of a host."""

    uuid: str
    notification_uuid: str
    instance_uuid: str
    instance_name: str
    source_host: str | None
    dest_host: str | None
    start_time: datetime | None
    end_time: datetime | None
    type: VMoveType | None
    status: VMoveStatus | None
    message: str | None


@dataclass(frozen=True, slots=True)
class ProgressEntry:
    """One message of a task.

    Attributes:
        timestamp: `YYYY-MM-DD hh:mm:ss.ffffff`, UTC.
        progress: fraction from 0.0 to 1.0.
        message: what the operator reads.
    """

    timestamp: str
    progress: float
    message: str


@dataclass(frozen=True, slots=True)
class TaskDetails:
    """What one task of a recovery has reported. Spec: recovery §10.3."""

    name: str
    state: str
    progress: float
    progress_details: tuple[ProgressEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right of one engine to work on one notification.

    Attributes:
        engine: identity of the engine process that holds it.
        version: grows with each takeover; a writer with an older one has lost its right.
        working: False while another recovery of the same host runs.
    """

    notification_uuid: str
    source_host_uuid: str
    engine: str
    version: int
    working: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """What a takeover must know of one instance, written before each act.

    Attributes:
        vm_state: as Nova had it before the first act; None while nothing was done.
        compare_state: state that the moved instance must show (`error` after a reset).
        stop_after: the instance is to be stopped once it has moved.
        error_after: it is to be reset to `error` after that.
        locked: the lock was set by a recovery and is still to be released.
        evacuate_sent: an evacuation may have reached Nova.
        target: reserved host that the evacuation names; None leaves the choice to Nova.
    """

    vmove_uuid: str
    notification_uuid: str
    instance_uuid: str
    vm_state: str | None = None
    compare_state: str | None = None
    stop_after: bool = False
    error_after: bool = False
    locked: bool = False
    evacuate_sent: bool = False
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """Who asked and under which request id; travels with every RPC message. Spec: rpc §5.2."""

    request_id: str
    global_request_id: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    project_id: str | None = None
    project_name: str | None = None
    domain_id: str | None = None
    user_domain_id: str | None = None
    project_domain_id: str | None = None
    system_scope: str | None = None
    is_admin: bool = False
    is_admin_project: bool = True
    auth_token: str | None = field(default=None, repr=False)
    resource_uuid: str | None = None
    roles: tuple[str, ...] = ()
    service_roles: tuple[str, ...] = ()
    remote_address: str | None = None
    timestamp: str | None = None
    service_catalog: tuple[dict[str, Any], ...] = ()

    @property
    def nova_request_id(self) -> str:
        """The id under which Nova logs our requests."""
        return self.global_request_id or self.request_id
