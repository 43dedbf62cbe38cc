"""Which version of the API a request asks for. Spec: rest-api §3."""

import re
from collections.abc import Mapping

import microversion_parse

from masakari_ng import errors

Version = tuple[int, int]

HEADER = "OpenStack-API-Version"
SERVICE_TYPE = "instance-ha"
MINIMUM: Version = (1, 0)
MAXIMUM: Version = (1, 3)

_FORM = re.compile(r"([1-9]\d{0,999})\.([1-9]\d{0,999}|0)")


def text(version: Version) -> str:
    """`1.2`."""
    return f"{version[0]}.{version[1]}"


def requested(headers: Mapping[str, str]) -> Version:
    """The version that the headers ask for, not yet checked against the limits.

    Args:
        headers: names in any case.

    Raises:
        InvalidMicroversion: not `X.Y` and not `latest`.
    """
    asked = microversion_parse.get_version(dict(headers), SERVICE_TYPE)
    if asked is None:
        return MINIMUM
    if asked == "latest":
        return MAXIMUM
    match = _FORM.fullmatch(asked)
    if match is None:
        raise errors.InvalidMicroversion(
            f"API Version String {asked} is of invalid format. Must be of format MajorNum.MinorNum."
        )
    return int(match[1]), int(match[2])


def check(version: Version) -> None:
    """Refuse what this service does not speak.

    Raises:
        UnsupportedMicroversion: out of range.
    """
    if not MINIMUM <= version <= MAXIMUM:
        raise errors.UnsupportedMicroversion(
            f"Version {text(version)} is not supported by the API. Minimum is {text(MINIMUM)} and"
            f" maximum is {text(MAXIMUM)}."
        )
