"""Measures what requests cost the API, and Masakari's own beside it. Asserts nothing.

CPU is that of the API's own processes; answers each second depend on what else the machine does.
"""

import argparse
import contextlib
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

import psutil

from masakari_ng.db import migrate
from masakari_ng.demo.cloud import SimulatedCloud
from tests.bench.soak import soak
from tests.daemons import Daemons, command
from tests.http_load import Connection, Outcome, load, request
from tests.servers import MariaDB, Process, RabbitMQ, free_port

_CLIENTS = (1, 8, 32)
_WARM_UP = 0.5
_SEGMENT = "b5b4d2e0-0000-4000-8000-000000000000"
_NOTIFICATION = "b5b4d2e0-0000-4000-8000-000000000001"
_HOST = "b5b4d2e0-0000-4000-8000-000000000002"
_TOKEN = {"X_Auth_Token": "admin-token"}
_ROWS = [
    "INSERT INTO failover_segments"
    " (created_at, deleted, uuid, name, service_type, enabled, recovery_method)"
    " SELECT now(), 0, IF(seq = 1, '{segment}', uuid()), concat('rack-', seq), 's', 1, 'auto'"
    " FROM seq_1_to_10",
    "INSERT INTO hosts (created_at, deleted, uuid, name, type, control_attributes,"
    " failover_segment_id, reserved, on_maintenance)"
    " SELECT now(), 0, IF(seq = 1, '{host}', uuid()), concat('compute-', seq), 'COMPUTE', 'SSH',"
    " '{segment}', 0, 0 FROM seq_1_to_200",
    "INSERT INTO notifications (created_at, deleted, notification_uuid, generated_time,"
    " source_host_uuid, type, payload, status, failover_segment_uuid) SELECT now(), 0,"
    " IF(seq = 1, '{notification}', uuid()), '2020-01-01', '{host}', 'COMPUTE_HOST', '{payload}',"
    " 'finished', '{segment}' FROM seq_1_to_1000",
]
_PAYLOAD = '{"event": "STOPPED", "cluster_status": "OFFLINE", "host_status": "NORMAL"}'
_numbers = itertools.count()


def report() -> bytes:
    """A report that is like no other, of a time like no other, so that none is a duplicate."""
    number = next(_numbers)
    begin = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_600_000_000 + 200 * number))
    payload = {"event": "L", "vir_domain_event": "S", "instance_uuid": f"{number:032x}"}
    fields = {"type": "VM", "hostname": "compute-1", "generated_time": begin, "payload": payload}
    return request("POST", "/v1/notifications", {"notification": fields}, **_TOKEN)


def get(path: str) -> Callable[[], bytes]:
    asked = request("GET", path, **_TOKEN)
    return lambda: asked


REQUESTS: dict[str, Callable[[], bytes]] = {
    "10 segments": get("/v1/segments"),
    "200 hosts": get(f"/v1/segments/{_SEGMENT}/hosts"),
    "1000 notifications": get("/v1/notifications"),
    "show": get(f"/v1/notifications/{_NOTIFICATION}"),
    "POST": report,
}


@dataclass(frozen=True)
class Cost:
    """What one cell of the table has shown; times in ms."""

    rate: float
    p50: float
    p99: float
    cpu: float
    wrong: int


class Contender:
    """One running API.

    Attributes:
        first: seconds from its start to its first answer.
    """

    def __init__(self, program: Path, conf: Path, port: int, log: Path) -> None:
        self.port = port
        begin = time.monotonic()
        self.process = Process([str(program), "--config-file", str(conf)], log=log)
        self.process.wait_ready(self._answers)
        self.first = time.monotonic() - begin

    def measure(self, make: Callable[[], bytes], clients: int, seconds: float) -> Cost:
        """Load it with so many clients for so long."""
        with load(self.port, clients, make):
            time.sleep(_WARM_UP)
        with load(self.port, clients, make) as seen:
            before, begin = self.cpu(), time.monotonic()
            counted = len(seen.seconds)
            time.sleep(seconds)
            cpu, wall = self.cpu() - before, time.monotonic() - begin
            answers = max(len(seen.seconds) - counted, 1)
        return Cost(answers / wall, *_percentiles(seen), 1000 * cpu / answers, _wrong(seen))

    def cpu(self) -> float:
        """Seconds so far of all its processes, of user and system."""
        times = [process.cpu_times() for process in self.processes()]
        return sum(each.user + each.system for each in times)

    def processes(self) -> list[psutil.Process]:
        first = psutil.Process(self.process.pid)
        return [first, *first.children(recursive=True)]

    def memory(self) -> float:
        """MiB of its largest worker."""
        return max(process.memory_info().rss for process in self.processes()[1:]) / 2**20

    def _answers(self) -> bool:
        asked = request("GET", "/v1/segments?limit=1", **_TOKEN)
        with contextlib.closing(Connection(self.port)) as connection, contextlib.suppress(OSError):
            return connection.ask(asked)[0] == 200
        return False


def _percentiles(seen: Outcome) -> tuple[float, float]:
    cuts = quantiles(seen.seconds or [0.0, 0.0], n=100)
    return 1000 * cuts[49], 1000 * cuts[98]


def _wrong(seen: Outcome) -> int:
    right = sum(count for status, count in seen.statuses.items() if status in {200, 202})
    return seen.failures.total() + seen.statuses.total() - right


class Site:
    """Servers, tables with rows, and whoever serves them."""

    def __init__(self, folder: Path, mariadb: MariaDB, daemons: Daemons) -> None:
        self.mariadb = mariadb
        self.schema = mariadb.schema_of(str(daemons.settings["database"]["connection"]))
        self._folder = folder
        self._daemons = daemons
        facts = {"segment": _SEGMENT, "host": _HOST, "notification": _NOTIFICATION}
        for statement in _ROWS:
            mariadb.sql(self.schema, statement.format(**facts, payload=_PAYLOAD))

    @contextlib.contextmanager
    def contender(self, auth: str, upstream: Path | None = None) -> Iterator[Contender]:
        """Our API, or that of a virtualenv."""
        port, name = free_port(), f"{auth}-{'upstream' if upstream else 'ng'}"
        own = {"masakari_api_listen_port": port, "auth_strategy": auth, "masakari_api_workers": 2}
        paste = {"api_paste_config": f"{upstream}/etc/masakari/api-paste.ini"} if upstream else {}
        conf = self._daemons.write_conf(name, {"DEFAULT": own, "wsgi": paste})
        program = Path(command("masakari-ng-api", conf)[0])
        if upstream:
            program = upstream / "bin" / "masakari-api"
        running = Contender(program, conf, port, self._folder / f"{name}.log")
        try:
            yield running
        finally:
            running.process.terminate(grace=30)

    def forget_reports(self) -> None:
        self.mariadb.sql(self.schema, "DELETE FROM notifications WHERE id > 1000")


@contextlib.contextmanager
def _site(folder: Path) -> Iterator[Site]:
    with contextlib.ExitStack() as opened:
        cloud = SimulatedCloud()
        opened.callback(cloud.stop)
        cloud.start().reset({"services": [], "tokens": {"admin-token": "admin"}})
        mariadb = MariaDB(folder)
        opened.callback(mariadb.kill)
        mariadb.start()
        rabbitmq = RabbitMQ(folder)
        opened.callback(rabbitmq.close)
        rabbitmq.start()
        database = mariadb.create_schema()
        migrate.upgrade(database)
        broker = rabbitmq.url(rabbitmq.new_vhost())
        daemons = Daemons(folder, database=database, broker=broker, cloud=cloud.url)
        daemons.settings["DEFAULT"]["notification_delay_max"] = 0
        yield Site(folder, mariadb, daemons)


def _compare(site: Site, chosen: argparse.Namespace) -> None:
    upstream = Path(os.environ["MASAKARI_UPSTREAM"]) if chosen.upstream else None
    columns = ["auth", "request", "clients", "req/s", "p50", "p99", "CPU", "wrong"]
    print(*_row(columns + (["CPU(up)", "ratio"] if upstream else [])))
    for auth in chosen.auth:
        with contextlib.ExitStack() as opened:
            ours = opened.enter_context(site.contender(auth))
            theirs = opened.enter_context(site.contender(auth, upstream)) if upstream else None
            for name, clients in itertools.product(REQUESTS, _CLIENTS):
                cost = ours.measure(REQUESTS[name], clients, chosen.seconds)
                cells = [f"{cost.rate:.0f}", f"{cost.p50:.1f}", f"{cost.p99:.1f}"]
                cells += [f"{cost.cpu:.2f}", str(cost.wrong)]
                if theirs:
                    other = theirs.measure(REQUESTS[name], clients, chosen.seconds)
                    cells += [f"{other.cpu:.2f}", f"{other.cpu / cost.cpu:.1f}"]
                print(*_row([auth, name, str(clients), *cells]), flush=True)
                site.forget_reports()
            for title, one in {"masakari-ng": ours, "upstream": theirs}.items():
                if one:
                    print(f"{title}: first answer after {one.first:.2f} s,", end=" ")
                    print(f"largest worker {one.memory():.0f} MiB")


def _row(cells: list[str]) -> list[str]:
    return [f"{cell:>{20 if number == 1 else 8}}" for number, cell in enumerate(cells)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of requests; times in ms.")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each cell")
    parser.add_argument("--auth", action="append", choices=["noauth2", "keystone"])
    parser.add_argument("--upstream", action="store_true", help="that of $MASAKARI_UPSTREAM beside")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="mixed load instead")
    chosen = parser.parse_args()
    chosen.auth = chosen.auth or ["noauth2", "keystone"]
    with tempfile.TemporaryDirectory() as folder, _site(Path(folder)) as site:
        if chosen.soak:
            with site.contender(chosen.auth[-1]) as ours:
                soak(ours, site, [*REQUESTS.values()], chosen.soak)
        else:
            _compare(site, chosen)
