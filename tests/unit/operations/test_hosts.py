"""Protects that a host never comes into a segment that is deleted while Nova is asked."""

from types import SimpleNamespace

import pytest

from masakari_ng import errors
from masakari_ng.db import hosts, segments
from masakari_ng.domain import RecoveryMethod, RequestContext
from masakari_ng.operations import Hosts, Segments

CALLER = RequestContext(request_id="req-1")
HOST = {"name": "compute-1", "type": "COMPUTE", "control_attributes": "SSH"}


class DeletingCloud:
    """Knows every host; the segment is deleted while it is asked."""

    def __init__(self, database, segment: str) -> None:
        self._delete = lambda: Segments(database).delete(CALLER, segment)

    def fresh_nova(self, request_id: str) -> SimpleNamespace:
        return SimpleNamespace(services=self._services)

    def _services(self, host: str) -> list[str]:
        self._delete()
        return [host]


def test_the_segment_may_be_deleted_while_nova_is_asked(database):
    segment = database.write(
        lambda session: segments.create(
            session, name="s", service_type="COMPUTE", recovery_method=RecoveryMethod.AUTO
        )
    )
    cloud = DeletingCloud(database, segment.uuid)

    with pytest.raises(errors.SegmentNotFound):
        Hosts(database, cloud).create(CALLER, segment.uuid, HOST)

    with pytest.raises(errors.HostNotFoundByName):
        database.read(lambda session: hosts.by_name(session, "compute-1"))
