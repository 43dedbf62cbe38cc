"""What can be done with the hosts of a segment. Spec: rest-api §12, §16."""

from collections.abc import Mapping
from typing import Any

from oslo_utils import strutils, uuidutils
from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.compute.nova import Cloud
from masakari_ng.db import hosts, segments
from masakari_ng.db.paging import Page
from masakari_ng.db.session import Database
from masakari_ng.domain import Host, RequestContext
from masakari_ng.operations.segments import Fields

_FLAGS = ("reserved", "on_maintenance")


class Hosts:
    """Hosts of one database, checked against Nova."""

    def __init__(self, database: Database, cloud: Cloud) -> None:
        self._database = database
        self._cloud = cloud

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
        if fields["type"] is None or fields["control_attributes"] is None:
            # Upstream answers 500, before it asks Nova.
            raise ValueError("A host has a type and control attributes")
        self._check_with_nova(caller, fields["name"])
        values = _interpreted(fields)
        return self._database.write(lambda session: _create(session, segment, values))

    def update(self, caller: RequestContext, segment: str, uuid: str, fields: Fields) -> Host:
        """Change a host.

        Raises:
            HostNotFoundUnderSegment: it is not in this segment.
            HostInUse: a host of its segment is being recovered.
            ComputeServiceNotFound: Nova has no compute service of the new name.
            CloudError: Nova or Keystone failed.
            HostExists: the name is taken, in any segment.
        """
        self._database.read(lambda session: _check_idle(session, segment, uuid, "updated"))
        if "name" in fields:
            try:
                self._check_with_nova(caller, fields["name"])
            except errors.CloudConflict as error:
                # Only here does upstream pass a 409 of Nova on.
                raise errors.Conflict("Conflict") from error
        changes = _interpreted(fields)
        return self._database.write(lambda session: _update(session, segment, uuid, changes))

    def delete(self, segment: str, uuid: str) -> None:
        """Remove a host.

        Raises:
            HostNotFoundUnderSegment: it is not in this segment.
            HostInUse: a host of its segment is being recovered.
        """
        self._database.write(lambda session: _delete(session, segment, uuid))

    def _check_with_nova(self, caller: RequestContext, name: str) -> None:
        if not self._cloud.fresh_nova(caller.nova_request_id).services(name):
            raise errors.ComputeServiceNotFound(name)


def _interpreted(fields: Fields) -> dict[str, Any]:
    flags = {
        name: strutils.bool_from_string(fields[name], strict=True)
        for name in _FLAGS
        if name in fields
    }
    return {**fields, **flags}


def _listed(session: Session, segment: str, page: Page, filters: Mapping[str, str]) -> list[Host]:
    segments.by_uuid(session, segment)
    flags = {name: _flag(name, filters[name]) for name in _FLAGS if name in filters}
    return hosts.listed(session, page, segment, type=filters.get("type"), **flags)


def _flag(name: str, value: str) -> bool:
    try:
        return strutils.bool_from_string(value, strict=True)
    except ValueError as error:
        raise errors.InvalidFilter(f"Invalid value for {name}: {error}") from error


def _check_idle(session: Session, segment: str, uuid: str, change: str) -> None:
    hosts.in_segment(session, segment, uuid)
    if segments.in_use(session, segment):
        raise errors.HostInUse(uuid, change)


def _create(session: Session, segment: str, values: Fields) -> Host:
    # Nova was asked in between, outside any transaction; the segment may be gone by now.
    segments.by_uuid(session, segment)
    return hosts.create(session, segment_uuid=segment, **values)


def _update(session: Session, segment: str, uuid: str, changes: Fields) -> Host:
    # As in `_create`: the recovery may have begun.
    _check_idle(session, segment, uuid, "updated")
    return hosts.update(session, uuid, changes)


def _delete(session: Session, segment: str, uuid: str) -> None:
    _check_idle(session, segment, uuid, "deleted")
    hosts.delete(session, uuid)
