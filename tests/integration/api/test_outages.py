"""Protects that the API answers in time while its database is away, and stores all or nothing."""

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Api, Daemons
from tests.servers import MariaDB, eventually

SOON = 5.0
DATABASE = {"database": {"max_retries": 2, "retry_interval": 1}}
HOST = {"host": {"name": "compute-1", "type": "T", "control_attributes": "c"}}
REPORT = {
    "notification": {
        "type": "COMPUTE_HOST",
        "hostname": "compute-1",
        "generated_time": "2026-03-01T10:00:00",
        "payload": {"event": "STOPPED"},
    }
}


def segment(name: str) -> dict[str, Any]:
    return {"segment": {"name": name, "recovery_method": "auto", "service_type": "s"}}


def timed(api: Api, method: str, path: str, body: object) -> tuple[int, dict[str, Any], float]:
    """Status, body and seconds of an answer."""
    begin = time.monotonic()
    answer = api.call(method, path, body)
    return answer.status_code, answer.json(), time.monotonic() - begin


def create_until_refused(api: Api, created: list[str]) -> None:
    while api.call("POST", "/v1/segments", segment(f"s{len(created)}")).status_code == 201:
        created.append(f"s{len(created)}")


@contextlib.contextmanager
def away(mariadb: MariaDB) -> Iterator[None]:
    mariadb.kill()
    try:
        yield
    finally:
        mariadb.start()


def test_each_request_is_answered_in_time_and_does_nothing(
    daemons: Daemons, cloud: SimulatedCloud, mariadb: MariaDB
):
    cloud.reset({"services": [{"host": "compute-1"}]})
    api = daemons.api(DATABASE)
    created = api.call("POST", "/v1/segments", segment("rack")).json()["segment"]
    path = f"/v1/segments/{created['uuid']}"
    api.call("POST", f"{path}/hosts", HOST)
    hosts = api.call("GET", f"{path}/hosts").json()

    with away(mariadb):
        apis = [api, daemons.api(DATABASE)]
        answers = [
            timed(each, method, asked, body)
            for each in apis
            for method, asked, body in [
                ("GET", path, None),
                ("POST", "/v1/segments", segment("other")),
                ("POST", "/v1/notifications", REPORT),
                ("PUT", path, {"segment": {"name": "other"}}),
                ("DELETE", path, None),
            ]
        ]

    assert {(status, tuple(body)) for status, body, _ in answers} == {(500, ("masakariFault",))}
    assert max(seconds for _, _, seconds in answers) < SOON
    for each in apis:
        eventually(lambda api=each: api.call("GET", path).status_code == 200)
        assert each.call("GET", "/v1/segments").json() == {"segments": [created]}
        assert each.call("GET", f"{path}/hosts").json() == hosts
        assert each.call("GET", "/v1/notifications").json() == {"notifications": []}


def test_what_was_answered_with_success_is_stored(
    daemons: Daemons, mariadb: MariaDB, synced_url: str
):
    api = daemons.api(DATABASE)
    created: list[str] = []

    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(create_until_refused, api, created)
        eventually(lambda: len(created) > 10)
        with away(mariadb):
            ended.result()

    rows = mariadb.sql(
        mariadb.schema_of(synced_url), "SELECT name FROM failover_segments ORDER BY id"
    )
    stored = [row["name"] for row in rows]
    assert stored[: len(created)] == created
    assert len(stored) - len(created) <= 1  # the connection may have been lost at the commit
