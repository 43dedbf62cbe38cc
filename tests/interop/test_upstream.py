"""Protects that API and engine of Masakari 22.0.0 and ours work with each other, in any mixture.

`MASAKARI_UPSTREAM` names the virtual environment with Masakari (tox environment `interop`).
"""

import os
import re
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
_EXITS = re.compile(r"Notification (\S+) exits with status: finished")

pytestmark = pytest.mark.skipif(_UPSTREAM is None, reason="Masakari is not installed")

Upstream = Callable[..., Any]


@pytest.fixture
def upstream(daemons: Daemons, tmp_path: Path) -> Iterator[Upstream]:
    """Starts Masakari's `api` or `engine` beside ours, the latter without its periodic tasks."""
    started: list[Daemon] = []

    def start(part: str) -> Any:
        folder, name = Path(_UPSTREAM or ""), f"upstream-{part}"
        port = free_port()
        own = {
            "DEFAULT": {
                "host": name,
                "masakari_api_listen_port": port,
                "periodic_enable": False,
            }
        }
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


@pytest.fixture
def fail_host(cloud: SimulatedCloud) -> Callable[[Api, str], str]:
    """Lets a host of two instances fail and reports it; gives the path of the notification."""

    def fail(api: Api, host: str) -> str:
        cloud.fail_host(host)
        payload = {"event": "STOPPED", "host_status": "NORMAL", "cluster_status": "OFFLINE"}
        report = {
            "type": "COMPUTE_HOST",
            "hostname": host,
            "generated_time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
            "payload": payload,
        }
        reported = api.call("POST", "/v1/notifications", {"notification": report})
        assert reported.status_code == 202, reported.text
        return f"/v1/notifications/{reported.json()['notification']['notification_uuid']}"

    return fail


def _set_up(api: Api, cloud: SimulatedCloud, hosts: list[str]) -> None:
    """A segment of these hosts, two instances on each; they move to the host spare."""
    cloud.reset({"realistic": True, "services": [{"host": "spare"}]})
    segment = {"name": "rack", "service_type": "compute", "recovery_method": "auto"}
    created = api.call("POST", "/v1/segments", {"segment": segment})
    assert created.status_code == 201, created.text
    for host in hosts:
        cloud.add_service(host)
        for number in range(2):
            cloud.add_server(f"{host}-vm-{number}", host, evacuate={"seconds": 2})
        fields = {"name": host, "type": "COMPUTE", "control_attributes": "SSH"}
        path = f"/v1/segments/{created.json()['segment']['uuid']}/hosts"
        added = api.call("POST", path, {"host": fields})
        assert added.status_code == 201, added.text
    for host in hosts:  # or instances of one would move to another
        cloud.fail_host(host)


def _check(api: Api, path: str) -> None:
    """Wait until a notification is finished, and look at it through this API."""

    def ended() -> bool:
        shown = api.call("GET", path).json()["notification"]
        return shown["status"] not in {"new", "running"}

    eventually(ended, timeout=60)
    answer = api.call("GET", path, version="1.1")
    assert answer.status_code == 200, answer.text
    shown = answer.json()["notification"]
    assert shown["status"] == "finished"
    assert [
        (task["name"], task["state"], task["progress"])
        for task in shown["recovery_workflow_details"]
    ] == [
        ("DisableComputeServiceTask", "SUCCESS", 1.0),
        ("PrepareHAEnabledInstancesTask", "SUCCESS", 1.0),
        ("EvacuateInstancesTask", "SUCCESS", 1.0),
    ]


def _evacuated(cloud: SimulatedCloud) -> Counter[str]:
    asked = cloud.requests("evacuate", accepted=True)
    return Counter({cloud.servers[uuid].name: count for uuid, count in asked.items()})


def test_its_api_works_with_our_engine(
    daemons: Daemons, cloud: SimulatedCloud, upstream: Upstream, fail_host: Callable[..., str]
):
    daemons.engine()
    api = upstream("api")
    _set_up(api, cloud, ["compute-1"])

    _check(api, fail_host(api, "compute-1"))

    assert _evacuated(cloud) == {"compute-1-vm-0": 1, "compute-1-vm-1": 1}


def test_our_api_works_with_its_engine(
    daemons: Daemons, cloud: SimulatedCloud, upstream: Upstream, fail_host: Callable[..., str]
):
    upstream("engine")
    del daemons.settings["taskflow"]["connection"]  # so that the engine is asked for details
    api = daemons.api()
    _set_up(api, cloud, ["compute-1"])

    _check(api, fail_host(api, "compute-1"))

    assert _evacuated(cloud) == {"compute-1-vm-0": 1, "compute-1-vm-1": 1}


def test_both_recover_side_by_side_and_neither_touches_what_the_other_does(
    daemons: Daemons, cloud: SimulatedCloud, upstream: Upstream, fail_host: Callable[..., str]
):
    daemons.settings["DEFAULT"] |= {
        "wait_period_after_evacuation": 20,
        "process_unfinished_notifications_interval": 1,
        "check_expired_notifications_interval": 1,
    }
    apis = [upstream("api"), daemons.api()]
    engines = [upstream("engine"), daemons.engine()]
    hosts = [f"compute-{number}" for number in range(4)]
    _set_up(apis[0], cloud, hosts)

    paths = [fail_host(api, host) for api, host in zip([*apis, *apis], hosts, strict=True)]

    for path in paths:
        for api in apis:
            _check(api, path)
    assert _evacuated(cloud) == {f"{host}-vm-{number}": 1 for host in hosts for number in (0, 1)}
    assert not any(server.locked for server in cloud.servers.values())
    theirs, ours = (_EXITS.findall(engine.log.read_text()) for engine in engines)
    assert len(theirs) == len(ours) == len(hosts) / 2  # the broker deals out in turn
    assert {path.rpartition("/")[2] for path in paths} == {*theirs, *ours}
