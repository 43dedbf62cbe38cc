"""Protects that each half of Masakari 22.0.0 works with the other half of ours.

`MASAKARI_UPSTREAM` names the virtual environment with Masakari (tox environment `interop`).
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Api, Daemon, Daemons
from tests.servers import eventually, free_port

_UPSTREAM = os.environ.get("MASAKARI_UPSTREAM")

pytestmark = pytest.mark.skipif(_UPSTREAM is None, reason="Masakari is not installed")


@pytest.fixture
def upstream(daemons: Daemons, tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """Starts Masakari's `api` or `engine` beside ours."""
    started: list[Daemon] = []

    def start(part: str) -> Any:
        folder, name = Path(_UPSTREAM or ""), f"upstream-{part}"
        port = free_port()
        own = {"DEFAULT": {"host": name, "masakari_api_listen_port": port}}
        paste = {"wsgi": {"api_paste_config": folder / "etc/masakari/api-paste.ini"}}
        conf = daemons.write_conf(name, own, paste)
        command = [str(folder / f"bin/masakari-{part}"), "--config-file", str(conf)]
        log = tmp_path / f"{name}.log"
        if part == "api":
            started.append(Api(command, log, port))
        else:
            ready = lambda: bool(daemons.consumers(f"ha_engine.{name}"))  # noqa: E731
            started.append(Daemon(command, log, ready))
        started[-1].wait_ready()
        return started[-1]

    yield start
    for daemon in started:
        daemon.kill()


def _recover(api: Api, cloud: SimulatedCloud) -> dict[str, Any]:
    """Let a host with two instances fail; gives the notification at its end."""
    for host in ("compute-1", "compute-2"):
        cloud.add_service(host)
    for number in range(2):
        cloud.add_server(f"vm-{number}", "compute-1", evacuate={"seconds": 0.3})
    segment = {"name": "rack", "service_type": "compute", "recovery_method": "auto"}
    created = api.call("POST", "/v1/segments", {"segment": segment})
    assert created.status_code == 201, created.text
    uuid = created.json()["segment"]["uuid"]
    for host in ("compute-1", "compute-2"):
        fields = {"name": host, "type": "COMPUTE", "control_attributes": "SSH"}
        added = api.call("POST", f"/v1/segments/{uuid}/hosts", {"host": fields})
        assert added.status_code == 201, added.text
    cloud.fail_host("compute-1")
    payload = {"event": "STOPPED", "host_status": "NORMAL", "cluster_status": "OFFLINE"}
    report = {
        "type": "COMPUTE_HOST",
        "hostname": "compute-1",
        "generated_time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        "payload": payload,
    }
    reported = api.call("POST", "/v1/notifications", {"notification": report})
    assert reported.status_code == 202, reported.text
    path = f"/v1/notifications/{reported.json()['notification']['notification_uuid']}"
    eventually(
        lambda: api.call("GET", path).json()["notification"]["status"] not in {"new", "running"},
        timeout=60,
    )
    shown = api.call("GET", path, version="1.1")
    assert shown.status_code == 200, shown.text
    return dict(shown.json()["notification"])


def _check(notification: dict[str, Any], cloud: SimulatedCloud) -> None:
    assert notification["status"] == "finished"
    asked = cloud.requests("evacuate", accepted=True)
    assert Counter({cloud.servers[uuid].name: count for uuid, count in asked.items()}) == Counter(
        ["vm-0", "vm-1"]
    )
    details = notification["recovery_workflow_details"]
    assert [(task["name"], task["state"], task["progress"]) for task in details] == [
        ("DisableComputeServiceTask", "SUCCESS", 1.0),
        ("PrepareHAEnabledInstancesTask", "SUCCESS", 1.0),
        ("EvacuateInstancesTask", "SUCCESS", 1.0),
    ]


def test_its_api_works_with_our_engine(
    daemons: Daemons, cloud: SimulatedCloud, upstream: Callable[[str], Any]
):
    daemons.engine()

    notification = _recover(upstream("api"), cloud)

    _check(notification, cloud)


def test_our_api_works_with_its_engine(
    daemons: Daemons, cloud: SimulatedCloud, upstream: Callable[[str], Any]
):
    upstream("engine")
    del daemons.settings["taskflow"]["connection"]  # so that the engine is asked for details

    notification = _recover(daemons.api(), cloud)

    _check(notification, cloud)
