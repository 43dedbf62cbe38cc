"""Rows with everything filled in that a test does not care about."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from masakari_ng.db import hosts, notifications, segments, vmoves
from masakari_ng.db.rows import StoredRow
from masakari_ng.db.session import Database
from masakari_ng.domain import (
    Host,
    Notification,
    NotificationType,
    RecoveryMethod,
    Segment,
    VMove,
)

Make = Callable[..., Any]


@pytest.fixture
def session(database: Database) -> Iterator[Session]:
    """One open transaction, so that a test reads what it wrote without committing."""
    with Session(database.engine) as opened, opened.begin():
        yield opened


@pytest.fixture
def make_segment(session: Session) -> Make:
    def make(name: str = "segment", **values: Any) -> Segment:
        given = {"service_type": "COMPUTE", "recovery_method": RecoveryMethod.AUTO, **values}
        return segments.create(session, name=name, **given)

    return make


@pytest.fixture
def make_host(session: Session, make_segment: Make) -> Make:
    def make(name: str = "compute-1", segment: Segment | None = None, **values: Any) -> Host:
        given = {"type": "COMPUTE", "control_attributes": "SSH", **values}
        uuid = (segment or make_segment(f"segment of {name}")).uuid
        return hosts.create(session, segment_uuid=uuid, name=name, **given)

    return make


@pytest.fixture
def make_notification(session: Session) -> Make:
    def make(host_uuid: str = "host", **values: Any) -> Notification:
        given = {
            "type": NotificationType.COMPUTE_HOST,
            "generated_time": datetime(2026, 3, 2, 10),
            "payload": {"event": "STOPPED"},
            "failover_segment_uuid": None,
            **values,
        }
        return notifications.create(session, source_host_uuid=host_uuid, **given)

    return make


@pytest.fixture
def make_vmove(session: Session) -> Make:
    def make(instance: str = "vm", notification_uuid: str = "notification") -> VMove:
        return vmoves.create(
            session,
            notification_uuid=notification_uuid,
            instance_uuid=instance,
            instance_name=instance,
            source_host="compute-1",
        )

    return make


@pytest.fixture
def set_columns(session: Session) -> Make:
    def change(row: type[StoredRow], id: int, **values: Any) -> None:
        """Write columns past the queries, as time or another program would."""
        session.execute(update(row).where(row.id == id).values(**values))

    return change
