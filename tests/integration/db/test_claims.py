"""Protects the claims against races of many engines on a real MariaDB."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from threading import Barrier

import pytest
from sqlalchemy import event

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


class Crowd:
    """Engines that take notifications and end each as soon as it may be worked on.

    Attributes:
        ended: notifications in the order in which they ended.
        overlaps: hosts that were worked on twice at a time.
    """

    def __init__(self, database, reports):
        self.database, self.reports = database, reports
        self.ended, self.overlaps = [], []

    def work(self, engine):
        write, read = self.database.write, self.database.read
        for report in self.reports[int(engine.removeprefix("engine-")) :: ENGINES]:
            self.end(write(partial(take, report=report, engine=engine)))
        while waiting := read(partial(claims.waiting, engine=engine)):
            for claim in waiting:
                self.end(write(partial(claims.promote, claim=claim)))

    def end(self, claim):
        if claim is None or not claim.working:
            return
        query = "SELECT id FROM notifications WHERE status = 'running' AND source_host_uuid = %s"
        with self.database.engine.connect() as link:
            found = link.exec_driver_sql(query, (claim.source_host_uuid,)).all()
        self.overlaps += [claim.source_host_uuid] * (len(found) - 1)
        self.database.write(partial(finish, claim=claim))
        self.ended.append(claim.notification_uuid)


def take(session, report, engine):
    claim = claims.take(session, report, engine, expected={NEW})
    assert claim is not None
    return claim


def finish(session, claim):
    claims.release(session, claim)
    assert notifications.change_status(
        session,
        claim.notification_uuid,
        expected={RUNNING},
        status=NotificationStatus.FINISHED,
    )


def test_one_working_claim_for_each_host_and_none_is_lost(database, report):
    reports = [report(f"host-{number % 4}") for number in range(48)]
    crowd = Crowd(database, reports)

    at_once(crowd.work)

    assert Counter(crowd.ended) == Counter(one.notification_uuid for one in reports)
    assert crowd.overlaps == []
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


@pytest.fixture
def patient(synced_url, mariadb):
    """Gives a database that loses its connection at the next commit, once that is done."""
    opened = Database(synced_url, patience=60, sleep=lambda seconds: None)
    armed = []

    def lose(connection):
        if armed:
            armed.pop()
            number = connection.exec_driver_sql("SELECT connection_id()").scalar()
            connection.exec_driver_sql("COMMIT")
            mariadb.sql(None, f"KILL {number}")

    def arm():
        armed.append(True)
        return opened

    event.listen(opened.engine, "commit", lose)
    yield arm
    opened.close()


def test_a_lost_answer_to_a_commit_loses_no_claim(database, report, patient):
    first, second = report("host-1"), report("host-1")

    def take(notification):
        runs = []
        claim = patient().write(
            lambda session: (
                runs.append(1) or claims.take(session, notification, "engine", expected={NEW})
            )
        )
        assert len(runs) == 2
        return claim

    working, waiting = take(first), take(second)

    assert (working.working, waiting.working) == (True, False)
    database.write(lambda session: claims.release(session, working))
    promoted = patient().write(lambda session: claims.promote(session, waiting))
    assert promoted.working
    assert database.read(lambda session: claims.held(session, "engine")) == [promoted]
    patient().write(lambda session: claims.hand_over(session, promoted))
    (left,) = database.read(lambda session: claims.stale(session, 60))
    taken = patient().write(lambda session: claims.take_over(session, left, "other", 60))
    assert database.read(lambda session: claims.held(session, "other")) == [taken]
    assert not patient().write(lambda session: claims.release(session, taken))
    assert database.read(lambda session: claims.held(session, "other")) == []
