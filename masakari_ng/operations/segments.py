"""What can be done with segments. Spec: rest-api §11."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from oslo_utils import strutils
from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db import segments
from masakari_ng.db.paging import Page
from masakari_ng.db.session import Database
from masakari_ng.domain import RequestContext, Segment
from masakari_ng.messaging.events import About, Events

Fields = Mapping[str, Any]
"""Properties of a request that has been held against its schema."""


class Segments:
    """Segments of one database.

    Args:
        database: masakari's tables.
        events: told of every change.
    """

    def __init__(self, database: Database, events: Events | None = None) -> None:
        self._database = database
        self._events = events or Events()

    def listed(self, page: Page, filters: Mapping[str, str]) -> list[Segment]:
        """One page, filtered by the text of `recovery_method`, `service_type`, `enabled`."""
        return self._database.read(lambda session: segments.listed(session, page, **filters))

    def show(self, uuid: str) -> Segment:
        """One segment.

        Raises:
            SegmentNotFound: there is none.
        """
        return self._database.read(lambda session: segments.by_uuid(session, uuid))

    def create(self, caller: RequestContext, fields: Fields) -> Segment:
        """Create a segment.

        Raises:
            SegmentExists: the name is taken.
        """
        enabled = strutils.bool_from_string(fields.get("enabled", True), strict=True)
        values = {"description": None, **fields, "enabled": enabled}
        with self._events.around(caller, "segment.create") as about:
            about(values)
            return self._database.write(lambda session: segments.create(session, **values))

    def update(self, caller: RequestContext, uuid: str, fields: Fields) -> Segment:
        """Change a segment. As in upstream, any text for `enabled` means true here.

        Raises:
            SegmentNotFound: there is none.
            SegmentInUse: one of its hosts is being recovered.
            SegmentExists: the name is taken.
        """
        changes = dict(fields)
        if "enabled" in changes:
            changes["enabled"] = bool(changes["enabled"])
        with self._events.around(caller, "segment.update") as about:
            return self._database.write(lambda session: _update(session, uuid, changes, about))

    def delete(self, caller: RequestContext, uuid: str) -> None:
        """Delete a segment with its hosts.

        Raises:
            SegmentNotFound: there is none.
            SegmentInUse: one of its hosts is being recovered.
        """
        with self._events.around(caller, "segment.delete") as about:
            self._database.write(lambda session: _delete(session, uuid, about))


def _update(session: Session, uuid: str, changes: Fields, about: About) -> Segment:
    found = segments.by_uuid(session, uuid)
    if segments.in_use(session, uuid):
        raise errors.SegmentInUse(uuid, "updated")
    about(replace(found, **changes))
    return segments.update(session, uuid, changes)


def _delete(session: Session, uuid: str, about: About) -> None:
    found = segments.by_uuid(session, uuid)
    if segments.in_use(session, uuid):
        raise errors.SegmentInUse(f"({uuid})", "deleted")
    about(found)
    segments.delete(session, uuid)
