"""Measures whether years of notifications make the API slower. Asserts no time.

Requests go through real APIs, with a private MariaDB and RabbitMQ, on one table with few rows and
on one with many. Where the ratio of the two is near 1, history costs nothing.

    python -m tests.bench.history [ROWS]...
"""

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from masakari_ng.db import migrate
from tests.daemons import Api, Daemons
from tests.servers import MariaDB, RabbitMQ

_SIZES = [1_000, 1_000_000]
_HOSTS = 100
_REQUESTS = 100
_WARM_UP = 5
_PAGES = {
    "first page": "",
    "next page": "marker={marker}",
    "100 rows": "limit=100",
    "oldest": "sort_key=created_at&sort_dir=asc&limit=100",
    "by time": "sort_key=generated_time&sort_dir=desc&limit=100",
    "by change": "sort_key=updated_at&sort_dir=desc&limit=100",
    "finished": "status=finished&limit=100",
    "error": "status=error&limit=100",
    "by status": "sort_key=status&limit=100",
    "type": "type=PROCESS&limit=100",
    "absent type": "type=NOTHING&limit=100",
    "by id": "sort_key=id&limit=100",
    "host": "source_host_uuid={host}&limit=100",
    "host by time": "source_host_uuid={host}&sort_key=generated_time&limit=100",
    "since": "generated-since={since}&limit=100",
}
_FILL = """
    INSERT INTO notifications (created_at, updated_at, deleted, notification_uuid, generated_time,
        source_host_uuid, type, payload, status)
    SELECT UTC_TIMESTAMP() - INTERVAL 30 * ({rows} - seq) + 600 SECOND,
        UTC_TIMESTAMP() - INTERVAL 30 * ({rows} - seq) + 590 - seq MOD 9 SECOND, 0, UUID(),
        UTC_TIMESTAMP() - INTERVAL 30 * ({rows} - seq) + 605 - seq MOD 5 SECOND, uuid,
        IF(seq MOD 50 = 0, 'PROCESS', IF(seq MOD 20 = 0, 'COMPUTE_HOST', 'VM')),
        '{{"event": "LIFECYCLE", "instance_uuid": "i", "vir_domain_event": "STOPPED_FAILED"}}',
        IF(seq > {rows} - 5, 'error', IF(seq MOD 100 = 0, 'failed', 'finished'))
    FROM seq_1_to_{rows} JOIN hosts ON hosts.id = 1 + seq MOD {hosts}"""


def fill(sql: Callable[[str], object], rows: int, *, hosts: int = _HOSTS) -> None:
    """Let the table hold this many notifications of all hosts, one in 30 seconds."""
    sql("TRUNCATE notifications")
    sql(_FILL.format(rows=rows, hosts=hosts))
    sql("ANALYZE TABLE notifications")


class Site:
    """An API on servers of its own."""

    def __init__(self, mariadb: MariaDB, daemons: Daemons) -> None:
        url = str(daemons.settings["database"]["connection"])
        self.sql = lambda text: mariadb.sql(mariadb.schema_of(url), text)
        self._api: Api = daemons.api()
        self._reported = 0
        segment = {"name": "rack", "recovery_method": "auto", "service_type": "COMPUTE"}
        made = self._api.call("POST", "/v1/segments", {"segment": segment}).json()["segment"]
        self._segment = f"/v1/segments/{made['uuid']}"
        self.sql(
            "INSERT INTO hosts (deleted, uuid, name, reserved, type, control_attributes,"
            " failover_segment_id, on_maintenance) SELECT 0, UUID(), CONCAT('host-', seq), 0, 'C',"
            f" 'SSH', '{made['uuid']}', 0 FROM seq_1_to_{_HOSTS}"
        )

    def requests(self) -> dict[str, Callable[[], None]]:
        """What is measured, by name."""
        names = {
            "marker": self._one("SELECT id FROM notifications ORDER BY id LIMIT 1 OFFSET 500"),
            "host": self._one("SELECT uuid FROM hosts WHERE name = 'host-7'"),
            "since": datetime.now(UTC).strftime("%Y-%m-%d"),
        }
        paths = {
            title: f"/v1/notifications?{query.format(**names)}" for title, query in _PAGES.items()
        }
        pages = {title: partial(self._ask, "GET", path) for title, path in paths.items()}
        return {"report": self._report, "change a segment": self._change, **pages}

    def _one(self, query: str) -> Any:
        return next(iter(self.sql(query)[0].values()))

    def _report(self) -> None:
        self._reported += 1
        details = {"instance_uuid": str(uuid4()), "vir_domain_event": "STOPPED_FAILED"}
        report = {
            "type": "VM",
            "hostname": f"host-{1 + self._reported % _HOSTS}",
            "generated_time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
            "payload": {"event": "LIFECYCLE", **details},
        }
        self._ask("POST", "/v1/notifications", {"notification": report})

    def _change(self) -> None:
        """It must not be in use, so all notifications of its hosts are asked for."""
        self._ask("PUT", self._segment, {"segment": {"description": "d"}}, expected=409)

    def _ask(self, method: str, path: str, body: object = None, *, expected: int = 0) -> None:
        answer = self._api.call(method, path, body)
        assert answer.ok or answer.status_code == expected, answer.text


def _timed(requests: list[Callable[[], None]]) -> list[list[float]]:
    """Milliseconds of each request; they take turns, so that other load meets them all."""
    found: list[list[float]] = [[] for _ in requests]
    for number in range(_WARM_UP + _REQUESTS):
        for request, times in zip(requests, found, strict=True):
            begin = time.perf_counter()
            request()
            if number >= _WARM_UP:
                times.append(1000 * (time.perf_counter() - begin))
    return found


@contextlib.contextmanager
def _sites(folder: Path, count: int) -> Iterator[list[Site]]:
    with contextlib.ExitStack() as opened:
        mariadb = MariaDB(folder)
        opened.callback(mariadb.kill)
        mariadb.start()
        rabbitmq = RabbitMQ(folder)
        opened.callback(rabbitmq.close)
        rabbitmq.start()
        sites = []
        for number in range(count):
            database = mariadb.create_schema()
            migrate.upgrade(database)
            broker = rabbitmq.url(rabbitmq.new_vhost())
            own = folder / str(number)
            own.mkdir()
            daemons = Daemons(own, database=database, broker=broker, cloud="http://127.0.0.1:1")
            opened.callback(daemons.close)
            sites.append(Site(mariadb, daemons))
        yield sites


def _row(title: str, found: list[list[float]]) -> list[str]:
    """Median and 99th percentile of each size, ratio of the last median to the first."""
    medians = [statistics.median(times) for times in found]
    cells = [
        f"{value:.1f}"
        for times, median in zip(found, medians, strict=True)
        for value in (median, statistics.quantiles(times, n=100)[-1])
    ]
    return [title, *cells, f"{medians[-1] / medians[0]:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of requests with few rows and with many.")
    parser.add_argument("sizes", nargs="*", type=int, metavar="ROWS", default=_SIZES)
    sizes = parser.parse_args().sizes
    print(f"{os.cpu_count()} CPUs; ms, median and 99th percentile of {_REQUESTS} requests")
    with tempfile.TemporaryDirectory() as folder, _sites(Path(folder), len(sizes)) as sites:
        for site, size in zip(sites, sizes, strict=True):
            fill(site.sql, size)
        columns = [f"{what} {size:,}" for size in sizes for what in ("median", "p99")]
        _print(["", *columns, "ratio"])
        requests = [site.requests() for site in sites]
        for title in requests[0]:
            _print(_row(title, _timed([found[title] for found in requests])))


def _print(row: list[str]) -> None:
    print(f"{row[0]:16}", *(f"{cell:>17}" for cell in row[1:]), flush=True)


if __name__ == "__main__":
    main()
