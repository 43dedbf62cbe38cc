"""The only place of what request bodies look like. Spec: rest-api §10 to §13.

One error is reported, the first that a walk through the schema meets: the order of the keys in the
schemas is the order of the checks.
"""

import re
import unicodedata
import uuid
from collections.abc import Mapping
from datetime import UTC
from typing import Any

import iso8601
from jsonschema import Draft4Validator, FormatChecker
from jsonschema.exceptions import ValidationError

from masakari_ng import errors
from masakari_ng.api.microversion import Version
from masakari_ng.domain import NotificationType, RecoveryMethod

Versions = Mapping[Version, Draft4Validator]
"""The schemas of one body by the first microversion that knows them."""

_Schema = dict[str, Any]

_PLANE_END = 0xFFFF
"""Upstream knows no character from here on."""

_TEXT_BYTES = 65_535
"""What the database's columns for text hold."""

_NAME_REFUSED = (
    "An invalid 'name' value was provided. The name must be: printable characters. Can not start or"
    " end with whitespace."
)


def validate(validator: Draft4Validator, document: object) -> None:
    """Hold `document` against a schema.

    Raises:
        ValidationError: it does not match; the text names the first error.
        MalformedRequest: it is nested so deeply that it cannot be shown.
    """
    try:
        error = next(validator.iter_errors(document), None)
        message = _message(error) if error else None
    except RecursionError as failure:
        raise errors.MalformedRequest("Malformed request body") from failure
    if message is not None:
        raise errors.ValidationError(message)


def _message(error: ValidationError) -> str:
    reason = error.message
    if error.validator == "format" and error.validator_value == "name":
        return _NAME_REFUSED
    if error.validator == "format" and error.validator_value == "text":
        fits = _fits(str(error.instance))
        fault = f"does not match {_text_pattern()!r}" if fits else "is too long"
        reason = f"{error.instance!r} {fault}"
    if not error.path:
        return reason
    return f"Invalid input for field/attribute {error.path[-1]}. Value: {error.instance}. {reason}"


def _printable(character: str) -> bool:
    category = unicodedata.category(character)
    if ord(character) >= _PLANE_END or category[0] == "C":
        return False
    return category[0] != "Z" or category == "Zs"


def _text_pattern() -> str:
    """The pattern that upstream shows; it depends on the Unicode tables of the interpreter."""
    runs: list[list[str]] = []
    for code in range(_PLANE_END):
        character = chr(code)
        if character != "\n" and not _printable(character):
            continue
        if runs and ord(runs[-1][-1]) == code - 1:
            runs[-1][1:] = [character]
        else:
            runs.append([character])
    return f"^[{''.join('-'.join(map(_escaped, run)) for run in runs)}]*$"


def _escaped(character: str) -> str:
    return character if character == "\n" else re.escape(character)


def _is_name(value: object) -> bool:
    if not isinstance(value, str) or not value:
        return True
    ends = {unicodedata.category(value[0]), unicodedata.category(value[-1])}
    return "Zs" not in ends and all(map(_printable, value))


def _is_text(value: object) -> bool:
    if not isinstance(value, str):
        return True
    return _fits(value) and all(map(_printable, value.replace("\n", "")))


def _fits(text: str) -> bool:
    return len(text.encode(errors="surrogatepass")) <= _TEXT_BYTES


def _is_time(value: object) -> bool:
    # UTC, since an offset can take a time beyond the years 1 to 9999.
    return not isinstance(value, str) or bool(iso8601.parse_date(value).astimezone(UTC))


def _is_uuid(value: object) -> bool:
    return not isinstance(value, str) or bool(uuid.UUID(value))


def _formats() -> FormatChecker:
    checker = FormatChecker()
    checker.checks("name")(_is_name)
    checker.checks("text")(_is_text)
    checker.checks("date-time", (iso8601.ParseError, OverflowError))(_is_time)
    checker.checks("uuid", ValueError)(_is_uuid)
    return checker


def _validator(schema: _Schema) -> Draft4Validator:
    return Draft4Validator(schema, format_checker=_formats())


def _object(properties: _Schema, **checks: object) -> _Schema:
    """An object of these properties only; `checks` come after them, in their order."""
    return {"type": "object", "properties": properties, **checks, "additionalProperties": False}


def _enveloped(key: str, inner: _Schema) -> Draft4Validator:
    return _validator(_object({key: inner}, required=[key]))


def _create(key: str, properties: _Schema, required: list[str]) -> Draft4Validator:
    # Here other properties are complained of before missing ones.
    return _enveloped(key, _object(properties, additionalProperties=False, required=required))


def _update(key: str, properties: _Schema) -> Draft4Validator:
    wanted = [{"required": [name]} for name in properties]
    return _enveloped(key, _object(properties, additionalProperties=False, anyOf=wanted))


_SHORT: _Schema = {"type": "string", "minLength": 1, "maxLength": 255}
_NAME: _Schema = {**_SHORT, "format": "name"}
_TEXT: _Schema = {"type": ["string", "null"], "format": "text"}
_TYPE: _Schema = {"type": ["string", "null"], "maxLength": 255, "pattern": "^[a-zA-Z0-9]*$"}
_YES = [True, "True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes"]
_NO = [False, "False", "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no"]
_BOOLEAN: _Schema = {"type": ["boolean", "string"], "enum": _YES + _NO}
_HOSTNAME: _Schema = {**_SHORT, "pattern": "^[a-zA-Z0-9-._]*$"}

_SEGMENT_1_0: _Schema = {
    "name": _NAME,
    "description": _TEXT,
    "recovery_method": {"type": "string", "enum": [str(method) for method in RecoveryMethod]},
    "service_type": _NAME,
}
_SEGMENT_1_2: _Schema = {**_SEGMENT_1_0, "enabled": _BOOLEAN}
_SEGMENT_REQUIRED = ["name", "recovery_method", "service_type"]

_HOST: _Schema = {
    "name": _NAME,
    "type": _TYPE,
    "control_attributes": _TEXT,
    "reserved": _BOOLEAN,
    "on_maintenance": _BOOLEAN,
}

SEGMENT_CREATE: Versions = {
    (1, 0): _create("segment", _SEGMENT_1_0, _SEGMENT_REQUIRED),
    (1, 2): _create("segment", _SEGMENT_1_2, _SEGMENT_REQUIRED),
}
SEGMENT_UPDATE: Versions = {
    (1, 0): _update("segment", _SEGMENT_1_0),
    (1, 2): _update("segment", _SEGMENT_1_2),
}
HOST_CREATE: Versions = {
    (1, 0): _create("host", _HOST, ["name", "type", "control_attributes"]),
}
HOST_UPDATE: Versions = {(1, 0): _update("host", _HOST)}

_ANY_PAYLOAD: _Schema = {
    "type": "object",
    "patternProperties": {"^[a-zA-Z0-9-_:. ]{1,255}$": {"type": "string", "maxLength": 255}},
    "additionalProperties": False,
}
_NOTIFICATION: _Schema = {
    "type": {"type": "string", "enum": tuple(str(kind) for kind in NotificationType)},
    "hostname": _HOSTNAME,
    "generated_time": {"type": "string", "format": "date-time"},
    "payload": _ANY_PAYLOAD,
}

NOTIFICATION_CREATE: Versions = {
    (1, 0): _enveloped("notification", _object(_NOTIFICATION, required=list(_NOTIFICATION)))
}


def _one_of(*values: str) -> _Schema:
    return {"enum": values, "type": "string"}


_HOST_FAILURE: _Schema = {
    "host_status": _one_of("NORMAL", "UNKNOWN"),
    "cluster_status": _one_of("ONLINE", "OFFLINE"),
    "event": _one_of("STARTED", "STOPPED"),
}
_PROCESS_FAILURE: _Schema = {
    "process_name": {"type": "string", "minLength": 1, "maxLength": 4096},
    "event": _one_of("STARTED", "STOPPED"),
}
_INSTANCE_FAILURE: _Schema = {
    "instance_uuid": {"type": "string", "format": "uuid"},
    "vir_domain_event": _SHORT,
    "event": _SHORT,
}

PAYLOADS: Mapping[str, Draft4Validator] = {
    NotificationType.COMPUTE_HOST: _validator(_object(_HOST_FAILURE, required=["event"])),
    NotificationType.PROCESS: _validator(
        _object(_PROCESS_FAILURE, required=list(_PROCESS_FAILURE))
    ),
    NotificationType.VM: _validator(_object(_INSTANCE_FAILURE, required=list(_INSTANCE_FAILURE))),
}
"""What the payload of a notification looks like, by its type; checked after the policy."""
