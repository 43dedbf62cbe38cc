"""Protects that each change is told in upstream's order, and a refused one is not."""

from types import SimpleNamespace
from typing import Any

import pytest

from masakari_ng import errors
from masakari_ng.domain import RequestContext
from masakari_ng.messaging.client import EngineClient
from masakari_ng.messaging.connection import Broker
from masakari_ng.messaging.events import Events
from masakari_ng.operations import Hosts, Notifications, Segments
from tests.told import Told

CALLER = RequestContext(request_id="req-1")
SEGMENT = {"name": "rack", "service_type": "COMPUTE", "recovery_method": "auto"}
HOST = {"name": "compute-1", "type": "COMPUTE", "control_attributes": "SSH"}
REPORT: dict[str, Any] = {
    "type": "VM",
    "hostname": "compute-1",
    "generated_time": "2026-03-01T10:00:00",
    "payload": {"event": "LIFECYCLE"},
}


class Cloud:
    """Knows every host."""

    def fresh_nova(self, request_id: str) -> SimpleNamespace:
        return SimpleNamespace(services=lambda name: [name])


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def segments(database, told) -> Segments:
    return Segments(database, Events(told))


@pytest.fixture
def hosts(database, told) -> Hosts:
    return Hosts(database, Cloud(), Events(told))


@pytest.fixture
def reports(conf, database, told) -> Notifications:
    engine = EngineClient(Broker(conf), timeout=2)
    return Notifications(database, engine, workflows=None, window=180, events=Events(told))


def test_all_changes_of_segments_and_hosts_are_told(segments, hosts, told):
    segment = segments.create(CALLER, SEGMENT)
    host = hosts.create(CALLER, segment.uuid, HOST)
    hosts.update(CALLER, segment.uuid, host.uuid, {"reserved": True})
    segments.update(CALLER, segment.uuid, {"description": "new"})
    hosts.delete(CALLER, segment.uuid, host.uuid)
    segments.delete(CALLER, segment.uuid)

    nouns = ("segment", "host", "host", "segment", "host", "segment")
    actions = ("create", "create", "update", "update", "delete", "delete")
    assert told.events == [
        f"{noun}.{action}.{phase}"
        for noun, action in zip(nouns, actions, strict=True)
        for phase in ("start", "end")
    ]
    assert told.payload("segment.create.end").keys() == {
        "fault",
        "name",
        "service_type",
        "description",
        "recovery_method",
        "enabled",
    }
    assert told.payload("host.update.start")["reserved"] is True
    assert told.payload("segment.update.start")["description"] == "new"
    assert told.payload("host.delete.end")["uuid"] == host.uuid


def test_a_name_that_is_taken_is_told(segments, hosts, told):
    segment = segments.create(CALLER, SEGMENT)
    hosts.create(CALLER, segment.uuid, HOST)

    with pytest.raises(errors.SegmentExists):
        segments.create(CALLER, SEGMENT)
    with pytest.raises(errors.HostExists):
        hosts.create(CALLER, segment.uuid, HOST)

    for event, kind in (
        ("segment.create.error", "FailoverSegmentExists"),
        ("host.create.error", "HostExists"),
    ):
        fault = told.payload(event)["fault"]["masakari_object.data"]
        assert fault["exception"] == kind
        assert "already exists" in fault["exception_message"]


def test_a_report_is_told_once_and_what_is_refused_is_not(segments, hosts, reports, told):
    segment = segments.create(CALLER, SEGMENT)
    host = hosts.create(CALLER, segment.uuid, HOST)
    told.sent.clear()

    reports.create(CALLER, REPORT)
    with pytest.raises(errors.DuplicateNotification):
        reports.create(CALLER, REPORT)
    with pytest.raises(errors.HostInUse):
        hosts.delete(CALLER, segment.uuid, host.uuid)
    with pytest.raises(errors.SegmentInUse):
        segments.update(CALLER, segment.uuid, {"description": "new"})
    with pytest.raises(errors.SegmentNotFound):
        segments.delete(CALLER, "no such segment")

    assert told.events == ["notification.create.start", "notification.create.end"]
    payload = told.payload("notification.create.end")
    assert (payload["status"], payload["generated_time"]) == ("new", "2026-03-01T10:00:00Z")
