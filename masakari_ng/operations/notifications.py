"""What can be done with notifications. Spec: rest-api §13."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import iso8601
from sqlalchemy.orm import Session

from masakari_ng import errors, logs, metrics
from masakari_ng.coordination import Locks
from masakari_ng.db import hosts, notifications, workflows
from masakari_ng.db.paging import Page
from masakari_ng.db.session import Database
from masakari_ng.domain import (
    Notification,
    NotificationStatus,
    NotificationType,
    RequestContext,
    TaskDetails,
)
from masakari_ng.messaging.client import EngineClient
from masakari_ng.messaging.events import About, Events
from masakari_ng.operations.segments import Fields

log = logging.getLogger(__name__)

_REFUSALS: dict[type[Exception], str] = {
    errors.HostNotFoundByName: "unknown_host",
    errors.HostOnMaintenance: "maintenance",
    errors.DuplicateNotification: "duplicate",
}
"""Reasons as metrics name them."""


class Notifications:
    """Notifications of one database, handed on to the engines.

    Args:
        database: masakari's tables.
        engine: where reports are cast to.
        workflows: taskflow's tables, if this service may read them; else an engine is asked.
        window: seconds within which an equal report is a duplicate.
        locks: taken around a host failure, if there is a lock service. Where upstream's API shares
            the database, they keep it from storing the same failure at the same moment.
        events: told of every report that is stored.
    """

    def __init__(
        self,
        database: Database,
        engine: EngineClient,
        *,
        workflows: Database | None,
        window: int,
        locks: Locks | None = None,
        events: Events | None = None,
    ) -> None:
        self._database = database
        self._engine = engine
        self._workflows = workflows
        self._window = timedelta(seconds=window)
        self._locks = locks
        self._events = events or Events()

    def listed(self, page: Page, filters: Mapping[str, str]) -> list[Notification]:
        """One page, filtered by `type`, `status`, `source_host_uuid`, `generated-since`, as text.

        Raises:
            InvalidFilter: `generated-since` is no time.
        """
        wanted: dict[str, Any] = dict(filters)
        if "generated-since" in wanted:
            wanted["generated_since"] = _since(wanted.pop("generated-since"))
        return self._database.read(lambda session: notifications.listed(session, page, **wanted))

    def show(self, uuid: str) -> Notification:
        """One notification.

        Raises:
            NotificationNotFound: there is none.
        """
        return self._database.read(lambda session: notifications.by_uuid(session, uuid))

    def details(self, caller: RequestContext, notification: Notification) -> list[TaskDetails]:
        """What the tasks of its recovery have reported.

        Args:
            caller: travels with the request, where an engine has to be asked.
            notification: as it is stored.

        Raises:
            NoAnswer: no engine has answered in time.
            RemoteFailure, BadMessage, BrokerUnavailable: or there was another trouble with it.
        """
        if self._workflows is None:
            return self._engine.recovery_workflow_details(caller, notification)
        uuid = notification.notification_uuid
        return self._workflows.read(lambda session: workflows.details(session, uuid))

    def create(self, caller: RequestContext, fields: Fields) -> Notification:
        """Record a report and tell the engines.

        The row is committed before the cast, so an engine finds it however the cast goes.

        Args:
            caller: travels with the cast.
            fields: `type`, `hostname`, `generated_time`, `payload`, held against their schemas.

        Raises:
            HostNotFoundByName: no segment has this host.
            HostOnMaintenance: reports of this host are not wanted.
            DuplicateNotification: the same failure was reported already.
        """
        logs.note(host=fields["hostname"])
        event = self._events.around(caller, "notification.create")
        with _refusals_counted(fields["type"]), self._alone(fields), event as about:
            host = self._database.read(lambda session: hosts.by_name(session, fields["hostname"]))
            created = self._database.write(
                lambda session: self._store(session, host.uuid, fields, about)
            )
        logs.note(notification_uuid=created.notification_uuid)
        segment = created.failover_segment_uuid or ""
        metrics.NOTIFICATIONS.count(created.type, created.status, segment)
        try:
            self._engine.process_notification(caller, created)
        except errors.BrokerUnavailable as error:
            metrics.CASTS_FAILED.count(created.type)
            log.warning(
                "Notification %s is stored, but no engine could be told; one will find it: %s",
                created.notification_uuid,
                error,
            )
        return created

    def _alone(self, fields: Fields) -> AbstractContextManager[None]:
        if self._locks is None or fields["type"] != NotificationType.COMPUTE_HOST:
            return nullcontext()
        return self._locks.held(f"masakari-create_host_notification-{fields['hostname']}")

    def _store(
        self, session: Session, host_uuid: str, fields: Fields, about: About
    ) -> Notification:
        """Everything that decides about a report, in one transaction.

        The first statement makes equal reports queue up, so that the second sees the row of the
        first.
        """
        kind, name = NotificationType(fields["type"]), fields["hostname"]
        generated = _instant(fields["generated_time"])
        notifications.intake(session, host_uuid, kind)
        host = hosts.by_name(session, name)
        if host.on_maintenance:
            raise errors.HostOnMaintenance(name, kind)
        since = max(generated, datetime.min + self._window) - self._window
        earlier = notifications.reported_since(session, host.uuid, kind, since)
        if any(other.payload == fields["payload"] for other in earlier):
            raise errors.DuplicateNotification(name, kind)
        values: dict[str, Any] = {
            "type": kind,
            "generated_time": generated,
            "source_host_uuid": host.uuid,
            "payload": fields["payload"],
        }
        about({**values, "status": NotificationStatus.NEW})
        return notifications.create(
            session, **values, failover_segment_uuid=host.failover_segment_id
        )


@contextmanager
def _refusals_counted(kind: str) -> Iterator[None]:
    try:
        yield
    except tuple(_REFUSALS) as error:
        metrics.REFUSED.count(kind, _REFUSALS[type(error)])
        raise


def _instant(text: str) -> datetime:
    """Naive UTC from ISO 8601; a time without offset is UTC.

    Raises:
        iso8601.ParseError: it is no time.
        OverflowError: its offset takes it beyond the years 1 to 9999.
    """
    return iso8601.parse_date(text).astimezone(UTC).replace(tzinfo=None)


def _since(text: str) -> datetime:
    try:
        return _instant(text)
    except (iso8601.ParseError, OverflowError) as error:
        raise errors.InvalidFilter("Invalid generated-since value") from error
