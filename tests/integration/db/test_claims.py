"""Protects the claims against races of many engines on a real MariaDB."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from threading import Barrier

import pytest

from masakari_ng import errors
from masakari_ng.db import claims, notifications
from masakari_ng.db.session import Database
from masakari_ng.domain import NotificationStatus, NotificationType

ENGINES = 16
NEW, RUNNING = NotificationStatus.NEW, NotificationStatus.RUNNING


@pytest.fixture
def database(synced_url):
    opened = Database(synced_url, {"max_pool_size": ENGINES})
    yield opened
    opened.close()


@pytest.fixture
def report(database):
    def make(host):
        return database.write(
            lambda session: notifications.create(
                session,
                type=NotificationType.COMPUTE_HOST,
                generated_time=datetime(2026, 1, 1),
                source_host_uuid=host,
                payload={},
                failover_segment_uuid=None,
            )
        )

    return make


def at_once(work):
    """Run `work(engine)` for all engines at the same moment; gives the results."""
    barrier = Barrier(ENGINES)

    def run(engine):
        barrier.wait()
        return work(engine)

    with ThreadPoolExecutor(ENGINES) as pool:
        return list(pool.map(run, [f"engine-{number}" for number in range(ENGINES)]))


def test_one_of_many_engines_gets_a_notification(database, report):
    for number in range(20):
        notification = report(f"host-{number}")

        def take(engine, notification=notification):
            return database.write(
                lambda session: claims.take(session, notification, engine, expected={NEW})
            )

        taken = [claim for claim in at_once(take) if claim is not None]

        assert len(taken) == 1
        assert taken[0].working


def test_one_working_claim_for_each_host_and_none_is_lost(database, report):
    """Engines take 48 notifications of 4 hosts, and each ends as soon as it works."""
    reports = [report(f"host-{number % 4}") for number in range(48)]
    begun, overlaps = [], []

    def work(engine):
        for notification in reports[int(engine.removeprefix("engine-")) :: ENGINES]:
            claim = database.write(
                lambda session, notification=notification: claims.take(
                    session, notification, engine, expected={NEW}
                )
            )
            assert claim is not None
            if claim.working:
                finish(claim)
        while waiting := database.read(lambda session: claims.waiting(session, engine)):
            for claim in waiting:
                promoted = database.write(
                    lambda session, claim=claim: claims.promote(session, claim)
                )
                if promoted:
                    finish(promoted)

    def finish(claim):
        with database.engine.connect() as link:
            found = link.exec_driver_sql(
                "SELECT n.notification_uuid FROM notifications n WHERE n.status = 'running'"
                " AND n.source_host_uuid = %s",
                (claim.source_host_uuid,),
            ).all()
        overlaps.extend(found[1:])
        database.write(lambda session: end(session, claim))
        begun.append(claim.notification_uuid)

    def end(session, claim):
        claims.release(session, claim)
        assert notifications.change_status(
            session,
            claim.notification_uuid,
            expected={RUNNING},
            status=NotificationStatus.FINISHED,
        )

    at_once(work)

    assert Counter(begun) == Counter(notification.notification_uuid for notification in reports)
    assert overlaps == []
    assert database.read(lambda session: claims.stale(session, -5)) == []


def test_one_of_many_engines_takes_over_and_the_old_one_is_fenced(database, report, mariadb):
    notification = report("host-1")
    claim = database.write(
        lambda session: claims.take(session, notification, "dead", expected={NEW})
    )
    schema = mariadb.schema_of(database.engine.url.render_as_string())
    mariadb.sql(schema, "UPDATE masakari_ng_claims SET heartbeat = heartbeat - INTERVAL 61 SECOND")

    taken = at_once(
        lambda engine: database.write(lambda session: claims.take_over(session, claim, engine, 60))
    )

    assert len([one for one in taken if one is not None]) == 1
    with pytest.raises(errors.ClaimLost):
        database.write(lambda session: claims.verify(session, claim))
