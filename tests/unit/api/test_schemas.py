"""Protects what bodies may hold and which of several errors is named, where no recording does."""

from typing import Any

import pytest

from masakari_ng import errors
from masakari_ng.api import schemas

SEGMENT = {"name": "n", "recovery_method": "auto", "service_type": "s"}
HOST = {"name": "n", "type": "t", "control_attributes": "c"}
NOTIFICATION = {
    "type": "VM",
    "hostname": "h",
    "generated_time": "2026-03-01T10:00:00",
    "payload": {},
}

SEGMENT_CREATE = schemas.SEGMENT_CREATE[1, 2]
HOST_CREATE = schemas.HOST_CREATE[1, 0]
NOTIFICATION_CREATE = schemas.NOTIFICATION_CREATE[1, 0]


def refusal(validator: Any, document: object) -> str:
    with pytest.raises(errors.ValidationError) as raised:
        schemas.validate(validator, document)
    return str(raised.value)


@pytest.mark.parametrize(
    ("validator", "document", "message"),
    [
        (SEGMENT_CREATE, {"x": 1}, "'segment' is a required property"),
        (
            SEGMENT_CREATE,
            {"segment": {**SEGMENT, "name": "", "recovery_method": "x", "zz": 1}},
            "Invalid input for field/attribute name. Value: . '' should be non-empty",
        ),
        (
            SEGMENT_CREATE,
            {"segment": {"name": "n", "zz": 1, "aa": 2}},
            "Invalid input for field/attribute segment. Value: {'name': 'n', 'zz': 1, 'aa': 2}."
            " Additional properties are not allowed ('aa', 'zz' were unexpected)",
        ),
        (
            NOTIFICATION_CREATE,
            {"notification": {"zz": 1}},
            "Invalid input for field/attribute notification. Value: {'zz': 1}. 'type' is a required"
            " property",
        ),
        (schemas.PAYLOADS["PROCESS"], {"zz": "1"}, "'process_name' is a required property"),
        (
            schemas.PAYLOADS["COMPUTE_HOST"],
            {"event": 1},
            "Invalid input for field/attribute event. Value: 1. 1 is not one of ('STARTED',"
            " 'STOPPED')",
        ),
    ],
    ids=["envelope", "first-property", "unknown-sorted", "required-first", "payload", "enum-first"],
)
def test_the_first_error_is_named(validator: Any, document: object, message: str):
    assert refusal(validator, document) == message


@pytest.mark.parametrize("name", ["\u00e9 /?#", "\u65e5\u672c", "a\u00a0b", "a b"])
def test_names_may_have_any_printable_character(name: str):
    schemas.validate(SEGMENT_CREATE, {"segment": {**SEGMENT, "name": name}})


@pytest.mark.parametrize(
    "name", [" a", "a\u3000", "a\tb", "a\u2028b", "\ud800", "\U0001f600", "\x00"]
)
def test_other_names_are_refused(name: str):
    message = refusal(SEGMENT_CREATE, {"segment": {**SEGMENT, "name": name}})

    assert message.startswith("An invalid 'name' value was provided. The name must be: printable")


def test_text_may_have_lines_and_no_tabs():
    schemas.validate(HOST_CREATE, {"host": {**HOST, "control_attributes": "a\n b "}})

    message = refusal(HOST_CREATE, {"host": {**HOST, "control_attributes": "a\tb"}})

    assert "'a\\tb' does not match '^[\\n\\\\ -\\\\~\\xa0-\u00ac" in message
    assert message.endswith("]*$'")


@pytest.mark.parametrize("unit", ["a", "\u00e9", "\u65e5"])
def test_text_may_be_as_long_as_the_database_can_hold(unit: str):
    fitting = unit * (65535 // len(unit.encode()))
    schemas.validate(HOST_CREATE, {"host": {**HOST, "control_attributes": fitting}})

    longer = {"host": {**HOST, "control_attributes": fitting + unit}}
    assert refusal(HOST_CREATE, longer).endswith(f"{unit}' is too long")


@pytest.mark.parametrize(
    "time", ["2026", "2026-03", "2026-03-01T10", "20260301 1000", "2026-03-01T10:00:00,5+02"]
)
def test_times_are_read_as_iso_8601(time: str):
    schemas.validate(
        NOTIFICATION_CREATE, {"notification": {**NOTIFICATION, "generated_time": time}}
    )


@pytest.mark.parametrize(
    "time",
    [
        "2026-03-01t10:00",
        "2026-W01",
        "2026-060",
        "2026-03-01T24:00",
        "0000-01-01",
        " 2026",
        "0001-01-01T00:00+01:00",
        "9999-12-31T23:59-01:00",
    ],
)
def test_other_times_are_refused(time: str):
    document = {"notification": {**NOTIFICATION, "generated_time": time}}

    assert refusal(NOTIFICATION_CREATE, document).endswith(f"{time!r} is not a 'date-time'")


@pytest.mark.parametrize("form", ["{%s}", "urn:uuid:%s", "%s"])
def test_instances_are_named_by_any_form_of_uuid(form: str):
    uuid = form % "B16D3F2A-6F0C-4C3B-9F27-0C1DE9A4B7F3"
    payload = {"instance_uuid": uuid, "vir_domain_event": "E", "event": "E"}

    schemas.validate(schemas.PAYLOADS["VM"], payload)
