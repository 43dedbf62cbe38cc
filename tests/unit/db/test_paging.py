"""Protects sorting, markers and limits of all lists."""

from datetime import datetime

import pytest

from masakari_ng import errors
from masakari_ng.db import hosts, notifications, segments
from masakari_ng.db.paging import Page
from masakari_ng.db.rows import NotificationRow, SegmentRow
from masakari_ng.domain import RecoveryMethod
from tests.unit.db.walk import SORT_KEYS, ids_at_once, ids_in_pages, vary


@pytest.fixture
def four(make_segment, set_columns):
    """Created in the order b, a, d, c, the last two in the same second."""
    methods = {"a": RecoveryMethod.RESERVED_HOST, "c": RecoveryMethod.RESERVED_HOST}
    made = {}
    for name, second in (("b", 1), ("a", 2), ("d", 3), ("c", 3)):
        made[name] = make_segment(name, recovery_method=methods.get(name, RecoveryMethod.AUTO))
        set_columns(SegmentRow, made[name].id, created_at=datetime(2026, 3, 2, 0, 0, second))
    return made


def _listed(session, **page):
    return "".join(segment.name for segment in segments.listed(session, Page(**page)))


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ({}, "cdab"),
        ({"sort_dirs": ("asc",)}, "badc"),
        ({"sort_keys": ("name",)}, "dcba"),
        ({"sort_keys": ("name",), "sort_dirs": ("asc",)}, "abcd"),
        ({"sort_keys": ("recovery_method", "name"), "sort_dirs": ("asc", "desc")}, "dbca"),
        ({"sort_keys": ("recovery_method", "name"), "sort_dirs": ("desc",)}, "cadb"),
        ({"sort_keys": ("id",)}, "cdab"),
        ({"limit": 2}, "cd"),
        ({"limit": 99}, "cdab"),
        ({"limit": 0, "marker": "zzz", "sort_keys": ("nope",), "sort_dirs": ("up",)}, ""),
    ],
    ids=str,
)
def test_order_and_limit(session, four, page, names):
    assert _listed(session, **page) == names


@pytest.mark.parametrize(
    ("name", "page", "names"),
    [
        ("d", {}, "ab"),
        ("c", {"limit": 2}, "da"),
        ("b", {"sort_keys": ("name",), "sort_dirs": ("asc",)}, "cd"),
        ("b", {"sort_keys": ("name",) * 999, "sort_dirs": ("asc", "desc")}, "cd"),
        ("b", {}, ""),
    ],
    ids=str,
)
def test_a_page_begins_behind_the_marker(session, four, name, page, names):
    assert _listed(session, marker=str(four[name].id), **page) == names


def test_the_marker_need_not_match_the_filter(session, four):
    page = Page(marker=str(four["d"].id))

    found = segments.listed(session, page, recovery_method="reserved_host")

    assert [segment.name for segment in found] == ["a"]


@pytest.mark.parametrize(
    "text", ["999", "nope", "", "{id}abc", " {id}", "+{id}", "1.0", "٣", "9" * 40]
)
def test_a_marker_is_the_id_of_a_live_row(session, four, text):
    marker = text.format(id=four["a"].id)

    with pytest.raises(errors.MarkerNotFound) as raised:
        _listed(session, marker=marker)

    assert str(raised.value) == f"Marker {marker} could not be found."


def test_a_deleted_row_is_no_marker(session, four):
    segments.delete(session, four["a"].uuid)

    with pytest.raises(errors.MarkerNotFound):
        _listed(session, marker=str(four["a"].id))


@pytest.mark.parametrize(
    ("page", "error", "text"),
    [
        (
            {"sort_keys": ("nope",)},
            errors.InvalidSortKey,
            "InvalidSortKey('Sort key supplied is invalid: nope')",
        ),
        (
            {"sort_keys": ("name",), "sort_dirs": ("ASC",)},
            errors.InvalidInput,
            "Invalid input received: Unknown sort direction, must be 'asc' or 'desc'",
        ),
        (
            {"sort_dirs": ("asc", "asc")},
            errors.InvalidInput,
            "Invalid input received: Sort direction size exceeds sort key size",
        ),
        (
            {"sort_dirs": ("up",), "marker": "zzz", "sort_keys": ("nope",)},
            errors.InvalidInput,
            "Invalid input received: Unknown sort direction, must be 'asc' or 'desc'",
        ),
        (
            {"marker": "zzz", "sort_keys": ("nope",)},
            errors.MarkerNotFound,
            "Marker zzz could not be found.",
        ),
    ],
    ids=["key", "direction", "too many", "direction first", "marker before key"],
)
def test_what_is_wrong_is_said_in_order(session, page, error, text):
    with pytest.raises(error) as raised:
        _listed(session, **page)

    assert str(raised.value) == text


def test_attributes_that_are_no_columns_are_no_keys(session, make_segment):
    page = Page(sort_keys=("failover_segment",))

    with pytest.raises(errors.InvalidSortKey):
        hosts.listed(session, page, make_segment())


def test_an_enum_sorts_by_its_order_in_the_database(session, make_notification, set_columns):
    for status in ("finished", "new", "error"):
        set_columns(NotificationRow, make_notification().id, status=status)

    found = notifications.listed(session, Page(sort_keys=("status",), sort_dirs=("asc",)))

    assert [notification.status for notification in found] == ["new", "error", "finished"]


@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("key", SORT_KEYS)
def test_pages_visit_every_row_once(session, make_notification, set_columns, key, direction):
    for number in range(12):
        values = {**vary(number), "updated_at": None if number % 2 else datetime(2026, 3, 2)}
        set_columns(NotificationRow, make_notification().id, **values)

    pages = ids_in_pages(session, 5, (key,), (direction,))

    assert pages == ids_at_once(session, (key,), (direction,))
    assert len(set(pages)) == 12
