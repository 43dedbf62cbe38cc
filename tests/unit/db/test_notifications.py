"""Protects how reports are stored and found, and that a status changes by compare-and-set."""

from datetime import datetime

import pytest

from masakari_ng import errors
from masakari_ng.db import notifications
from masakari_ng.db.paging import Page
from masakari_ng.db.rows import IntakeRow, NotificationRow
from masakari_ng.domain import NotificationStatus, NotificationType

_TIME = datetime(2026, 3, 2, 10)
_NEW, _RUNNING = NotificationStatus.NEW, NotificationStatus.RUNNING


def _uuids(found):
    return [notification.notification_uuid for notification in found]


def test_a_new_report_is_stored_as_sent(session, make_notification):
    payload = {"event": "STOPPED", "cluster_status": "OFFLINE", "name": "café"}
    created = make_notification("host-1", payload=payload, failover_segment_uuid="segment-1")

    assert created.status is NotificationStatus.NEW
    assert created.type is NotificationType.COMPUTE_HOST
    assert (created.updated_at, created.message) == (None, None)
    assert list(created.payload.items()) == list(payload.items())
    assert notifications.by_uuid(session, created.notification_uuid) == created
    assert session.get(NotificationRow, created.id).payload == (
        '{"event": "STOPPED", "cluster_status": "OFFLINE", "name": "caf\\u00e9"}'
    )


def test_the_fraction_of_the_time_is_shown_once_and_not_stored(session, make_notification):
    exact = _TIME.replace(microsecond=500_000)

    created = make_notification(generated_time=exact)

    assert created.generated_time == exact
    stored = notifications.by_uuid(session, created.notification_uuid)
    assert stored.generated_time == _TIME


@pytest.mark.parametrize(
    ("text", "payload"),
    [(None, {}), ('{"a": 5, "b": null}', {"a": "5", "b": "None"})],
)
def test_an_odd_payload_of_another_program_is_readable(
    session, make_notification, set_columns, text, payload
):
    notification = make_notification()
    set_columns(NotificationRow, notification.id, payload=text)

    [found] = notifications.listed(session, Page())

    assert found.payload == payload


def test_unknown_or_deleted_reports_are_not_found(session, make_notification, set_columns):
    notification = make_notification()
    set_columns(NotificationRow, notification.id, deleted=notification.id)

    with pytest.raises(errors.NotificationNotFound, match="No notification with id"):
        notifications.by_uuid(session, notification.notification_uuid)


def test_duplicates_are_looked_for_by_host_type_and_time(session, make_notification, set_columns):
    same = make_notification("host-1")
    later = make_notification("host-1", generated_time=datetime(2026, 3, 9))
    make_notification("host-1", generated_time=datetime(2026, 3, 2, 9, 59, 59))
    make_notification("host-1", type=NotificationType.VM)
    make_notification("host-2")
    deleted = make_notification("host-1")
    set_columns(NotificationRow, deleted.id, deleted=deleted.id)

    found = notifications.reported_since(session, "host-1", NotificationType.COMPUTE_HOST, _TIME)

    assert _uuids(found) == _uuids([same, later])


def test_intake_changes_its_row_each_time(session):
    """A row that stays the same would not make two writers collide on Galera."""
    seen = []
    for _ in range(3):
        notifications.intake(session, "host-1", NotificationType.VM)
        session.expire_all()
        seen.append(session.get(IntakeRow, ("host-1", "VM")).reported_at)

    assert seen[0] != seen[1]
    assert seen[1] != seen[2]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, {"a", "b", "c"}),
        ({"type": "VM"}, {"b"}),
        ({"type": "NOPE"}, set()),
        ({"status": "error"}, {"c"}),
        ({"status": "nope"}, set()),
        ({"source_host_uuid": "a"}, {"a"}),
        ({"generated_since": _TIME}, {"a", "b"}),
        ({"generated_since": _TIME, "type": "COMPUTE_HOST"}, {"a"}),
    ],
    ids=str,
)
def test_filters(session, make_notification, set_columns, filters, found):
    make_notification("a")
    make_notification("b", type=NotificationType.VM)
    failed = make_notification("c", generated_time=datetime(2026, 3, 1))
    set_columns(NotificationRow, failed.id, status="error")

    listed = notifications.listed(session, Page(), **filters)

    assert {notification.source_host_uuid for notification in listed} == found


def test_unfinished_ones_come_newest_first(session, make_notification, set_columns):
    first, second, third, running = (make_notification() for _ in range(4))
    for notification in (second, third):
        set_columns(NotificationRow, notification.id, created_at=datetime(2099, 1, 1))
    set_columns(NotificationRow, second.id, status="error")
    set_columns(NotificationRow, running.id, status="running")

    found = notifications.unfinished(session, {_NEW, NotificationStatus.ERROR})

    assert _uuids(found) == _uuids([third, second, first])


def test_a_status_changes_only_from_an_expected_one(session, make_notification):
    uuid = make_notification().notification_uuid
    steps = [
        ({_NEW, NotificationStatus.ERROR}, _RUNNING, None, True),
        ({_NEW}, _RUNNING, None, False),
        ({_RUNNING}, NotificationStatus.FINISHED, "why", True),
        ({_RUNNING, _NEW}, NotificationStatus.FAILED, "lost", False),
    ]

    outcomes = [
        notifications.change_status(session, uuid, expected=expected, status=to, message=message)
        for expected, to, message, _ in steps
    ]

    assert outcomes == [won for *_, won in steps]
    found = notifications.by_uuid(session, uuid)
    assert (found.status, found.message) == (NotificationStatus.FINISHED, "why")
    assert found.updated_at is not None


def test_setting_the_present_status_again_is_no_change(session, make_notification):
    uuid = make_notification().notification_uuid

    assert not notifications.change_status(session, uuid, expected={_NEW}, status=_NEW)
    assert notifications.by_uuid(session, uuid).updated_at is None
