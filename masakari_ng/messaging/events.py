"""The only place of versioned notifications: what happens to records, told to whoever listens.

Spec: rpc §10
"""

import contextlib
import logging
import socket
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from oslo_config import cfg

from masakari_ng.domain import Host, Notification, RequestContext, Segment
from masakari_ng.messaging import envelope, failures, objects
from masakari_ng.messaging.notifier import Notifier

log = logging.getLogger(__name__)

Subject = Segment | Host | Notification | Mapping[str, Any]
"""A record, or the fields of one that is not stored yet."""

About = Callable[[Subject], None]

_PAYLOADS = {
    "segment": (
        "SegmentApiPayload",
        "1.1",
        "id uuid name service_type description recovery_method enabled",
    ),
    "host": (
        "HostApiPayload",
        "1.0",
        "id uuid name type reserved control_attributes on_maintenance",
    ),
    "notification": (
        "NotificationApiPayload",
        "1.0",
        "id notification_uuid generated_time source_host_uuid type payload status",
    ),
}
"""By the first word of the event: name, version, fields."""

_SEGMENT = (
    "id uuid name service_type enabled description recovery_method"
    " created_at updated_at deleted_at deleted"
)
_ENGINE, _API = "masakari-engine", "masakari-api"


class Events:
    """Tells of what is done. Never blocks, never fails.

    Args:
        notifier: sends; None: nothing is sent.
    """

    def __init__(self, notifier: Notifier | None = None) -> None:
        self._notifier = notifier

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> "Events":
        """As the options say; nothing is contacted before the first event.

        Raises:
            ConfigurationError: one of them cannot be used.
        """
        return cls(Notifier(conf) if conf.oslo_messaging_notifications.driver else None)

    def close(self) -> None:
        """Send what is left, for a few seconds at most."""
        if self._notifier is not None:
            self._notifier.close()

    @contextlib.contextmanager
    def around(self, context: RequestContext, action: str) -> Iterator[About]:
        """Tell of the start of a change and of its end or failure.

        Args:
            context: who changes.
            action: such as `host.update`.

        Yields:
            What is called with the new state right before the write. Where it is not called, the
            change was refused, and nothing is told. Calls after the first, by a transaction that
            is repeated, are ignored.
        """
        begun: list[Subject] = []

        def about(subject: Subject) -> None:
            if not begun:
                begun.append(subject)
                self.emit(context, f"{action}.start", subject)

        try:
            yield about
        except Exception as error:
            for subject in begun:
                self.emit(context, f"{action}.error", subject, error)
            raise
        for subject in begun:
            self.emit(context, f"{action}.end", subject)

    def emit(
        self,
        context: RequestContext,
        event: str,
        subject: Subject,
        fault: Exception | str | None = None,
    ) -> None:
        """Tell of one event.

        Args:
            context: who does it; secrets are left out.
            event: such as `notification.process.start`.
            subject: what it is about.
            fault: why it failed.
        """
        if self._notifier is None:
            return
        try:
            message = _message(event, subject, fault)
            self._notifier.send(message, envelope.context_to_wire(_redacted(context)))
        except Exception:  # What is told about must not suffer from it.
            log.exception("Could not send notification to versioned_notifications: %s", event)


def _message(event: str, subject: Subject, fault: Exception | str | None) -> dict[str, Any]:
    # Upstream's engine calls itself the API where it changes a host.
    binary = _ENGINE if event.startswith("notification.process.") else _API
    return {
        "message_id": str(uuid.uuid4()),
        "publisher_id": f"{binary}:{socket.gethostname()}",
        "event_type": event,
        "priority": "ERROR" if event.endswith(".error") else "INFO",
        "payload": _payload(event.partition(".")[0], subject, fault),
        "timestamp": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f"),
    }


def _payload(noun: str, subject: Subject, fault: Exception | str | None) -> dict[str, Any]:
    name, version, keys = _PAYLOADS[noun]
    fields = dict(subject) if isinstance(subject, Mapping) else asdict(subject)
    data = {"fault": None if fault is None else _fault(fault)}
    data |= {key: fields[key] for key in keys.split() if key in fields}
    if "segment" in fields:
        segment = {key: fields["segment"][key] for key in _SEGMENT.split()}
        data["failover_segment"] = objects.wrap("FailoverSegment", "1.1", segment)
    return objects.wrap(name, version, data)


def _fault(fault: Exception | str) -> dict[str, Any]:
    """An exception, or upstream's constants around the text of the engine. Spec: rpc §10.4."""
    module = function = "unknown"
    kind, trace = "str", "NoneType: None\n"
    if isinstance(fault, Exception):
        kind, trace = failures.upstream_name(fault), "".join(traceback.format_exception(fault))
        for frame, _ in traceback.walk_tb(fault.__traceback__):
            module, function = frame.f_globals["__name__"], frame.f_code.co_name
    told = {
        "module_name": module,
        "function_name": function,
        "exception": kind,
        "exception_message": str(fault),
        "traceback": trace,
    }
    return objects.wrap("ExceptionPayload", "1.0", told)


def _redacted(context: RequestContext) -> RequestContext:
    return replace(
        context,
        auth_token=None,
        service_catalog=(),
        remote_address=None,
        resource_uuid=None,
        is_admin_project=True,
        timestamp=None,
    )
