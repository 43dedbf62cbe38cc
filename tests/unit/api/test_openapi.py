"""Protects that the published description of the API is what this code speaks."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from masakari_ng.api import openapi
from masakari_ng.cmd import manage

# Told by oslo.log on green threads.
pytestmark = pytest.mark.filterwarnings("ignore:Eventlet support is deprecated:DeprecationWarning")

_PUBLISHED = Path(__file__).resolve().parents[3] / "docs" / "openapi.json"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi.document()


def test_the_published_description_is_up_to_date(capsys: pytest.CaptureFixture[str]):
    assert manage.main(["api-spec"]) == 0

    printed = capsys.readouterr().out
    assert printed == _PUBLISHED.read_text(), "masakari-ng-manage api-spec > docs/openapi.json"


def test_every_reference_leads_somewhere(document: dict[str, Any]):
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document)):
        found = document
        for part in reference.split("/"):
            found = found[part]


def test_what_only_some_microversions_know_says_so(document: dict[str, Any]):
    paths = document["paths"]
    bodies = paths["/v1/segments"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    shown = paths["/v1/notifications/{notification_id}"]["get"]["responses"]["200"]["content"]
    notification = shown["application/json"]["schema"]["properties"]["notification"]

    assert [
        (schema["x-openstack"], "enabled" in schema["properties"]["segment"]["properties"])
        for schema in bodies["anyOf"]
    ] == [({"min-ver": "1.0", "max-ver": "1.1"}, False), ({"min-ver": "1.2"}, True)]
    details = notification["properties"]["recovery_workflow_details"]
    assert details["x-openstack"] == {"min-ver": "1.1"}
    assert "recovery_workflow_details" not in notification["required"]


def test_types_are_those_of_the_records(document: dict[str, Any]):
    shown = document["paths"]["/v1/segments/{segment_id}/hosts"]["get"]["responses"]["200"]
    host = shown["content"]["application/json"]["schema"]["properties"]["hosts"]["items"]

    assert host["properties"]["reserved"] == {"type": "boolean"}
    assert host["properties"]["updated_at"]["type"] == ["string", "null"]
    segment = host["properties"]["failover_segment"]
    assert segment["properties"]["recovery_method"]["enum"][0] == "auto"
    assert set(segment["required"]) == set(segment["properties"])
