"""Sorting and pages of all lists. Spec: data-model §6, rest-api §9."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db.rows import StoredRow, one

_LAST_KEYS = ("created_at", "id")
_ID = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list, in which order.

    Attributes:
        limit: most rows to give; 0 gives none without looking at the rest.
        marker: `id` of the last row of the previous page, as text.
        sort_keys: column names; none means `created_at`.
        sort_dirs: `asc` or `desc`, at most one for each key; the first, or `desc`, for those
            left out.
    """

    limit: int | None = None
    marker: str | None = None
    sort_keys: tuple[str, ...] = ()
    sort_dirs: tuple[str, ...] = ()


def rows_of(
    session: Session, row: type[StoredRow], query: sa.Select[Any], page: Page
) -> Sequence[Any]:
    """Run `query` for one page.

    Args:
        session: open transaction.
        row: table whose columns sort and whose ids are markers.
        query: already filtered.
        page: what was asked for.

    Raises:
        InvalidInput: a direction is unknown, or there are more of them than keys.
        MarkerNotFound: no live row has this id.
        InvalidSortKey: no such column.
    """
    if page.limit == 0:
        return []
    order = _order(page)
    marker = None if page.marker is None else _marker(session, row, page.marker)
    columns = [(_column(row, key), descending) for key, descending in order]
    if marker is not None:
        query = query.where(_after(columns, marker))
    native = session.get_bind().dialect.name != "sqlite"
    for column, descending in columns:
        sortable = column if native else _sortable(column)  # An index knows the column only.
        query = query.order_by(sortable.desc() if descending else sortable)
    return session.execute(query.limit(page.limit)).all()


def _order(page: Page) -> list[tuple[str, bool]]:
    """Keys with True for descending, each once, ended by those that make the order total."""
    keys = list(page.sort_keys) or ["created_at"]
    if not set(page.sort_dirs) <= {"asc", "desc"}:
        raise errors.InvalidInput("Unknown sort direction, must be 'asc' or 'desc'")
    if len(page.sort_dirs) > len(keys):
        raise errors.InvalidInput("Sort direction size exceeds sort key size")
    if "id" not in keys:  # Nothing behind it would count.
        keys += [key for key in _LAST_KEYS if key not in keys]
    default = page.sort_dirs[0] if page.sort_dirs else "desc"
    order: dict[str, bool] = {}
    for key, direction in itertools.zip_longest(keys, page.sort_dirs, fillvalue=default):
        order.setdefault(key, direction == "desc")
    return list(order.items())


def _marker(session: Session, row: type[StoredRow], text: str) -> sa.RowMapping:
    """The last row of the previous page.

    The text must be an integer: MariaDB would compare `7abc` as 7. Spec: faults row 22.
    """
    if not _ID.fullmatch(text):
        raise errors.MarkerNotFound(text)
    query = sa.select(row.__table__).where(row.id == int(text), row.deleted == 0)
    found: sa.RowMapping = one(session, query, errors.MarkerNotFound(text))._mapping
    return found


def _column(row: type[StoredRow], key: str) -> sa.ColumnElement[Any]:
    column = row.__table__.columns.get(key)
    if column is None:
        raise errors.InvalidSortKey(key)
    return column


def _sortable(column: Any) -> sa.ColumnElement[Any]:
    """What the column sorts by: an enum by position, on SQLite as on MariaDB."""
    if isinstance(column.type, sa.Boolean):
        return sa.type_coerce(column, sa.Integer)  # SQLAlchemy has no < for booleans
    ranks = _ranks(column)
    return sa.case(ranks, value=column) if ranks else column


def _ranks(column: Any) -> dict[str, int]:
    """Numbers of the values of an enum of the database; those that are text there have none."""
    ranked = isinstance(column.type, sa.Enum) and column.type.native_enum
    return {value: number for number, value in enumerate(column.type.enums)} if ranked else {}


def _after(columns: Sequence[tuple[Any, bool]], marker: sa.RowMapping) -> sa.ColumnElement[bool]:
    """Lexicographically behind the marker; both databases take NULL as lowest."""
    behind: sa.ColumnElement[bool] = sa.false()
    for column, descending in reversed(columns):
        value = marker[column.name]
        equal = column == value  # IS NULL for None
        behind = sa.or_(_beyond(column, descending, value), sa.and_(equal, behind))
    return behind


def _beyond(column: Any, descending: bool, value: Any) -> sa.ColumnElement[bool]:
    if value is None:
        return sa.false() if descending else column.is_not(None)
    sortable = _sortable(column)
    bound: object = _ranks(column).get(value, value)
    if not descending:
        return sortable > bound
    return sa.or_(sortable < bound, column.is_(None)) if column.nullable else sortable < bound
