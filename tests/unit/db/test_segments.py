"""Protects how segments are stored, changed, deleted, listed, and when one is in use."""

from datetime import datetime

import pytest
from sqlalchemy import event

from masakari_ng import errors
from masakari_ng.db import hosts, segments
from masakari_ng.db.paging import Page
from masakari_ng.db.rows import HostRow, NotificationRow, SegmentRow
from masakari_ng.domain import NotificationStatus, RecoveryMethod


def _names(found):
    return {segment.name for segment in found}


def test_a_new_segment_has_creation_time_and_no_other(make_segment):
    segment = make_segment("one", description="text", recovery_method=RecoveryMethod.RH_PRIORITY)

    assert segment.created_at is not None
    assert segment.created_at.microsecond == 0
    assert (segment.updated_at, segment.deleted_at, segment.deleted) == (None, None, False)
    assert (segment.enabled, segment.description) == (True, "text")
    assert segment.recovery_method is RecoveryMethod.RH_PRIORITY


def test_enabled_is_true_in_rows_from_before_the_column(session, make_segment, set_columns):
    segment = make_segment()
    set_columns(SegmentRow, segment.id, enabled=None)

    assert segments.by_uuid(session, segment.uuid).enabled is True


def test_names_are_unique_among_live_segments(session, make_segment):
    make_segment("taken")
    other = make_segment("other")

    with pytest.raises(errors.SegmentExists, match="with name taken already exists"):
        make_segment("taken")
    with pytest.raises(errors.SegmentExists, match="with name taken already exists"):
        segments.update(session, other.uuid, {"name": "taken"})


def test_a_deleted_name_is_free_again_and_again(session, make_segment):
    for _ in range(3):
        segment = make_segment("again")
        segments.delete(session, segment.uuid)

        with pytest.raises(errors.SegmentNotFound, match=f"with id {segment.uuid}"):
            segments.by_uuid(session, segment.uuid)


def test_deletion_takes_the_hosts_along_and_keeps_the_rows(session, make_segment, make_host):
    segment, other = make_segment("one"), make_segment("two")
    host, spared = make_host("compute-1", segment), make_host("compute-2", other)

    segments.delete(session, segment.uuid)

    row = session.get(SegmentRow, segment.id)
    assert (row.deleted, row.updated_at) == (segment.id, None)
    assert row.deleted_at is not None
    assert session.get(HostRow, host.id).deleted == host.id
    assert hosts.by_uuid(session, spared.uuid) == spared
    with pytest.raises(errors.SegmentNotFound):
        segments.delete(session, segment.uuid)


def test_only_a_real_change_is_written(session, make_segment):
    segment = make_segment("one", description="text")
    statements = []
    event.listen(
        session.connection(),
        "before_cursor_execute",
        lambda *arguments: statements.append(arguments[2].split()[0]),
    )

    same = segments.update(session, segment.uuid, {"name": "one", "enabled": True})
    assert same == segment
    assert "UPDATE" not in statements

    changed = segments.update(session, segment.uuid, {"name": "one", "description": None})
    assert changed.description is None
    assert changed.updated_at is not None
    assert "UPDATE" in statements


def test_an_unknown_segment_cannot_be_changed(session):
    with pytest.raises(errors.SegmentNotFound, match="No failover segment with id nope"):
        segments.update(session, "nope", {"name": "x"})


@pytest.mark.parametrize("status", NotificationStatus)
def test_in_use_until_the_notification_of_a_live_host_ends(
    session, make_host, make_notification, set_columns, status
):
    host = make_host()
    notification = make_notification(host.uuid)
    set_columns(NotificationRow, notification.id, status=status)

    used = segments.in_use(session, host.failover_segment_id)

    assert used == (status in {"new", "running", "error"})


def test_not_in_use_by_other_segments_or_deleted_hosts(
    session, make_segment, make_host, make_notification
):
    idle, host = make_segment("idle"), make_host()
    make_notification(host.uuid)
    assert not segments.in_use(session, idle.uuid)

    hosts.delete(session, host.uuid)

    assert not segments.in_use(session, host.failover_segment_id)


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, {"a", "b", "c"}),
        ({"recovery_method": "auto"}, {"a", "c"}),
        ({"recovery_method": "nope"}, set()),
        ({"service_type": "X", "recovery_method": "auto"}, {"c"}),
        ({"enabled": "1"}, {"a", "c"}),
        ({"enabled": "0"}, {"b"}),
        ({"enabled": "true"}, {"b"}),
        ({"enabled": ""}, {"b"}),
        ({"enabled": "2"}, set()),
        ({"enabled": "1e"}, {"a", "c"}),
    ],
    ids=str,
)
def test_filters(session, make_segment, filters, names):
    make_segment("a")
    make_segment("b", recovery_method=RecoveryMethod.RESERVED_HOST, enabled=False)
    make_segment("c", service_type="X")
    segments.delete(session, make_segment("d").uuid)

    assert _names(segments.listed(session, Page(), **filters)) == names


def test_a_list_gives_the_records_that_single_reads_give(session, make_segment, set_columns):
    segment = make_segment("one")
    set_columns(SegmentRow, segment.id, updated_at=datetime(2026, 3, 2, 1, 2, 3))

    [listed] = segments.listed(session, Page())

    assert listed == segments.by_uuid(session, segment.uuid)
