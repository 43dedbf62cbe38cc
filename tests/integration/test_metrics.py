"""Protects that what Prometheus reads from both services is what has happened."""

import contextlib
import signal
import socket
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Api, Daemons
from tests.scraped import Numbers, of, scrape
from tests.servers import eventually, free_port

WORKERS = 2
HOST = "COMPUTE_HOST"


@pytest.fixture(autouse=True)
def temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that is killed leaves its counts there."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def workers_of(api: Api) -> set[int]:
    return {child.pid for child in psutil.Process(api.process.pid).children()}


def folder_of(api: Api) -> Path:
    """Where the workers count, once one does."""
    assert api.call("GET", "/v1/segments").status_code == 200
    files = [file for pid in workers_of(api) for file in psutil.Process(pid).open_files()]
    return next(Path(file.path).parent for file in files if file.path.endswith(".lock"))


class Site:
    """Both services, measured, and one segment."""

    def __init__(self, daemons: Daemons, cloud: SimulatedCloud, *arguments: str) -> None:
        self.cloud = cloud
        self.ports = {"api": free_port(), "engine": free_port()}
        cloud.reset({"realistic": True, "services": [{"host": "spare"}]})
        self.api = daemons.api(
            {
                "DEFAULT": {"masakari_api_workers": WORKERS},
                "masakari_ng": {"metrics_port": self.ports["api"]},
            }
        )
        self.engine = daemons.engine(
            {
                "DEFAULT": {
                    "wait_period_after_service_update": 0,
                    "process_unfinished_notifications_interval": 3,
                },
                "masakari_ng": {"metrics_port": self.ports["engine"]},
            },
            arguments=arguments,
        )
        segment = {"name": "rack", "recovery_method": "auto", "service_type": "s"}
        made = self.api.call("POST", "/v1/segments", {"segment": segment})
        self.segment = made.json()["segment"]["uuid"]

    def fail(self, host: str, instances: int = 0, **script: Any) -> str:
        """A host with instances goes down, and is reported."""
        self.cloud.add_service(host)
        for number in range(instances):
            self.cloud.add_server(f"{host}-vm-{number}", host, **script)
        body = {"host": {"name": host, "type": "T", "control_attributes": "c"}}
        answer = self.api.call("POST", f"/v1/segments/{self.segment}/hosts", body)
        assert answer.status_code == 201
        self.cloud.fail_host(host)
        answer = self.report(host)
        assert answer.status_code == 202
        return answer.json()["notification"]["notification_uuid"]

    def report(self, host: str) -> Any:
        return self.api.call(
            "POST",
            "/v1/notifications",
            {
                "notification": {
                    "type": HOST,
                    "hostname": host,
                    "generated_time": datetime.now(UTC).isoformat(),
                    "payload": {"event": "STOPPED", "host_status": "NORMAL"},
                }
            },
        )

    def wait(self, uuid: str, status: str) -> None:
        path = f"/v1/notifications/{uuid}"
        eventually(
            lambda: self.api.call("GET", path).json()["notification"]["status"] == status,
            timeout=60,
        )

    def scrape(self, service: str) -> Numbers:
        return scrape(self.ports[service])

    def moves(self, uuid: str) -> list[str]:
        answer = self.api.call("GET", f"/v1/notifications/{uuid}/vmoves", version="1.3")
        return [vmove["status"] for vmove in answer.json()["vmoves"]]


@pytest.mark.parametrize("arguments", [[], ["--threads"]], ids=["green", "native"])
def test_counters_are_what_happened(daemons: Daemons, cloud: SimulatedCloud, arguments: list[str]):
    site = Site(daemons, cloud, *arguments)

    good = site.fail("compute-1", 2, evacuate={"seconds": 0.3})
    site.wait(good, "finished")
    assert site.report("compute-1").status_code == 409  # it is on maintenance
    assert site.report("nobody").status_code == 400
    cloud.arm_faults([{"match": {"action": "evacuate"}, "do": {"status": 500}}])
    bad = site.fail("compute-2", 1)
    site.wait(bad, "failed")  # after one retry

    told = site.scrape("api")
    assert of(told, "notifications_total") == {(site.segment, "new", HOST): 2}
    assert of(told, "reports_refused_total") == {
        ("maintenance", HOST): 1,
        ("unknown_host", HOST): 1,
    }
    assert of(told, "connected") == {("database",): 1, ("rpc-client",): 1}
    told = site.scrape("engine")
    assert of(told, "notifications_total") == {
        (site.segment, "finished", HOST): 1,
        (site.segment, "error", HOST): 1,
        (site.segment, "failed", HOST): 1,
    }
    assert of(told, "retries_total") == {("error", HOST): 1}
    assert of(told, "recoveries_running") == {(HOST,): 0}
    assert of(told, "vmoves_total") == Counter(
        (status,) for status in (*site.moves(good), *site.moves(bad))
    )
    assert of(told, "since_report_seconds_count")[HOST, "claimed"] == 2
    assert of(told, "since_report_seconds_count")[HOST, "recovered"] == 1
    assert of(told, "connected")[("rpc-server",)] == 1
    asked = of(told, "cloud_request_seconds_count")
    sent = cloud.requests("evacuate", accepted=True).total()
    assert {key: n for key, n in asked.items() if "evacuate" in key} == {
        ("200", "evacuate"): sent,
        ("500", "evacuate"): 2,
    }
    assert {"token", "discovery", "GET /servers/ID"} <= {operation for _, operation in asked}
    assert of(told, "segment_info") == {("rack", site.segment): 1}
    assert of(told, "claims") == {("working",): 0, ("waiting",): 0, ("left",): 0}


def test_workers_that_die_or_are_replaced_take_no_count_with_them(
    daemons: Daemons, cloud: SimulatedCloud
):
    site = Site(daemons, cloud)
    folder = folder_of(site.api)

    def refused(more: int) -> Numbers:
        assert [site.report("nobody").status_code for _ in range(more)] == [400] * more
        return of(site.scrape("api"), "reports_refused_total")

    assert refused(10) == {("unknown_host", HOST): 10}
    for _ in range(3):
        old = workers_of(site.api)
        psutil.Process(min(old)).kill()
        eventually(lambda: len(workers_of(site.api) - old) == 1)  # noqa: B023 - called at once
    assert refused(10) == {("unknown_host", HOST): 20}
    old = workers_of(site.api)
    site.api.process.signal(signal.SIGHUP)
    eventually(lambda: not workers_of(site.api) & old, timeout=40)
    assert refused(10) == {("unknown_host", HOST): 30}

    assert len(list(folder.glob("*.lock"))) <= 2 * WORKERS
    assert site.api.terminate() == 0
    assert not folder.exists()


def test_without_a_port_nothing_listens(daemons: Daemons):
    api, engine = daemons.api(), daemons.engine()

    for daemon in (api, engine):
        process = psutil.Process(daemon.process.pid)
        listening = {
            link.laddr.port
            for link in process.net_connections()
            if link.status == psutil.CONN_LISTEN
        }
        assert len(listening) == (1 if daemon is api else 0), "the port of the API itself"


def test_a_port_that_is_taken_ends_the_start(daemons: Daemons):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        engine = daemons.engine({"masakari_ng": {"metrics_port": port}}, wait=False)
        eventually(lambda: not engine.process.alive)

    assert engine.process.exit_code == 1
    assert f"Could not bind to 127.0.0.1:{port}" in engine.log.read_text()
