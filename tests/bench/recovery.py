"""Measures how fast a failed host is emptied, and what that costs the engine. Asserts no time.

A report goes through the real API and engine, with a private MariaDB and RabbitMQ. The simulated
cloud, whose instances are elsewhere 10 seconds after the request, runs in a process of its own.

    python -m tests.bench recovery [--threads] [INSTANCES | HOSTSxINSTANCES]...
"""

import argparse
import contextlib
import math
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

from masakari_ng.db import migrate
from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Api, Daemons
from tests.servers import MariaDB, RabbitMQ

_CASES = ["1", "10", "100", "1000", "10x100"]
_THREADS = 50
_MOVE = 10
_SERVICE_UPDATE = 1
_VERIFY_INTERVAL = 1
_TITLES = (
    "hosts x VMs",
    "finished",
    "wall s",
    "floor s",
    "ratio",
    "Nova",
    "tokens",
    "CPU s",
    "peak MiB",
)
_HOST_DOWN = {"event": "STOPPED", "host_status": "NORMAL", "cluster_status": "OFFLINE"}


class CountingCloud(SimulatedCloud):
    """What can be asked from another process: only methods."""

    def open(self) -> str:
        """Begin to serve; gives the URL."""
        return self.start().url

    def add_servers(self, host: str, count: int) -> None:
        for number in range(count):
            self.add_server(f"{host}-vm-{number}", host, evacuate={"seconds": _MOVE})

    def counts(self) -> tuple[int, int]:
        """Requests to Nova and for tokens since `arm_faults`."""
        with self.lock:
            nova = sum(frame["path"].startswith("/compute") for frame in self.frames)
            tokens = sum(frame["path"].endswith("/auth/tokens") for frame in self.frames)
        return nova, tokens


class _CloudManager(BaseManager):
    pass


_CloudManager.register("Cloud", CountingCloud)


@dataclass(frozen=True, slots=True)
class Case:
    """So many hosts that fail at once, each with so many instances."""

    hosts: int
    instances: int

    @classmethod
    def parse(cls, text: str) -> "Case":
        *hosts, instances = map(int, text.split("x"))
        return cls(hosts[0] if hosts else 1, instances)

    @property
    def floor(self) -> float:
        """Seconds that no engine can fall below.

        The fixed wait for Nova, then one batch of `host_failure_recovery_threads` instances after
        the other. An instance is looked at when it has been asked to move and every
        `verify_interval` seconds from then on, so the first look that finds it elsewhere is at a
        multiple of that. Hosts do not wait for each other. Requests and the database take no time.
        """
        move = math.ceil(_MOVE / _VERIFY_INTERVAL) * _VERIFY_INTERVAL
        return _SERVICE_UPDATE + math.ceil(self.instances / _THREADS) * move


class Site:
    """Services on servers of their own; each case gets a fresh engine."""

    def __init__(self, cloud: Any, mariadb: MariaDB, daemons: Daemons) -> None:
        self._cloud = cloud
        self._mariadb = mariadb
        self._schema = mariadb.schema_of(str(daemons.settings["database"]["connection"]))
        self._daemons = daemons
        self._api: Api = daemons.api()

    def measure(self, case: Case, arguments: list[str]) -> list[str]:
        """Let the hosts of a case fail; gives a row of the table."""
        names = self._build(case)
        engine = self._daemons.engine(arguments=arguments)
        pid = engine.process.pid
        self._cloud.arm_faults()
        before, begin = _cpu(pid), time.monotonic()
        for name in names:
            self._report(name)
        while self._count("status IN ('new', 'running')"):
            time.sleep(0.2)
        wall = time.monotonic() - begin
        cpu, peak = _cpu(pid) - before, _peak(pid)
        nova, tokens = self._cloud.counts()
        finished = self._count("status = 'finished'")
        engine.terminate()
        return [
            f"{case.hosts} x {case.instances}",
            f"{finished}/{case.hosts}",
            f"{wall:.1f}",
            f"{case.floor:.0f}",
            f"{wall / case.floor:.2f}",
            str(nova),
            str(tokens),
            f"{cpu:.1f}",
            f"{peak:.0f}",
        ]

    def _build(self, case: Case) -> list[str]:
        """New hosts that are down, and nothing else."""
        for table in ("vmoves", "notifications"):
            self._mariadb.sql(self._schema, f"DELETE FROM {table}")
        name = f"rack-{time.monotonic_ns()}"
        segment = {"name": name, "recovery_method": "auto", "service_type": "COMPUTE"}
        uuid = self._post("/v1/segments", "segment", segment)["uuid"]
        names = [f"{name}-host-{number}" for number in range(case.hosts)]
        self._cloud.reset({"services": [{"host": host} for host in names]})
        for host in names:
            self._cloud.add_servers(host, case.instances)
            known = {"name": host, "type": "COMPUTE", "control_attributes": "SSH"}
            self._post(f"/v1/segments/{uuid}/hosts", "host", known)
        return names

    def _report(self, host: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")
        report = {"type": "COMPUTE_HOST", "hostname": host, "generated_time": now}
        self._post("/v1/notifications", "notification", report | {"payload": _HOST_DOWN})

    def _post(self, path: str, noun: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._api.call("POST", path, {noun: body})
        answer.raise_for_status()
        made: dict[str, Any] = answer.json()[noun]
        return made

    def _count(self, condition: str) -> int:
        query = f"SELECT COUNT(*) AS found FROM notifications WHERE {condition}"
        return int(self._mariadb.sql(self._schema, query)[0]["found"])


def _cpu(pid: int) -> float:
    """Seconds of the process so far, of user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak(pid: int) -> float:
    """Greatest memory so far in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


@contextlib.contextmanager
def _site(folder: Path) -> Iterator[Site]:
    with contextlib.ExitStack() as opened:
        context = multiprocessing.get_context("spawn")
        manager = opened.enter_context(_CloudManager(ctx=context))
        cloud = manager.Cloud()  # type: ignore[attr-defined]
        url = cloud.open()
        mariadb = MariaDB(folder)
        opened.callback(mariadb.kill)
        mariadb.start()
        rabbitmq = RabbitMQ(folder)
        opened.callback(rabbitmq.close)
        rabbitmq.start()
        database = mariadb.create_schema()
        migrate.upgrade(database)
        broker = rabbitmq.url(rabbitmq.new_vhost())
        daemons = Daemons(folder, database=database, broker=broker, cloud=url)
        opened.callback(daemons.close)
        daemons.settings["DEFAULT"] |= {
            "host_failure_recovery_threads": _THREADS,
            "wait_period_after_service_update": _SERVICE_UPDATE,
            "wait_period_after_evacuation": 90,
            "verify_interval": _VERIFY_INTERVAL,
        }
        yield Site(cloud, mariadb, daemons)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of host recoveries, beside the least time.")
    parser.add_argument("--threads", action="store_true", help="engine on native threads")
    parser.add_argument("cases", nargs="*", metavar="[HOSTSx]INSTANCES", default=_CASES)
    chosen = parser.parse_args()
    arguments = ["--threads"] if chosen.threads else []
    print("native threads" if chosen.threads else "eventlet", f"{os.cpu_count()} CPUs", sep=", ")
    with tempfile.TemporaryDirectory() as folder, _site(Path(folder)) as site:
        print(*(f"{title:>11}" for title in _TITLES))
        for case in map(Case.parse, chosen.cases):
            row = site.measure(case, arguments)
            print(*(f"{cell:>11}" for cell in row), flush=True)
