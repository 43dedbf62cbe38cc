"""Protects which rows `db purge` removes, and how many."""

from datetime import timedelta

import pytest

from masakari_ng.db import hosts, segments
from masakari_ng.db.paging import Page
from masakari_ng.db.purge import purge
from masakari_ng.db.rows import HostRow, NotificationRow, SegmentRow, VMoveRow, now
from masakari_ng.db.session import Database

_OLD = now() - timedelta(days=40)
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
