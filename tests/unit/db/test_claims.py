"""Protects that one engine at a time, and a live one, works on a notification and on a host."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest
from sqlalchemy import text

from masakari_ng import errors
from masakari_ng.db import claims, notifications
from masakari_ng.db.session import Database
from masakari_ng.domain import Notification, NotificationStatus, NotificationType

NEW, RUNNING = NotificationStatus.NEW, NotificationStatus.RUNNING


@pytest.fixture
def report(database: Database) -> Callable[..., Notification]:
    """Store a notification of a host, in a status."""

    def make(host: str = "host-1", status: NotificationStatus = NEW) -> Notification:
        created = database.write(
            lambda session: notifications.create(
                session,
                type=NotificationType.VM,
                generated_time=datetime(2026, 1, 1),
                source_host_uuid=host,
                payload={},
                failover_segment_uuid=None,
            )
        )
        uuid = created.notification_uuid
        if status is not NEW:
            database.write(
                lambda session: notifications.change_status(
                    session, uuid, expected={NEW}, status=status
                )
            )
        return database.read(lambda session: notifications.by_uuid(session, uuid))

    return make


@pytest.fixture
def take(database: Database):
    def taken(notification, engine="a", expected=(NEW,)):
        return database.write(
            lambda session: claims.take(session, notification, engine, expected=set(expected))
        )

    return taken


def status(database: Database, notification: Notification) -> NotificationStatus:
    uuid = notification.notification_uuid
    return database.read(lambda session: notifications.by_uuid(session, uuid)).status


def age(database: Database, seconds: int) -> None:
    """Let all heartbeats be older, by the database's clock."""
    sql = f"UPDATE masakari_ng_claims SET heartbeat = datetime(heartbeat, '-{seconds} seconds')"
    database.write(lambda session: session.execute(text(sql)))


def test_claimed_notification_runs_and_cannot_be_claimed_again(database, report, take):
    notification = report()

    first, second = take(notification, "a"), take(notification, "b")

    assert first.working
    assert first.engine == "a"
    assert second is None
    assert status(database, notification) is RUNNING


def test_other_notification_of_the_host_waits_with_its_status(database, report, take):
    first, second = report(), report()

    working, waiting = take(first, "a"), take(second, "b")

    assert working.working
    assert not waiting.working
    assert status(database, second) is NEW
    assert take(second, "c") is None


def test_other_hosts_do_not_wait(report, take):
    assert take(report("host-1")).working
    assert take(report("host-2")).working


@pytest.mark.parametrize("found", sorted(set(NotificationStatus) - {NEW}))
@pytest.mark.parametrize("busy", [False, True], ids=["free host", "busy host"])
def test_unexpected_status_leaves_no_claim(database, report, take, found, busy):
    if busy:
        take(report())
    notification = report(status=found)

    assert take(notification, "b") is None

    assert status(database, notification) is found
    assert database.read(lambda session: claims.held(session, "b")) == []


def test_promotion_waits_for_the_release(database, report, take):
    working, waiting = take(report(), "a"), take(second := report(), "b")

    early = database.write(lambda session: claims.promote(session, waiting))
    database.write(lambda session: claims.release(session, working))
    late = database.write(lambda session: claims.promote(session, waiting))

    assert early is None
    assert late.working
    assert status(database, second) is RUNNING


def test_promotion_drops_what_needs_no_recovery_any_more(database, report, take):
    working, waiting = take(report()), take(second := report())
    database.write(lambda session: claims.release(session, working))
    uuid = second.notification_uuid
    database.write(
        lambda session: notifications.change_status(
            session, uuid, expected={NEW}, status=NotificationStatus.FAILED
        )
    )

    assert database.write(lambda session: claims.promote(session, waiting)) is None

    assert database.read(lambda session: claims.held(session, "a")) == []


def test_only_a_silent_engine_loses_its_claims(database, report, take):
    claim = take(report(), "a")

    age(database, 59)
    young = database.write(lambda session: claims.take_over(session, claim, "b", 60))
    age(database, 2)
    found = database.read(lambda session: claims.stale(session, 60))
    taken = database.write(lambda session: claims.take_over(session, claim, "b", 60))
    too_late = database.write(lambda session: claims.take_over(session, claim, "c", 60))

    assert young is None
    assert found == [claim]
    assert (taken.engine, taken.version, taken.working) == ("b", claim.version + 1, True)
    assert too_late is None


def test_heartbeat_keeps_all_claims_of_the_engine(database, report, take):
    take(report(), "a"), take(report(), "a"), take(report("host-2"), "b")
    age(database, 100)

    beaten = database.write(lambda session: claims.beat(session, "a"))

    assert beaten == 2
    stale = database.read(lambda session: claims.stale(session, 60))
    assert [claim.engine for claim in stale] == ["b"]
    assert len(database.read(lambda session: claims.live(session, 60))) == 2


def test_who_has_lost_the_claim_can_neither_write_nor_release(database, report, take):
    claim = take(report(), "a")
    age(database, 100)
    taken = database.write(lambda session: claims.take_over(session, claim, "b", 60))

    for change in (claims.verify, claims.release):
        with pytest.raises(errors.ClaimLost):
            database.write(lambda session, change=change: change(session, claim))

    database.write(lambda session: claims.verify(session, taken))
    assert database.write(lambda session: claims.release(session, taken))
    assert not database.write(lambda session: claims.release(session, taken))


def test_claim_that_was_lost_and_regained_is_another_one(database, report, take):
    """The thread of the first one may still run."""
    claim = lost = take(report(), "a")
    for engine in ("b", "a"):
        age(database, 100)
        claim = database.write(
            lambda session, old=claim, engine=engine: claims.take_over(session, old, engine, 60)
        )

    with pytest.raises(errors.ClaimLost):
        database.write(lambda session: claims.verify(session, lost))
    with pytest.raises(errors.ClaimLost):
        database.write(lambda session: claims.release(session, lost))
    database.write(lambda session: claims.verify(session, claim))


def test_whoever_works_with_a_claim_keeps_it_young(database, report, take):
    working, waiting = take(report()), take(report())
    age(database, 100)

    database.write(lambda session: claims.verify(session, working))
    assert database.read(lambda session: claims.stale(session, 60)) == [waiting]
    database.write(lambda session: claims.release(session, working))
    assert database.write(lambda session: claims.promote(session, waiting))

    assert database.read(lambda session: claims.stale(session, 60)) == []


def test_claim_that_was_handed_over_is_stale_at_once_and_stays_so(database, report, take):
    claim = take(report(), "a")

    database.write(lambda session: claims.hand_over(session, claim))
    database.write(lambda session: claims.beat(session, "a"))

    with pytest.raises(errors.ClaimLost):
        database.write(lambda session: claims.verify(session, claim))
    (left,) = database.read(lambda session: claims.stale(session, 1_000_000))
    assert database.write(lambda session: claims.take_over(session, left, "b", 1_000_000)).working


def test_who_claims_again_after_an_unnoticed_commit_gets_the_same_claim(database, report, take):
    first, second = report(), report()
    working, waiting = take(first), take(second)

    assert (take(first), take(second)) == (working, waiting)

    database.write(lambda session: claims.release(session, working))
    promoted = database.write(lambda session: claims.promote(session, waiting))
    assert promoted.working
    assert database.write(lambda session: claims.promote(session, waiting)) == promoted
    assert take(second) == promoted
    assert status(database, second) is RUNNING


def test_who_takes_over_again_after_an_unnoticed_commit_gets_the_same_claim(database, report, take):
    claim = take(report(), "a")
    age(database, 61)

    taken = [
        database.write(lambda session: claims.take_over(session, claim, "b", 60)) for _ in range(2)
    ]

    assert taken == [replace(claim, engine="b", version=claim.version + 1)] * 2


def test_a_claim_that_was_lost_is_not_found_again(database, report, take):
    working, waiting = take(first := report()), take(report())
    age(database, 61)
    for claim in (working, waiting):
        database.write(lambda session, claim=claim: claims.take_over(session, claim, "b", 60))
    database.write(lambda session: claims.release(session, replace(working, engine="b", version=2)))

    assert database.write(lambda session: claims.promote(session, waiting)) is None
    assert take(first) is None
