"""Protects the wire format: our frames are upstream's, and upstream's frames are read."""

import json
import zlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from masakari_ng import errors
from masakari_ng.domain import Notification, NotificationStatus, NotificationType, RequestContext
from masakari_ng.messaging import envelope, objects

_DATA = Path(__file__).parent / "data"
_CASTS = sorted(path.name for path in _DATA.glob("cast-*.json"))
_CALLS = sorted(path.name for path in _DATA.glob("call-*.json"))


def _frame(name: str) -> dict[str, Any]:
    frame: dict[str, Any] = json.loads((_DATA / name).read_text())
    return frame


def _context(message: Mapping[str, Any]) -> RequestContext:
    return RequestContext(
        request_id=message["_context_request_id"],
        global_request_id="req-0a0a0a0a-0b0b-0c0c-0d0d-0e0e0e0e0e0e",
        user_id="1f2e3d4c5b6a79880123456789abcdef",
        user_name="monitor",
        project_id="aa11bb22cc33dd44ee55ff6600778899",
        project_name="service",
        user_domain_id="default",
        project_domain_id="default",
        is_admin=True,
        auth_token="user-token-1",
        roles=("admin", "member"),
        remote_address="127.0.0.1",
        timestamp=message["_context_timestamp"],
        service_catalog=(
            {
                "type": "compute",
                "name": "nova",
                "endpoints": [
                    {
                        "publicURL": "http://controller:8774/compute/v2.1",
                        "region": "RegionOne",
                    }
                ],
            },
            {
                "type": "identity",
                "name": "keystone",
                "endpoints": [
                    {
                        "publicURL": "http://controller:8774/identity/v3",
                        "region": "RegionOne",
                    }
                ],
            },
        ),
    )


def _notification(message: Mapping[str, Any]) -> Notification:
    data = message["args"]["notification"]["masakari_object.data"]
    return Notification(
        id=data["id"],
        notification_uuid=data["notification_uuid"],
        generated_time=datetime.strptime(data["generated_time"], "%Y-%m-%dT%H:%M:%SZ"),
        source_host_uuid=data["source_host_uuid"],
        type=NotificationType(data["type"]),
        payload=data["payload"],
        status=NotificationStatus.NEW,
        failover_segment_uuid="8969cacb-986b-474e-9bd8-e1db93350540",
        created_at=datetime.strptime(data["created_at"], "%Y-%m-%dT%H:%M:%SZ"),
    )


@pytest.mark.parametrize("name", _CASTS)
def test_casts_are_those_of_upstream(name: str):
    golden = _frame(name)
    message = golden["message"]

    arguments = {"notification": objects.notification_to_wire(_notification(message))}
    cast = envelope.request("process_notification", "1.0", arguments, _context(message))
    body = json.loads(envelope.pack(cast | {"_unique_id": message["_unique_id"]}))

    assert set(body) == {"oslo.version", "oslo.message"}
    assert body["oslo.version"] == golden["envelope"]["oslo.version"]
    assert json.loads(body["oslo.message"]) == message


@pytest.mark.parametrize("name", _CASTS)
def test_casts_of_upstream_are_read(name: str):
    golden = _frame(name)
    message = golden["message"]

    read = envelope.unpack(json.dumps(golden["envelope"]), golden["properties"]["content_type"])

    assert read == message
    assert envelope.context_from_wire(read) == _context(message)
    assert objects.notification_from_wire(read["args"]["notification"]) == _notification(message)


@pytest.mark.parametrize("name", _CALLS)
def test_calls_are_those_of_upstream(name: str):
    message = _frame(name)["message"]
    notification = objects.notification_from_wire(message["args"]["notification"])
    context = envelope.context_from_wire(message)

    arguments = {"notification": objects.notification_to_wire(notification)}
    call = envelope.request(message["method"], "1.1", arguments, context)
    call |= envelope.call_keys(message["_msg_id"], message["_reply_q"])

    assert json.loads(json.dumps(call)) == message | {"_unique_id": call["_unique_id"]}


def test_a_sign_of_life_is_that_of_upstream():
    request = _frame("peer-call-monitored.json")["message"]
    golden = _frame("peer-reply-monitored-heartbeat.json")["message"]

    alive = envelope.reply(request, None, None, ending=False)

    assert alive == golden | {"_unique_id": alive["_unique_id"]}


@pytest.mark.parametrize("name", sorted(path.name for path in _DATA.glob("*.json")))
def test_every_recorded_frame_has_our_properties_and_is_read(name: str):
    golden = _frame(name)

    expiration = {"expiration"} if "_msg_id" in golden["message"] and "call-" in name else set()
    assert golden["properties"].keys() == envelope.PROPERTIES.keys() | {"headers"} | expiration
    assert golden["properties"].items() >= envelope.PROPERTIES.items()
    body = json.dumps(golden["envelope"] or golden["message"])
    assert envelope.unpack(body, golden["properties"]["content_type"]) == golden["message"]
    if golden["envelope"] is not None:
        packed = json.loads(envelope.pack(golden["message"]))
        assert packed.keys() == golden["envelope"].keys()
        assert json.loads(packed["oslo.message"]) == golden["message"]


def test_a_context_may_be_missing_altogether():
    first, second = envelope.context_from_wire({}), envelope.context_from_wire({})

    assert first.request_id.startswith("req-")
    assert first.request_id != second.request_id
    assert (first.is_admin, first.is_admin_project, first.roles) == (False, True, ())


def test_a_context_is_sent_with_a_timestamp_and_only_with_what_nova_needs_of_the_catalog():
    context = RequestContext(
        request_id="req-1", service_catalog=({"type": "image"}, {"type": "compute"})
    )

    sent = envelope.context_to_wire(context)

    assert len(sent) == 24
    datetime.strptime(sent["_context_timestamp"], "%Y-%m-%dT%H:%M:%S.%f")
    assert sent["_context_user_identity"] == "- - - - -"
    assert sent["_context_service_catalog"] == [{"type": "compute"}]


@pytest.mark.parametrize(
    "changes",
    [{"roles": "admin"}, {"service_catalog": {}}, {"timestamp": 1764523732}],
    ids=str,
)
def test_a_context_of_other_types_is_refused(changes: dict[str, object]):
    message = {f"_context_{key}": value for key, value in changes.items()}

    with pytest.raises(errors.BadMessage):
        envelope.context_from_wire(message)


def test_the_token_is_not_shown():
    context = _context(_frame(_CASTS[0])["message"])

    assert "user-token-1" not in repr(context)


def test_format_without_envelope_is_read():
    body = b'{"method": "m", "args": {}, "version": "1.0"}'

    assert envelope.unpack(body, "application/json")["method"] == "m"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"{}", None),
        (b"{}", "text/plain"),
        (b"{}", "application/octet-stream"),
        (b"{", "application/json"),
        (b"\xff\xfe\xfd", "application/json"),
        (zlib.compress(b"{}"), "application/json"),
        (b"[]", "application/json"),
        (b'"text"', "application/json"),
        (b"[" * 100_000, "application/json"),
        *(
            (
                json.dumps({"oslo.version": version, "oslo.message": "{}"}).encode(),
                "application/json",
            )
            for version in ("1.0", "2.1", "3.0", "2", "two.zero", 2, None, [])
        ),
        (b'{"oslo.version": "2.0", "oslo.message": {"method": "m"}}', "application/json"),
        (b'{"oslo.version": "2.0", "oslo.message": "[]"}', "application/json"),
        (b'{"oslo.version": "2.0", "oslo.message": null}', "application/json"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_body_that_is_no_message_is_refused(body: bytes, content_type: str | None):
    with pytest.raises(errors.BadMessage):
        envelope.unpack(body, content_type)


def test_log_lines_name_the_notification_or_the_message():
    message = _frame(_CASTS[0])["message"]

    assert envelope.subject(message) == "notification adf741bb-2d1d-4f51-819f-a4ba98eafd20"
    assert envelope.subject({"_unique_id": "abc", "args": []}) == "message abc"
