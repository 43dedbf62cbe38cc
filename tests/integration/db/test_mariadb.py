"""Protects what only a real server shows: collisions, lost connections, collation, sorting."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from oslo_db.exception import DBDataError
from sqlalchemy import text, update

from masakari_ng import errors
from masakari_ng.db import hosts, notifications, segments, vmoves
from masakari_ng.db.paging import Page
from masakari_ng.db.rows import NotificationRow
from masakari_ng.db.session import Database
from masakari_ng.domain import (
    NotificationStatus,
    NotificationType,
    RecoveryMethod,
)
from tests.unit.db.walk import SORT_KEYS, ids_at_once, ids_in_pages, vary

_THREADS = 20
_TIME = datetime(2026, 3, 2, 10)
_PING = text("SELECT 1")


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def server(synced_url, pauses):
    """The database, with a pool for all threads of a test; waiting is only remembered."""
    opened = Database(synced_url, {"max_overflow": 50}, sleep=pauses.append)
    yield opened
    opened.close()


def _report(session, host="host-1", **values):
    given = {
        "type": NotificationType.COMPUTE_HOST,
        "generated_time": _TIME,
        "payload": {"event": "STOPPED"},
        "failover_segment_uuid": None,
        **values,
    }
    return notifications.create(session, source_host_uuid=host, **given)


def _report_once(session):
    """As the API does it."""
    notifications.intake(session, "host-1", NotificationType.COMPUTE_HOST)
    if notifications.reported_since(session, "host-1", NotificationType.COMPUTE_HOST, _TIME):
        raise errors.DuplicateNotification("host-1", "COMPUTE_HOST")
    return _report(session)


def _outcome(work: Callable[[], object], start: threading.Barrier) -> str:
    start.wait(30)
    try:
        work()
    except errors.DuplicateNotification:
        return "duplicate"
    return "won"


@pytest.mark.parametrize("earlier", [0, 1], ids=["first report", "seen before"])
def test_of_equal_reports_one_wins(server, pauses, earlier):
    if earlier:
        server.write(
            lambda session: notifications.intake(session, "host-1", NotificationType.COMPUTE_HOST)
        )
    start = threading.Barrier(_THREADS)

    with ThreadPoolExecutor(_THREADS) as pool:
        running = [
            pool.submit(_outcome, lambda: server.write(_report_once), start)
            for _ in range(_THREADS)
        ]
        outcomes = [future.result(60) for future in running]

    assert sorted(outcomes) == ["duplicate"] * (_THREADS - 1) + ["won"]
    assert len(server.read(lambda session: notifications.listed(session, Page()))) == 1
    assert pauses == []  # no deadlock was repeated


def test_one_of_many_changes_the_status(server):
    uuid = server.write(_report).notification_uuid
    start = threading.Barrier(_THREADS)

    def claim(session):
        if not notifications.change_status(
            session, uuid, expected={NotificationStatus.NEW}, status=NotificationStatus.RUNNING
        ):
            raise errors.DuplicateNotification("host-1", "COMPUTE_HOST")

    with ThreadPoolExecutor(_THREADS) as pool:
        running = [
            pool.submit(_outcome, lambda: server.write(claim), start) for _ in range(_THREADS)
        ]
        outcomes = [future.result(60) for future in running]

    assert outcomes.count("won") == 1


def test_a_deadlock_is_repeated_and_both_writers_end(server, pauses):
    names = ("vm-1", "vm-2")
    moves = [
        server.write(
            lambda session, name=name: vmoves.create(
                session,
                notification_uuid="n",
                instance_uuid=name,
                instance_name=name,
                source_host="compute-1",
            )
        ).uuid
        for name in names
    ]
    both_hold_one = threading.Barrier(2)
    met = []

    def work(order, column):
        def change(session):
            vmoves.update(session, order[0], **{column: "one"})
            if len(met) < 2:
                met.append(column)
                both_hold_one.wait(30)
            vmoves.update(session, order[1], **{column: "two"})

        server.write(change)

    with ThreadPoolExecutor(2) as pool:
        forth = pool.submit(work, moves, "dest_host")
        back = pool.submit(work, moves[::-1], "message")
        forth.result(60)
        back.result(60)

    assert len(pauses) == 1
    found = [
        server.read(lambda session, uuid=uuid: vmoves.by_uuid(session, uuid)) for uuid in moves
    ]
    assert [(vmove.dest_host, vmove.message) for vmove in found] == [("one", "two"), ("two", "one")]


def test_a_connection_lost_in_a_transaction_is_told_and_the_next_call_works(server, mariadb):
    def cut_off(session):
        _report(session)
        mariadb.sql(None, f"KILL {session.scalar(text('SELECT connection_id()'))}")
        session.execute(_PING)

    for call in (server.write, server.read):
        with pytest.raises(errors.DatabaseUnavailable):
            call(cut_off)

    assert server.write(_report).status == NotificationStatus.NEW
    assert len(server.read(lambda session: notifications.listed(session, Page()))) == 1


def test_a_connection_that_died_idle_is_not_noticed(server, mariadb):
    lost = server.read(lambda session: session.scalar(text("SELECT connection_id()")))
    mariadb.sql(None, f"KILL {lost}")

    assert server.read(lambda session: session.scalar(_PING)) == 1


def test_the_patient_get_over_a_restart_of_the_server(synced_url, mariadb):
    waited = []

    def sleep(seconds):
        waited.append(seconds)
        mariadb.start()

    patient = Database(synced_url, patience=60, sleep=sleep)
    patient.write(_report)
    mariadb.kill()

    patient.write(_report)

    assert len(patient.read(lambda session: notifications.listed(session, Page()))) == 2
    assert waited == [0.5]
    patient.close()


def test_a_missing_schema_is_told(mariadb):
    missing = Database(mariadb.url("nothing_of_this_name"))

    with pytest.raises(errors.DatabaseUnavailable, match="Unknown database"):
        missing.read(lambda session: session.scalar(_PING))


def test_names_and_filters_are_compared_without_case(server):
    def make(session, name="CRUD-1"):
        return segments.create(
            session, name=name, service_type="COMPUTE", recovery_method=RecoveryMethod.AUTO
        )

    segment = server.write(make)
    host = server.write(
        lambda session: hosts.create(
            session,
            segment_uuid=segment.uuid,
            name="Compute-1",
            type="COMPUTE",
            control_attributes="SSH",
        )
    )
    server.write(_report)

    with pytest.raises(errors.SegmentExists):
        server.write(lambda session: make(session, "crud-1"))
    renamed = server.write(
        lambda session: segments.update(session, segment.uuid, {"name": "crud-1"})
    )
    assert renamed.name == "crud-1"
    assert server.read(lambda session: hosts.by_name(session, "COMPUTE-1")).uuid == host.uuid
    for filters in ({"type": "compute_host"}, {"status": "NEW"}):
        found = server.read(
            lambda session, filters=filters: notifications.listed(session, Page(), **filters)
        )
        assert len(found) == 1


def test_records_are_the_same_as_on_sqlite(server):
    """Types that the two drivers hand over differently: flags, times, enums."""

    def write_and_read(session):
        segment = segments.create(
            session,
            name="one",
            service_type="COMPUTE",
            recovery_method=RecoveryMethod.RH_PRIORITY,
            enabled=False,
        )
        host = hosts.create(
            session,
            segment_uuid=segment.uuid,
            name="compute-1",
            type="COMPUTE",
            control_attributes="SSH",
            reserved=True,
        )
        report = _report(session, host.uuid, generated_time=_TIME.replace(microsecond=999_999))
        used = segments.in_use(session, segment.uuid)
        return host, report, notifications.by_uuid(session, report.notification_uuid), used

    host, report, stored, used = server.write(write_and_read)

    assert (host.reserved, host.on_maintenance, host.segment.enabled) == (True, False, False)
    assert host.segment.recovery_method is RecoveryMethod.RH_PRIORITY
    assert stored.generated_time == _TIME
    assert report.generated_time.microsecond == 999_999
    assert used is True


def test_pages_visit_every_row_once(server):
    def fill(session):
        for number in range(12):
            made = _report(session, f"host-{number}")
            session.execute(
                update(NotificationRow).where(NotificationRow.id == made.id).values(vary(number))
            )

    server.write(fill)

    for key in SORT_KEYS:
        for direction in ("asc", "desc"):
            pages, everything = server.read(
                lambda session, order=((key,), (direction,)): (
                    ids_in_pages(session, 5, *order),
                    ids_at_once(session, *order),
                )
            )
            assert pages == everything
            assert len(set(pages)) == 12


def test_a_server_that_does_not_answer_counts_as_away(mariadb, synced_url):
    database = Database(synced_url, answer_timeout=2)
    database.read(lambda session: session.execute(_PING))
    mariadb.pause()

    try:
        with pytest.raises(errors.DatabaseUnavailable):
            database.read(lambda session: session.execute(_PING))
    finally:
        mariadb.resume()

    database.read(lambda session: session.execute(_PING))
    database.close()


def test_an_instance_named_with_an_emoji_can_be_moved(server):
    created = server.write(
        lambda session: vmoves.create(
            session,
            notification_uuid="n-1",
            instance_uuid="i-1",
            instance_name="web \U0001f680",
            source_host="compute-1",
        )
    )

    stored = server.read(lambda session: vmoves.by_uuid(session, created.uuid))
    assert stored.instance_name == "web \ufffd"


def test_a_value_that_is_too_long_is_refused_not_cut(server):
    with pytest.raises(DBDataError):
        server.write(
            lambda session: segments.create(
                session,
                name="x" * 256,
                service_type="COMPUTE",
                recovery_method=RecoveryMethod.AUTO,
            )
        )
