"""Visiting a list page by page."""

from masakari_ng.db import notifications
from masakari_ng.db.paging import Page
from masakari_ng.db.rows import NotificationRow

SORT_KEYS = NotificationRow.__table__.columns.keys()


def ids_in_pages(session, size, keys, dirs):
    """Ids of all notifications, read in pages of `size`."""
    seen, marker = [], None
    while page := notifications.listed(session, Page(size, marker, keys, dirs)):
        seen += [notification.id for notification in page]
        marker = str(seen[-1])
    return seen


def ids_at_once(session, keys, dirs):
    found = notifications.listed(session, Page(None, None, keys, dirs))
    return [notification.id for notification in found]


def vary(number):
    """Column values with ties and NULLs for the row of this number."""
    statuses = ("finished", "new", "error", "running", "failed", "ignored")
    return {
        "status": statuses[number % len(statuses)],
        "message": None if number % 2 else f"message {number % 3}",
        "payload": '{"a": "b"}' if number % 3 else None,
        "updated_at": None if number % 2 else f"2026-03-0{1 + number % 3} 00:00:00",
        "failover_segment_uuid": None if number % 4 else "segment",
    }
