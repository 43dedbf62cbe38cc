"""Protects that of many equal reports at once one is accepted, and of different ones each."""

import itertools
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Api, Daemons
from tests.servers import MariaDB

_ROUNDS = 20
_AT_ONCE = 50


@pytest.fixture
def apis(daemons: Daemons, cloud: SimulatedCloud) -> list[Api]:
    """Two API services on one database, which knows the host compute-1."""
    cloud.reset({"services": [{"host": "compute-1"}]})
    apis = [daemons.api(), daemons.api()]
    segment = {"name": "rack", "recovery_method": "auto", "service_type": "COMPUTE"}
    created = apis[0].call("POST", "/v1/segments", {"segment": segment}).json()["segment"]
    host = {"name": "compute-1", "type": "COMPUTE", "control_attributes": "SSH"}
    apis[0].call("POST", f"/v1/segments/{created['uuid']}/hosts", {"host": host})
    return apis


def post(apis: Sequence[Api], reports: Sequence[dict[str, Any]]) -> Counter[int]:
    """Post reports at the same moment, in turn to each service; counts the statuses."""
    start = threading.Barrier(len(reports))
    with ThreadPoolExecutor(len(reports)) as pool:
        return Counter(pool.map(_post, itertools.cycle(apis), reports, itertools.repeat(start)))


def _post(api: Api, report: dict[str, Any], start: threading.Barrier) -> int:
    start.wait()
    return api.call("POST", "/v1/notifications", {"notification": report}).status_code


def report(minute: int, kind: str, **payload: str) -> dict[str, Any]:
    return {
        "type": kind,
        "hostname": "compute-1",
        "generated_time": f"2026-03-01T{minute // 60:02}:{minute % 60:02}:00",
        "payload": payload,
    }


def test_one_of_many_equal_reports_is_accepted(apis, mariadb: MariaDB, synced_url: str):
    down = {"event": "STOPPED", "host_status": "NORMAL", "cluster_status": "OFFLINE"}

    answers = [
        post(apis, [report(10 * number, "COMPUTE_HOST", **down)] * _AT_ONCE)
        for number in range(_ROUNDS)
    ]

    assert answers == [Counter({202: 1, 409: _AT_ONCE - 1})] * _ROUNDS
    stored = mariadb.sql(mariadb.schema_of(synced_url), "SELECT uuid() FROM notifications")
    assert len(stored) == _ROUNDS


def test_each_of_many_different_reports_is_accepted(apis):
    reports = [
        report(
            0,
            "VM",
            event="LIFECYCLE",
            vir_domain_event="STOPPED_FAILED",
            instance_uuid=f"{number:032x}",
        )
        for number in range(_AT_ONCE)
    ]

    assert post(apis, reports) == Counter({202: _AT_ONCE})
