"""Queries on claims: the right of one engine to work on one notification.

A claim is a row. The unique key on `working_host` allows one working claim for each host over all
engines; the others wait. Where instances are recovered side by side, the claim of a VM event has
the uuid of its instance there, and waits for its host all the same. Whoever holds a claim keeps its
heartbeat young. Ages are measured by the database's clock alone, so the clocks of engines may
differ. Each change is one statement that says whom it expects to hold the claim, also where reading
under a lock would do: Galera compares only what was written. All lock the claim before the
notification.

Work may run again although it was committed (`Database.write`): `take`, `promote` and `take_over`
then find the claim that they made and give it once more, `release` finds none, and the others may
be repeated at will.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import ColumnElement, func
from sqlalchemy.orm import Session, aliased

from masakari_ng import errors
from masakari_ng.db import notifications
from masakari_ng.db.rows import ClaimRow, NotificationRow, affected
from masakari_ng.db.session import translated
from masakari_ng.domain import Claim, Notification, NotificationStatus, NotificationType

NOBODY = ""
"""Stands for the engine of a claim that is left to whoever comes first."""
_LANE = 36  # length of the column
_LONG_AGO = datetime(1970, 1, 1)
_WAITED_FROM = frozenset({NotificationStatus.NEW, NotificationStatus.ERROR})


@dataclass(frozen=True, slots=True)
class Seen:
    """A claim as an operator looks at it.

    Attributes:
        age: seconds since it was taken.
        silence: seconds since its engine gave a sign of life.
    """

    claim: Claim
    age: int
    silence: int


def take(
    session: Session,
    notification: Notification,
    engine: str,
    *,
    expected: Collection[NotificationStatus],
    begin: bool = True,
    side_by_side: bool = False,
) -> Claim | None:
    """Claim a notification; its status becomes `running` unless its host is being worked on.

    Args:
        session: open transaction; the caller commits.
        notification: its status when it was read does not count.
        engine: who takes it.
        expected: statuses in which the notification may be taken.
        begin: False lets it wait in any case.
        side_by_side: instances of one host do not wait for one another, nor it for them.

    Returns:
        A working claim, or a waiting one that leaves the status as it is; the one that this engine
        has already, if it has. None: another engine has a claim on the notification, or its status
        is none of the expected ones.
    """
    claim = Claim(
        notification_uuid=notification.notification_uuid,
        source_host_uuid=notification.source_host_uuid,
        engine=engine,
        version=1,
        working=begin,
    )
    lane = _lane(notification, side_by_side=side_by_side)
    if _held_up(session, claim, lane) or not _inserted(session, claim, lane):
        claim = replace(claim, working=False)
        if not _inserted(session, claim, lane):
            uuid = ClaimRow.notification_uuid == claim.notification_uuid
            return _first(session, uuid, ClaimRow.engine == engine)
    if claim.working:
        may = _set_running(session, claim, expected)
    else:
        uuid = NotificationRow.notification_uuid == claim.notification_uuid
        may = session.scalar(sa.select(NotificationRow.status).where(uuid)) in expected
    if not may:
        release(session, claim)
        return None
    return claim


def promote(session: Session, claim: Claim, *, side_by_side: bool = False) -> Claim | None:
    """Let a waiting claim work; the status becomes `running`. `side_by_side` is as for `take`.

    Returns:
        The working claim, also if it works already. None: its host is still worked on, or the claim
        is gone, or has been dropped here because the notification needs no recovery any more.
    """
    lane = claim.source_host_uuid
    if side_by_side:
        found = notifications.by_uuid(session, claim.notification_uuid)
        lane = _lane(found, side_by_side=True)
    waits = sa.update(ClaimRow).where(_mine(claim), ClaimRow.working_host.is_(None))
    values = {"working_host": lane, "heartbeat": _ago(session, 0)}
    if _held_up(session, claim, lane) or not _done(session, waits.values(values)):
        return _first(session, _mine(claim), ClaimRow.working_host.is_not(None))
    if not _set_running(session, claim, _WAITED_FROM):
        release(session, claim)
        return None
    return replace(claim, working=True)


def waiting(session: Session, engine: str) -> list[Claim]:
    """Claims of an engine that wait for their host, in the order in which they were taken."""
    return _selected(session, ClaimRow.engine == engine, ClaimRow.working_host.is_(None))


def ready(session: Session) -> list[Claim]:
    """Claims of all engines that wait although nobody works on their host, oldest first."""
    working = aliased(ClaimRow)
    worked_on = sa.exists().where(working.working_host == ClaimRow.source_host_uuid)
    return _selected(session, ClaimRow.working_host.is_(None), ~worked_on)


def held(session: Session, engine: str) -> list[Claim]:
    """All claims of an engine."""
    return _selected(session, ClaimRow.engine == engine)


def stale(session: Session, timeout: float) -> list[Claim]:
    """Claims of any engine without a heartbeat for more than `timeout` seconds."""
    return _selected(session, ClaimRow.heartbeat < _ago(session, timeout))


def seen(session: Session, notification_uuid: str | None = None) -> list[Seen]:
    """All claims, or that on one notification, oldest first."""
    age = _seconds_since(session, sa.column("claimed_at"))
    silence = _seconds_since(session, sa.column("heartbeat"))
    found = session.execute(sa.select(ClaimRow.notification_uuid, age, silence))
    ages = {uuid: (age, silence) for uuid, age, silence in found}
    of_one = [ClaimRow.notification_uuid == notification_uuid] if notification_uuid else []
    held = _selected(session, *of_one)
    return [
        Seen(claim, *ages[claim.notification_uuid])
        for claim in held
        if claim.notification_uuid in ages
    ]


def live(session: Session, timeout: float) -> frozenset[str]:
    """Uuids of the notifications whose claims had a heartbeat within `timeout` seconds."""
    query = sa.select(ClaimRow.notification_uuid).where(
        ClaimRow.heartbeat >= _ago(session, timeout)
    )
    return frozenset(session.scalars(query))


def beat(session: Session, engine: str) -> int:
    """Renew the heartbeat of all claims of an engine.

    Returns:
        How many it still has.
    """
    mine = sa.update(ClaimRow).where(ClaimRow.engine == engine)
    return affected(session, mine.values(heartbeat=_ago(session, 0)))


def take_over(session: Session, claim: Claim, engine: str, timeout: float) -> Claim | None:
    """Make a stale claim one's own, working or waiting as it was.

    Returns:
        The claim with a higher version, also if this engine has it already. None: its engine has
        come back, or another was faster.
    """
    taken = replace(claim, engine=engine, version=claim.version + 1)
    dead = sa.update(ClaimRow).where(_mine(claim), ClaimRow.heartbeat < _ago(session, timeout))
    values = {"engine": engine, "version": taken.version, "heartbeat": _ago(session, 0)}
    return taken if _done(session, dead.values(values)) else _first(session, _mine(taken))


def take_waiting(session: Session, claim: Claim, engine: str) -> Claim | None:
    """Make a waiting claim of another engine one's own, which has no thread for it.

    Returns:
        As `take_over`. None: it waits no longer.
    """
    taken = replace(claim, engine=engine, version=claim.version + 1)
    waits = sa.update(ClaimRow).where(_mine(claim), ClaimRow.working_host.is_(None))
    values = {"engine": engine, "version": taken.version, "heartbeat": _ago(session, 0)}
    return taken if _done(session, waits.values(values)) else _first(session, _mine(taken))


def verify(session: Session, claim: Claim) -> None:
    """Make sure until the end of the transaction that the claim is still held; renew it, too.

    Raises:
        ClaimLost: another engine has it, or nobody.
    """
    mine = sa.update(ClaimRow).where(_mine(claim))
    _must(session, mine.values(heartbeat=_ago(session, 0)), claim)


def release(session: Session, claim: Claim) -> bool:
    """Give up a claim because there is nothing left to do.

    Returns:
        False if nobody has one any more: this, or what is to be done with it, was done before.

    Raises:
        ClaimLost: another engine has it.
    """
    given_up = affected(session, sa.delete(ClaimRow).where(_mine(claim))) > 0
    if not given_up and _first(session, ClaimRow.notification_uuid == claim.notification_uuid):
        raise _lost(claim)
    return given_up


def hand_over(session: Session, claim: Claim) -> bool:
    """Leave a claim to whoever comes first; from now on it is stale.

    It belongs to nobody then, so that whatever still runs here can write nothing any more.

    Returns:
        False if another engine has it, or nobody.
    """
    mine = sa.update(ClaimRow).where(_mine(claim))
    return affected(session, mine.values(engine=NOBODY, heartbeat=_LONG_AGO)) > 0


def _ago(session: Session, seconds: float) -> ColumnElement[datetime]:
    """An instant by the database's clock, naive UTC."""
    if session.get_bind().dialect.name == "sqlite":
        return func.datetime("now", f"{-seconds} seconds", type_=sa.DateTime)
    now = func.utc_timestamp()
    return func.timestampadd(sa.text("SECOND"), -seconds, now, type_=sa.DateTime)


def _lane(notification: Notification, *, side_by_side: bool) -> str:
    """What only one may work on at a time: the host, or the instance."""
    if side_by_side and notification.type is NotificationType.VM:
        instance = notification.payload.get("instance_uuid", notification.source_host_uuid)
        return instance[:_LANE]
    return notification.source_host_uuid


def _held_up(session: Session, claim: Claim, lane: str) -> bool:
    """Whether an instance has to wait for its host. That the host waits, its unique key sees to."""
    host = claim.source_host_uuid
    return lane != host and _first(session, ClaimRow.working_host == host) is not None


def _seconds_since(session: Session, when: ColumnElement[datetime]) -> ColumnElement[int]:
    """By the database's clock."""
    if session.get_bind().dialect.name == "sqlite":
        return func.unixepoch("now") - func.unixepoch(when)
    return func.timestampdiff(sa.text("SECOND"), when, func.utc_timestamp(), type_=sa.Integer)


def _inserted(session: Session, claim: Claim, lane: str) -> bool:
    """Insert; False if the notification has a claim or, for a working one, its lane has."""
    now = _ago(session, 0)
    values = {
        "notification_uuid": claim.notification_uuid,
        "source_host_uuid": claim.source_host_uuid,
        "working_host": lane if claim.working else None,
        "engine": claim.engine,
        "version": claim.version,
        "claimed_at": now,
        "heartbeat": now,
    }
    return _done(session, sa.insert(ClaimRow).values(values))


def _done(session: Session, statement: sa.UpdateBase) -> bool:
    """Execute; False if no row meets its condition, or its host is worked on already."""
    try:
        with translated():
            return affected(session, statement) > 0
    except errors.DuplicateKey:  # It undid the statement alone, on MariaDB and on SQLite.
        return False


def _must(session: Session, statement: sa.UpdateBase, claim: Claim) -> None:
    if not affected(session, statement):
        raise _lost(claim)


def _lost(claim: Claim) -> errors.ClaimLost:
    return errors.ClaimLost(
        f"Notification {claim.notification_uuid} has been taken over by another engine"
    )


def _set_running(session: Session, claim: Claim, expected: Collection[NotificationStatus]) -> bool:
    return notifications.change_status(
        session, claim.notification_uuid, expected=expected, status=NotificationStatus.RUNNING
    )


def _mine(claim: Claim) -> ColumnElement[bool]:
    return sa.and_(
        ClaimRow.notification_uuid == claim.notification_uuid,
        ClaimRow.engine == claim.engine,
        ClaimRow.version == claim.version,
    )


def _selected(session: Session, *conditions: ColumnElement[bool]) -> list[Claim]:
    query = sa.select(
        ClaimRow.notification_uuid,
        ClaimRow.source_host_uuid,
        ClaimRow.engine,
        ClaimRow.version,
        ClaimRow.working_host.is_not(None).label("working"),
    )
    found = session.execute(query.where(*conditions).order_by(ClaimRow.claimed_at))
    return [Claim(**row._asdict()) for row in found]


def _first(session: Session, *conditions: ColumnElement[bool]) -> Claim | None:
    return next(iter(_selected(session, *conditions)), None)
