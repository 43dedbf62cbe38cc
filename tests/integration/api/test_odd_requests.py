"""Protects that no request, however odd, is answered with an error of the service or half done.

300 requests by default; `./run test odd`, which sets `ODD_REQUESTS=20000`, sends more, and others
each time.
"""

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from sqlalchemy import Connection, create_engine

from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Api, Daemons
from tests.integration.api.odd_requests import Odd, ask, odd_requests

_COUNT = int(os.environ.get("ODD_REQUESTS", "300"))
_SHORT = "ODD_REQUESTS" not in os.environ
_TABLES = "failover_segments, hosts, notifications, vmoves, masakari_ng_intake"
_WRITING = {"POST", "PUT", "DELETE"}
_VMOVE = """
INSERT INTO vmoves (created_at, deleted, uuid, notification_uuid, instance_uuid, instance_name)
VALUES (now(), 0, 'b5b4d2e0-0000-4000-8000-000000000001', '{}', uuid(), 'vm')
"""


class Target:
    """The service with something behind each route: ids by the names that requests use."""

    def __init__(self, api: Api, database: Connection) -> None:
        parts = urlsplit(api.url)
        self._address = ("127.0.0.1", parts.port or 0)
        self._api = api
        self._database = database
        self._made = 0
        self._ids: dict[str, str] = {}
        self._report()
        self.renew()

    def renew(self) -> None:
        """Another segment and host, which may be deleted."""
        self._made += 1
        self._ids |= self._host(f"compute-{self._made}")
        self.rows = self.checksums()

    def send(self, odd: Odd) -> tuple[int, bytes]:
        return self.send_bytes(odd.wire(self._ids))

    def send_bytes(self, request: bytes) -> tuple[int, bytes]:
        return ask(self._address, request)

    def checksums(self) -> list[object]:
        """One for each table; a change of any row changes it."""
        return [*self._database.exec_driver_sql(f"CHECKSUM TABLE {_TABLES}")]

    def _report(self) -> None:
        self._host("compute-0")
        report = {
            "type": "COMPUTE_HOST",
            "hostname": "compute-0",
            "generated_time": "2026-03-01T10:00:00",
            "payload": {"event": "STOPPED"},
        }
        created = self._api.call("POST", "/v1/notifications", {"notification": report}).json()
        uuid = created["notification"]["notification_uuid"]
        self._database.exec_driver_sql(_VMOVE.format(uuid))
        self._ids = {"notification": uuid, "vmove": "b5b4d2e0-0000-4000-8000-000000000001"}

    def _host(self, name: str) -> dict[str, str]:
        fields = {"name": f"of {name}", "recovery_method": "auto", "service_type": "s"}
        created = self._api.call("POST", "/v1/segments", {"segment": fields}).json()
        segment = created["segment"]["uuid"]
        host = {"name": name, "type": "T", "control_attributes": "c"}
        created = self._api.call("POST", f"/v1/segments/{segment}/hosts", {"host": host}).json()
        return {"segment": segment, "host": created["host"]["uuid"]}


@pytest.fixture
def target(daemons: Daemons, cloud: SimulatedCloud, synced_url: str) -> Iterator[Target]:
    cloud.reset({"services": [{"host": f"compute-{number}"} for number in range(2000)]})
    engine = create_engine(synced_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as database:
        yield Target(daemons.api(), database)
    engine.dispose()


@settings(
    max_examples=_COUNT,
    derandomize=_SHORT,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(odd=odd_requests())
def test_odd_requests_are_refused_and_leave_nothing(target: Target, odd: Odd):
    status, body = target.send(odd)

    assert status < 500 or _recorded(odd, body)
    if odd.method not in _WRITING or status >= 400:
        assert target.checksums() == target.rows
    elif status == 204:
        target.renew()
    else:
        target.rows = target.checksums()


def _recorded(odd: Odd, body: bytes) -> bool:
    """Whether upstream answers 500, too."""
    if b"Invalid service catalog json." in body or odd.method == "HEAD":
        return any(name == "X-Service-Catalog" for name, _ in odd.headers)
    if b"NotificationOfVMoveNotFound" in body:
        return "/vmoves/" in odd.target
    document = odd.document()
    host = document.get("host") if isinstance(document, dict) else None
    return isinstance(host, dict) and None in (
        host.get("type", ""),
        host.get("control_attributes", ""),
    )
