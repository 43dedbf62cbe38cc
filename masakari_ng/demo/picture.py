"""What a scene hands to the screen: values, free of how they are shown."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InstanceView:
    """One instance at one moment.

    Attributes:
        ha_enabled: it asks for high availability in its metadata.
        before: state when its host failed, `vm_state` or `vm_state/task_state`.
        now: state at this moment.
        source: host when the failure happened.
        host: host at this moment.
        move: statuses of its vmoves, oldest first; empty as long as there is none.
        reason: why a move failed; empty otherwise.
        lock: whose lock it has, `user` or `ours`; empty for none.
    """

    name: str
    ha_enabled: bool
    before: str
    now: str
    source: str
    host: str
    move: str
    reason: str
    lock: str


@dataclass(frozen=True, slots=True)
class Picture:
    """All that a scene shows of one moment.

    Attributes:
        seconds: since the failure was reported.
        status: of the notification.
        messages: progress messages so far, oldest first.
    """

    seconds: float
    status: str
    instances: tuple[InstanceView, ...]
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """How a scene ended.

    Attributes:
        headline: the result in one sentence.
        meaning: what it means.
        faults: what is not as it should be; empty if the scene came out well.
        remarks: what else is worth knowing.
        steps: what the operator does next.
    """

    headline: str
    meaning: str
    instances: tuple[InstanceView, ...]
    faults: tuple[str, ...]
    remarks: tuple[str, ...]
    steps: tuple[str, ...]
