"""Protects how a microversion is chosen from the header."""

import pytest

from masakari_ng import errors
from masakari_ng.api import microversion


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("instance-ha 1.2", (1, 2)),
        ("  Instance-HA   1.2  ", (1, 2)),
        ("compute 2.53, instance-ha 1.1, instance-ha 1.2", (1, 2)),
        ("instance-ha 1.2, instance-ha", (1, 2)),
        ("instance-ha latest", (1, 3)),
        ("instance-ha 1.10", (1, 10)),
        ("1.2", (1, 0)),
        ("latest", (1, 0)),
        ("masakari 1.2", (1, 0)),
        ("", (1, 0)),
    ],
)
def test_version_of_a_header(value: str, expected: tuple[int, int]):
    assert microversion.requested({"openstack-api-VERSION": value}) == expected


@pytest.mark.parametrize(
    "asked", ["1", "0.9", "1.01", "01.1", "-1.0", "LATEST", "1.2 x", f"1.{'1' * 5000}"]
)
def test_malformed_versions_are_refused(asked: str):
    with pytest.raises(errors.InvalidMicroversion, match="is of invalid format"):
        microversion.requested({"OpenStack-API-Version": f"instance-ha {asked}"})


@pytest.mark.parametrize("version", [(1, 4), (2, 0), (1, 10)])
def test_versions_out_of_range_are_refused(version: tuple[int, int]):
    with pytest.raises(errors.UnsupportedMicroversion, match="is not supported by the API"):
        microversion.check(version)
