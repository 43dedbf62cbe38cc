"""What can be done with the hosts of a segment. Spec: rest-api §12, §16."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from oslo_utils import strutils, uuidutils
from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.compute.nova import Cloud
from masakari_ng.db import hosts, segments
from masakari_ng.db.paging import Page
from masakari_ng.db.session import Database
from masakari_ng.domain import Host, RequestContext
from masakari_ng.messaging.events import About, Events
from masakari_ng.operations.segments import Fields

_FLAGS = ("reserved", "on_maintenance")


class Hosts:
    """Hosts of one database, checked against Nova.

    Args:
        database: masakari's tables.
        cloud: with the Nova that knows the hosts.
        events: told of every change.
    """

    def __init__(self, database: Database, cloud: Cloud, events: Events | None = None) -> None:
        self._database = database
        self._cloud = cloud
        self._events = events or Events()

    def listed(self, segment: str, page: Page, filters: Mapping[str, str]) -> list[Host]:
        """One page of a segment, filtered by the text of `type`, `reserved`, `on_maintenance`.

        Raises:
            SegmentNotFound: there is none.
            InvalidFilter: a flag is neither true nor false.
        """
        return self._database.read(lambda session: _listed(session, segment, page, filters))

    def show(self, segment: str, uuid: str) -> Host:
        """One host.

        Raises:
            HostNotFound: this is no uuid.
            HostNotFoundUnderSegment: it is not in this segment.
        """
        if not uuidutils.is_uuid_like(uuid):
            raise errors.HostNotFound(uuid)
        return self._database.read(lambda session: hosts.in_segment(session, segment, uuid))

    def create(self, caller: RequestContext, segment: str, fields: Fields) -> Host:
        """Add a host.

        Raises:
            SegmentNotFound: there is none.
            ComputeServiceNotFound: Nova has no compute service of this name.
            CloudError: Nova or Keystone failed.
            HostExists: the name is taken, in any segment.
        """
        self._database.read(lambda session: segments.by_uuid(session, segment))
        _check_present(fields)
        self._check_with_nova(caller, fields["name"])
        values = _interpreted(fields)
        with self._events.around(caller, "host.create") as about:
            return self._database.write(lambda session: _create(session, segment, values, about))

    def update(self, caller: RequestContext, segment: str, uuid: str, fields: Fields) -> Host:
        """Change a host.

        Raises:
            HostNotFoundUnderSegment: it is not in this segment.
            HostInUse: a host of its segment is being recovered.
            ComputeServiceNotFound: Nova has no compute service of the new name.
            CloudError: Nova or Keystone failed.
            HostExists: the name is taken, in any segment.
        """
        self._database.read(lambda session: _idle(session, segment, uuid, "updated"))
        if "name" in fields:
            try:
                self._check_with_nova(caller, fields["name"])
            except errors.CloudConflict as error:
                # Only here does upstream pass a 409 of Nova on.
                raise errors.Conflict("Conflict") from error
        _check_present(fields)
        changes = _interpreted(fields)
        with self._events.around(caller, "host.update") as about:
            return self._database.write(
                lambda session: _update(session, segment, uuid, changes, about)
            )

    def delete(self, caller: RequestContext, segment: str, uuid: str) -> None:
        """Remove a host.

        Raises:
            HostNotFoundUnderSegment: it is not in this segment.
            HostInUse: a host of its segment is being recovered.
        """
        with self._events.around(caller, "host.delete") as about:
            self._database.write(lambda session: _delete(session, segment, uuid, about))

    def _check_with_nova(self, caller: RequestContext, name: str) -> None:
        if not self._cloud.fresh_nova(caller.nova_request_id).services(name):
            raise errors.ComputeServiceNotFound(name)


def _check_present(fields: Fields) -> None:
    """Upstream answers 500 for a null that its schema lets through."""
    if None in (fields.get("type", ""), fields.get("control_attributes", "")):
        raise ValueError("A host has a type and control attributes")


def _interpreted(fields: Fields) -> dict[str, Any]:
    flags = {
        name: strutils.bool_from_string(fields[name], strict=True)
        for name in _FLAGS
        if name in fields
    }
    return {**fields, **flags}


def _listed(session: Session, segment: str, page: Page, filters: Mapping[str, str]) -> list[Host]:
    found = segments.by_uuid(session, segment)
    flags = {name: _flag(name, filters[name]) for name in _FLAGS if name in filters}
    return hosts.listed(session, page, found, type=filters.get("type"), **flags)


def _flag(name: str, value: str) -> bool:
    try:
        return strutils.bool_from_string(value, strict=True)
    except ValueError as error:
        raise errors.InvalidFilter(f"Invalid value for {name}: {error}") from error


def _idle(session: Session, segment: str, uuid: str, change: str) -> Host:
    found = hosts.in_segment(session, segment, uuid)
    if segments.in_use(session, segment):
        raise errors.HostInUse(uuid, change)
    return found


def _create(session: Session, segment: str, values: Fields, about: About) -> Host:
    # Nova was asked in between, outside any transaction; the segment may be gone by now.
    found = segments.by_uuid(session, segment)
    about({"reserved": False, "on_maintenance": False, **values, "segment": asdict(found)})
    return hosts.create(session, segment_uuid=segment, **values)


def _update(session: Session, segment: str, uuid: str, changes: Fields, about: About) -> Host:
    # As in `_create`: the recovery may have begun.
    about(replace(_idle(session, segment, uuid, "updated"), **changes))
    return hosts.update(session, uuid, changes)


def _delete(session: Session, segment: str, uuid: str, about: About) -> None:
    about(_idle(session, segment, uuid, "deleted"))
    hosts.delete(session, uuid)
