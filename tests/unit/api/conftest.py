"""The whole application on SQLite, the simulated cloud and an in-memory broker."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import Any

import pytest
import webob
from oslo_config import cfg

from masakari_ng.cmd import compose
from masakari_ng.db.session import Database
from masakari_ng.demo.cloud import SimulatedCloud


class Client:
    """Asks the application in this process.

    Falcon's own client holds answers to rules that upstream's 204 does not keep.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        version: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> webob.Response:
        """One request; `body` is sent as JSON, bytes as they are."""
        request = webob.Request.blank(path, method=method, headers=headers or {})
        if version is not None:
            request.headers["OpenStack-API-Version"] = f"instance-ha {version}"
        if body is not None:
            request.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        return request.get_response(self._app)


@pytest.fixture
def make_client(conf: cfg.ConfigOpts, database: Database) -> Iterator[Callable[[], Client]]:
    """Builds the application with the options that the test has set."""
    with ExitStack() as apps:
        yield lambda: Client(apps.enter_context(closing(compose.build_api(conf))))


@pytest.fixture
def client(make_client: Callable[[], Client], cloud: SimulatedCloud) -> Client:
    """The application beside a cloud with the compute services compute-1 and compute-2."""
    cloud.reset({"services": [{"host": "compute-1"}, {"host": "compute-2"}]})
    return make_client()


@pytest.fixture
def segment(client: Client) -> str:
    """Uuid of a segment."""
    body = {"segment": {"name": "rack-1", "recovery_method": "auto", "service_type": "COMPUTE"}}
    return str(client("POST", "/v1/segments", body).json["segment"]["uuid"])


@pytest.fixture
def host(client: Client, segment: str) -> str:
    """Uuid of the host compute-1."""
    body = {"host": {"name": "compute-1", "type": "COMPUTE", "control_attributes": "SSH"}}
    return str(client("POST", f"/v1/segments/{segment}/hosts", body).json["host"]["uuid"])


@pytest.fixture
def report() -> dict[str, Any]:
    """The body of a report that compute-1 has failed."""
    return {
        "notification": {
            "type": "COMPUTE_HOST",
            "hostname": "compute-1",
            "generated_time": "2026-03-01T10:00:00.25",
            "payload": {"event": "STOPPED", "host_status": "NORMAL", "cluster_status": "OFFLINE"},
        }
    }
