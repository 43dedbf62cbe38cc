"""Queries on claims: the right of one engine to work on one notification.

A claim is a row. The unique key on `working_host` allows one working claim for each host over all
engines; the others wait. Whoever holds a claim keeps its heartbeat young. Ages are measured by the
database's clock alone, so the clocks of engines may differ. Each change is one statement that says
whom it expects to hold the claim, also where reading under a lock would do: Galera compares only
what was written. All lock the claim before the notification.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, DateTime, and_, delete, insert, literal, select, update
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement

from masakari_ng import errors
from masakari_ng.db import notifications
from masakari_ng.db.rows import ClaimRow, NotificationRow, affected
from masakari_ng.db.session import translated
from masakari_ng.domain import Claim, Notification, NotificationStatus

_NOBODY = ""
_LONG_AGO = datetime(1970, 1, 1)
_WAITED_FROM = frozenset({NotificationStatus.NEW, NotificationStatus.ERROR})


class _SecondsAgo(FunctionElement[datetime]):
    """An instant by the database's clock, naive UTC."""

    type = DateTime()
    inherit_cache = True


@compiles(_SecondsAgo, "mysql", "mariadb")
def _on_mysql(element: _SecondsAgo, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"(UTC_TIMESTAMP() - INTERVAL {compiler.process(element.clauses, **kwargs)} SECOND)"


@compiles(_SecondsAgo, "sqlite")
def _on_sqlite(element: _SecondsAgo, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"datetime('now', -({compiler.process(element.clauses, **kwargs)}) || ' seconds')"


def _seconds_ago(seconds: float) -> _SecondsAgo:
    return _SecondsAgo(literal(seconds))


def _now() -> _SecondsAgo:
    return _seconds_ago(0)


def take(
    session: Session,
    notification: Notification,
    engine: str,
    *,
    expected: Collection[NotificationStatus],
) -> Claim | None:
    """Claim a notification; its status becomes `running` unless its host is being worked on.

    Args:
        session: open transaction; the caller commits.
        notification: only its uuid and host count, not the status it had when it was read.
        engine: who takes it.
        expected: statuses in which the notification may be taken.

    Returns:
        A working claim, or a waiting one that leaves the status as it is. None: somebody has a
        claim on the notification already, or its status is none of the expected ones.
    """
    claim = Claim(
        notification_uuid=notification.notification_uuid,
        source_host_uuid=notification.source_host_uuid,
        engine=engine,
        version=1,
        working=True,
    )
    if not _inserted(session, claim):
        claim = replace(claim, working=False)
        if not _inserted(session, claim):
            return None
    if claim.working:
        may = _set_running(session, claim, expected)
    else:
        status = NotificationRow.status
        uuid = NotificationRow.notification_uuid
        found = session.scalar(select(status).where(uuid == claim.notification_uuid))
        may = found in expected
    if not may:
        release(session, claim)
        return None
    return claim


def promote(session: Session, claim: Claim) -> Claim | None:
    """Let a waiting claim work; the status becomes `running`.

    Returns:
        The working claim. None: its host is still worked on, or the claim is gone, or has been
        dropped here because the notification needs no recovery any more.
    """
    waits = and_(_mine(claim), ClaimRow.working_host.is_(None))
    values = {"working_host": claim.source_host_uuid, "heartbeat": _now()}
    try:
        with translated():
            if not _updated(session, waits, values):
                return None
    except errors.DuplicateKey:
        return None
    if not _set_running(session, claim, _WAITED_FROM):
        release(session, claim)
        return None
    return replace(claim, working=True)


def waiting(session: Session, engine: str) -> list[Claim]:
    """Claims of an engine that wait for their host, in the order in which they were taken."""
    return _selected(session, and_(ClaimRow.engine == engine, ClaimRow.working_host.is_(None)))


def held(session: Session, engine: str) -> list[Claim]:
    """All claims of an engine."""
    return _selected(session, ClaimRow.engine == engine)


def stale(session: Session, timeout: float) -> list[Claim]:
    """Claims of any engine without a heartbeat for more than `timeout` seconds."""
    return _selected(session, ClaimRow.heartbeat < _seconds_ago(timeout))


def live(session: Session, timeout: float) -> frozenset[str]:
    """Uuids of the notifications whose claims had a heartbeat within `timeout` seconds."""
    query = select(ClaimRow.notification_uuid).where(ClaimRow.heartbeat >= _seconds_ago(timeout))
    return frozenset(session.scalars(query))


def beat(session: Session, engine: str) -> int:
    """Renew the heartbeat of all claims of an engine.

    Returns:
        How many it still has.
    """
    return _updated(session, ClaimRow.engine == engine, {"heartbeat": _now()})


def take_over(session: Session, claim: Claim, engine: str, timeout: float) -> Claim | None:
    """Make a stale claim one's own, working or waiting as it was.

    Returns:
        The claim with a higher version. None: its engine has come back, or another was faster.
    """
    taken = replace(claim, engine=engine, version=claim.version + 1)
    dead = and_(_mine(claim), ClaimRow.heartbeat < _seconds_ago(timeout))
    values = {"engine": taken.engine, "version": taken.version, "heartbeat": _now()}
    return taken if _updated(session, dead, values) else None


def verify(session: Session, claim: Claim) -> None:
    """Make sure until the end of the transaction that the claim is still held; renew it, too.

    Raises:
        ClaimLost: another engine has it, or nobody.
    """
    if not _updated(session, _mine(claim), {"heartbeat": _now()}):
        raise _lost(claim)


def release(session: Session, claim: Claim) -> None:
    """Give up a claim because there is nothing left to do.

    Raises:
        ClaimLost: another engine has it, or nobody.
    """
    if not affected(session, delete(ClaimRow).where(_mine(claim))):
        raise _lost(claim)


def hand_over(session: Session, claim: Claim) -> None:
    """Leave a claim to whoever comes first; from now on it is stale.

    It belongs to nobody then, so that whatever still runs here can write nothing any more.
    """
    _updated(session, _mine(claim), {"engine": _NOBODY, "heartbeat": _LONG_AGO})


def _inserted(session: Session, claim: Claim) -> bool:
    """Insert; False if the notification has a claim or, for a working one, its host has."""
    values = {
        "notification_uuid": claim.notification_uuid,
        "source_host_uuid": claim.source_host_uuid,
        "working_host": claim.source_host_uuid if claim.working else None,
        "engine": claim.engine,
        "version": claim.version,
        "claimed_at": _now(),
        "heartbeat": _now(),
    }
    try:
        with translated():
            session.execute(insert(ClaimRow).values(values))
    except errors.DuplicateKey:  # It undid the statement alone, on MariaDB and on SQLite.
        return False
    return True


def _set_running(session: Session, claim: Claim, expected: Collection[NotificationStatus]) -> bool:
    return notifications.change_status(
        session, claim.notification_uuid, expected=expected, status=NotificationStatus.RUNNING
    )


def _mine(claim: Claim) -> ColumnElement[bool]:
    return and_(
        ClaimRow.notification_uuid == claim.notification_uuid,
        ClaimRow.engine == claim.engine,
        ClaimRow.version == claim.version,
    )


def _selected(session: Session, condition: ColumnElement[bool]) -> list[Claim]:
    query = select(ClaimRow.__table__).where(condition).order_by(ClaimRow.claimed_at)
    return [_record(found) for found in session.execute(query)]


def _updated(session: Session, condition: ColumnElement[bool], values: dict[str, Any]) -> int:
    statement = update(ClaimRow).where(condition).values(values)
    # Without the option SQLAlchemy reads the rows first, to refresh what the session knows.
    return affected(session, statement.execution_options(synchronize_session=False))


def _lost(claim: Claim) -> errors.ClaimLost:
    return errors.ClaimLost(
        f"Notification {claim.notification_uuid} has been taken over by another engine"
    )


def _record(row: Any) -> Claim:
    return Claim(
        notification_uuid=row.notification_uuid,
        source_host_uuid=row.source_host_uuid,
        engine=row.engine,
        version=row.version,
        working=row.working_host is not None,
    )
