"""Protects that the service answers as its published description says, to right and wrong requests.

The same 400 requests in each run.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi import checks

from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Api, Daemons

_DESCRIPTION = Path(__file__).resolve().parents[3] / "docs" / "openapi.json"
_HELD = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
_RECORDED = (
    "NotificationOfVMoveNotFound",  # a move of an unknown notification
    "ValueError",  # a host whose type or control attributes are null
)
"""What upstream answers 500 to, too."""

_REPORT = {
    "type": "COMPUTE_HOST",
    "hostname": "compute-1",
    "generated_time": "2026-03-01T10:00:00",
    "payload": {"event": "STOPPED"},
}


class Target:
    """The service and the ids of what it has."""

    def __init__(self, api: Api) -> None:
        self.url = api.url
        self.session = requests.Session()
        self.session.trust_env = False
        self._api = api
        fields = {"name": "rack", "recovery_method": "auto", "service_type": "s"}
        segment = self._create("/v1/segments", "segment", fields)["uuid"]
        host = {"name": "compute-1", "type": "T", "control_attributes": "c"}
        self.ids = {
            "segment_id": segment,
            "host_id": self._create(f"/v1/segments/{segment}/hosts", "host", host)["uuid"],
            "notification_id": self._create("/v1/notifications", "notification", _REPORT)[
                "notification_uuid"
            ],
            "version_id": "v1.0",
            "alias": "segments",
        }

    def _create(self, path: str, key: str, fields: object) -> dict[str, Any]:
        created: dict[str, Any] = self._api.call("POST", path, {key: fields}).json()[key]
        return created


@pytest.fixture
def target(daemons: Daemons, cloud: SimulatedCloud) -> Target:
    cloud.reset({"services": [{"host": "compute-1"}]})
    return Target(daemons.api())


@pytest.fixture(scope="module")
def operations() -> dict[str, Any]:
    """By method and path."""
    schema = schemathesis.openapi.from_dict(json.loads(_DESCRIPTION.read_text()))
    found = [result.ok() for result in schema.get_all_operations()]
    return {operation.label: operation for operation in found}


@settings(
    max_examples=400,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_answers_are_as_described(target: Target, operations: dict[str, Any], data: Any):
    operation = operations[data.draw(st.sampled_from(sorted(operations)))]
    mode = data.draw(st.sampled_from(list(schemathesis.GenerationMode)))
    case = data.draw(operation.as_strategy(generation_mode=mode))
    if data.draw(st.integers(0, 3)) and operation.method != "delete":
        known = {name: target.ids[name] for name in case.path_parameters if name in target.ids}
        case.path_parameters.update(known)

    answer = case.call(base_url=target.url, session=target.session)

    assert answer.status_code < 500 or any(name in answer.text for name in _RECORDED), answer.text
    case.validate_response(answer, checks=_HELD)
