"""The only table from how a recovery ended to the status of its notification.

Every exception is in it by its class or its nearest ancestor, so no notification stays `running`
with nobody to work on it. Spec: recovery §6 step 5, §9.2.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from masakari_ng import errors
from masakari_ng.domain import Correction, NotificationStatus, NotificationType

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ending:
    """What a class of exceptions means.

    Attributes:
        status: the notification's new status; None leaves the row as it is.
        handed_over: the recovery is to be taken up again, here or by another engine.
        level: of the log line.
        expected: its text is the reason. Else the reason is a general one, as upstream's, and the
            log shows the traceback of what is no error of ours.
        on_row: the reason goes into the notification's message, where clients see it.
    """

    status: NotificationStatus | None
    handed_over: bool = False
    level: int = logging.ERROR
    expected: bool = True
    on_row: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one recovery ended.

    Attributes:
        status: the notification's new status; None leaves the row as it is.
        message: new text of the row; None leaves it as it is, an empty one removes it.
        handed_over: the recovery is to be taken up again, here or by another engine.
        reason: why it did not end in the normal way.
        error: what said so.
    """

    status: NotificationStatus | None
    message: str | None = None
    handed_over: bool = False
    reason: str | None = None
    error: Exception | None = None


ENDINGS: Mapping[type[Exception], Ending] = {
    Exception: Ending(NotificationStatus.ERROR, expected=False),
    errors.RecoveryFailure: Ending(NotificationStatus.ERROR),
    errors.HostNotFound: Ending(NotificationStatus.ERROR, on_row=True),
    errors.SkipHostRecovery: Ending(NotificationStatus.FINISHED, level=logging.INFO),
    errors.SkipInstanceRecovery: Ending(NotificationStatus.FINISHED, level=logging.INFO),
    errors.IgnoreInstanceRecovery: Ending(NotificationStatus.IGNORED, level=logging.WARNING),
    # Without the database, for one: what is under way cannot be told, nor a status be stored.
    errors.Interrupted: Ending(None, handed_over=True, level=logging.WARNING),
    errors.ClaimLost: Ending(None, level=logging.WARNING),
}

_FLOW = {
    NotificationType.COMPUTE_HOST: "host",
    NotificationType.VM: "instance",
    NotificationType.PROCESS: "process",
}
_FLOW_OF_UPSTREAM = {**_FLOW, NotificationType.PROCESS: "instance"}
_LONGEST = 10_000  # of a message, in characters: the column takes 65,535 bytes


def of(
    error: Exception,
    uuid: str,
    kind: NotificationType,
    corrections: Collection[Correction] = (),
) -> Outcome:
    """Log what a recovery raised and say what becomes of its notification.

    Args:
        error: what left the recovery.
        uuid: the notification.
        kind: its type.
        corrections: mistakes of upstream's that are not to be made.
    """
    real = Correction.ERROR_TEXTS in corrections
    found = next(ENDINGS[kin] for kin in type(error).__mro__ if kin in ENDINGS)
    reason = str(error)
    if not found.expected:
        flow = _FLOW[kind] if real else _FLOW_OF_UPSTREAM[kind]
        reason = f"Failed to execute {flow} failure flow for notification '{uuid}'."
    if found.status is NotificationStatus.ERROR:
        text = "Failed to process notification '%s'. Reason: %s"
    else:
        text = "Recovery of notification '%s' ends here. Reason: %s"
    said = reason if found.expected else f"{reason} {error}"
    known = isinstance(error, errors.MasakariError)
    log.log(found.level, text, uuid, said, exc_info=None if known else error)
    return Outcome(
        found.status,
        message=_message(error, reason) if real or found.on_row else None,
        handed_over=found.handed_over,
        reason=reason,
        error=error,
    )


def _message(error: Exception, reason: str) -> str:
    """What clients may see; the text of a fault may hold anything."""
    return (str(error) if isinstance(error, errors.MasakariError) else reason)[:_LONGEST]
