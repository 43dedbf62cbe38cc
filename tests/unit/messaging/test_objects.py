"""Protects what objects look like on the wire, and that odd ones of peers are read or refused."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from masakari_ng import errors
from masakari_ng.messaging import objects

_DATA = Path(__file__).parent / "data"


def _frame(name: str) -> dict[str, Any]:
    frame: dict[str, Any] = json.loads((_DATA / name).read_text())
    return frame


@pytest.fixture
def wire() -> dict[str, Any]:
    """A notification object that may be spoilt."""
    found: dict[str, Any] = _frame("cast-process_notification-vm.json")["message"]["args"]
    return dict(found["notification"])


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_fields_that_an_old_object_lacks_are_none(version: str):
    message = _frame(f"peer-call-object-{version}.json")["message"]

    read = objects.notification_from_wire(message["args"]["notification"])

    assert (read.failover_segment_uuid, read.message) == (None, None)
    assert read.notification_uuid == "d1ce9cd6-c1e1-4284-a178-f45f208931f8"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30T17:28:52Z", datetime(2026, 11, 30, 17, 28, 52)),
        ("2026-11-30T17:28:52", datetime(2026, 11, 30, 17, 28, 52)),
        ("2026-11-30 17:28:52.999999Z", datetime(2026, 11, 30, 17, 28, 52)),
        ("2026-11-30T17:28:52+02:00", datetime(2026, 11, 30, 15, 28, 52)),
        ("20261130T172852Z", datetime(2026, 11, 30, 17, 28, 52)),
    ],
)
def test_instants_are_utc_in_whole_seconds(wire: dict[str, Any], text: str, expected: datetime):
    wire["masakari_object.data"] |= {"generated_time": text, "updated_at": text}

    read = objects.notification_from_wire(wire)

    assert (read.generated_time, read.updated_at) == (expected, expected)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "one"},
        {"id": None},
        {"id": float("inf")},
        {"notification_uuid": None},
        {"generated_time": None},
        {"generated_time": "0001-01-01T00:00:00+14:00"},
        {"type": "HOST"},
        {"payload": ["event"]},
        {"payload": {"event": None}},
        {"status": []},
    ],
    ids=str,
)
def test_values_that_a_field_cannot_hold_are_refused(
    wire: dict[str, Any], changes: dict[str, object]
):
    wire["masakari_object.data"] |= changes

    with pytest.raises(errors.BadMessage):
        objects.notification_from_wire(wire)


@pytest.mark.parametrize("field", ["id", "notification_uuid", "payload", "status"])
def test_an_object_without_a_necessary_field_is_refused(wire: dict[str, Any], field: str):
    del wire["masakari_object.data"][field]

    with pytest.raises(errors.BadMessage, match=field):
        objects.notification_from_wire(wire)


@pytest.mark.parametrize(
    "value",
    [None, "text", [], {}, {"notification_uuid": "x"}],
    ids=str,
)
def test_what_is_no_object_is_refused(value: object):
    with pytest.raises(errors.NotAnObject):
        objects.notification_from_wire(value)


def test_details_go_out_and_come_back():
    answer = _frame("reply-details-compute_host.json")["message"]["result"]

    tasks = objects.details_from_wire(answer)

    assert [task.name for task in tasks] == [
        "DisableComputeServiceTask",
        "PrepareHAEnabledInstancesTask",
        "EvacuateInstancesTask",
    ]
    assert tasks[1].progress_details[1].progress == 0.3
    received = _frame("call-details-compute_host.json")["message"]["args"]["notification"]
    sent = objects.with_details(received, tasks)
    assert sent["masakari_object.data"].keys() == answer["masakari_object.data"].keys()


@pytest.mark.parametrize(
    "answer",
    [None, {}, {"masakari_object.name": "Notification"}, [1]],
    ids=str,
)
def test_another_answer_is_refused(answer: object):
    with pytest.raises(errors.BadMessage):
        objects.details_from_wire(answer)
