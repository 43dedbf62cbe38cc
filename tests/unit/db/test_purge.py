"""Protects which rows `db purge` removes, and how many."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from masakari_ng.db import hosts, journal, notifications, segments
from masakari_ng.db.paging import Page
from masakari_ng.db.purge import purge
from masakari_ng.db.rows import (
    HostRow,
    NotificationRow,
    SegmentRow,
    VMoveRow,
    now,
)
from masakari_ng.db.session import Database
from masakari_ng.domain import NotificationType

_OLD = now() - timedelta(days=40)
_ROWS = "SELECT count(*) FROM "
_TABLES = (HostRow, VMoveRow, NotificationRow, SegmentRow)


@pytest.fixture
def count(database):
    def rows():
        return [
            database.read(lambda session, row=row: session.query(row).count()) for row in _TABLES
        ]

    return rows


@pytest.fixture
def aged(session, make_host, make_notification, make_vmove, set_columns):
    """Of each kind one old row that goes and others that stay; of notifications three go."""
    gone, kept = make_host("gone"), make_host("kept")
    segments.delete(session, gone.failover_segment_id)
    set_columns(SegmentRow, gone.segment.id, deleted_at=_OLD)
    set_columns(HostRow, gone.id, deleted_at=_OLD)
    hosts.delete(session, kept.uuid)
    vmove = make_vmove()
    set_columns(VMoveRow, vmove.id, deleted=vmove.id, deleted_at=_OLD)
    make_vmove()
    for status in ("finished", "ignored", "failed", "new", "running", "error"):
        set_columns(NotificationRow, make_notification().id, status=status, updated_at=_OLD)
    set_columns(NotificationRow, make_notification().id, status="finished")
    session.commit()


def test_old_deleted_rows_and_ended_notifications_go(database, aged, count):
    assert count() == [2, 2, 7, 2]

    assert purge(database, days=30, limit=None) == 6

    assert count() == [1, 1, 4, 1]


def test_younger_rows_stay(database, aged):
    assert purge(database, days=41, limit=None) == 0


def test_the_limit_is_for_all_tables_and_failed_notifications_go_first(database, aged, count):
    assert purge(database, days=30, limit=3) == 3

    assert count() == [1, 1, 6, 2]
    left = database.read(lambda session: session.query(NotificationRow.status).all())
    assert ("failed",) not in left


def test_tables_that_do_not_exist_are_left_out(tmp_path):
    assert purge(Database(f"sqlite:///{tmp_path}/empty.sqlite"), days=30, limit=None) == 0


def test_live_rows_are_listed_as_before(database, aged):
    before = database.read(lambda session: segments.listed(session, Page()))

    purge(database, days=0, limit=None)

    assert database.read(lambda session: segments.listed(session, Page())) == before


@pytest.fixture
def gone_and_kept(session, make_host, make_notification, make_vmove, set_columns):
    """Of two hosts and of two notifications with all that belongs to them one goes."""
    made = [make_host("gone"), make_host("kept")]
    hosts.delete(session, made[0].uuid)
    set_columns(HostRow, made[0].id, deleted_at=_OLD)
    for host in made:
        notifications.intake(session, host.uuid, NotificationType.VM)
    reported = [make_notification(host.uuid) for host in made]
    set_columns(NotificationRow, reported[0].id, status="finished", updated_at=_OLD)
    for found in reported:
        journal.plan(session, make_vmove("vm", found.notification_uuid))
        session.execute(text(f"INSERT INTO logbooks (uuid) VALUES ('{found.notification_uuid}')"))
    session.commit()


@pytest.mark.parametrize(("history", "left"), [(False, 2), (True, 1)], ids=["", "with history"])
def test_what_belongs_to_removed_rows_goes_with_them(
    database, gone_and_kept, caplog, history, left
):
    caplog.set_level("INFO", "masakari_ng.db.purge")

    removed = purge(database, days=30, limit=None, history=history, workflows=database)

    assert removed == (6 if history else 4)
    counted = {
        table: database.read(lambda session, table=table: session.scalar(text(_ROWS + table)))
        for table in ("masakari_ng_intake", "masakari_ng_journal", "vmoves", "logbooks")
    }
    assert list(counted.values()) == [1, 1, left, left]
    told = "Deleted 1 row(s) of what is gone from table "
    assert (f"{told}masakari_ng_intake" in caplog.messages) is True
    assert (f"{told}logbooks" in caplog.messages) is history
    assert f"Total deleted rows are {removed}" in caplog.messages


def test_history_of_what_somebody_else_has_purged_goes_too(database, session, make_vmove):
    for number in range(250):
        make_vmove("vm", f"notification-{number:03}")
    session.commit()

    assert purge(database, days=30, limit=None, history=True) == 250
