"""Protects that Masakari 22.0.0 can take a database back after our programs have worked on it.

`MASAKARI_UPSTREAM` names the virtual environment with Masakari (tox environment `interop`).
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from masakari_ng.db import migrate
from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Api, Daemons
from tests.servers import MariaDB, eventually, free_port

_UPSTREAM = Path(os.environ.get("MASAKARI_UPSTREAM", "/"))
_PASTE = {"wsgi": {"api_paste_config": _UPSTREAM / "etc/masakari/api-paste.ini"}}
_ROWS = Path(__file__).parents[1] / "integration/data/data-a.sql"
_OURS = ("masakari_ng_claims", "masakari_ng_intake", "masakari_ng_journal")

pytestmark = pytest.mark.skipif(
    "MASAKARI_UPSTREAM" not in os.environ, reason="Masakari is not installed"
)

Sql = Callable[[str], list[dict[str, Any]]]
Manage = Callable[..., str]


@pytest.fixture
def synced_url(mariadb: MariaDB, mariadb_url: str, tmp_path: Path) -> str:
    """A schema that upstream made and filled, and that we have adopted."""
    (tmp_path / "made.conf").write_text(
        f"[database]\nconnection = {mariadb_url}\n[taskflow]\nconnection = {mariadb_url}\n"
    )
    _run(_UPSTREAM / "bin/masakari-manage", tmp_path / "made.conf", "db", "sync")
    mariadb.sql(mariadb.schema_of(mariadb_url), _ROWS.read_text())
    migrate.upgrade(mariadb_url)
    return mariadb_url


@pytest.fixture
def sql(mariadb: MariaDB, synced_url: str) -> Sql:
    schema = mariadb.schema_of(synced_url)
    return lambda text: mariadb.sql(schema, text)


@pytest.fixture
def manage(daemons: Daemons) -> Manage:
    """Runs upstream's `masakari-manage`, or ours; gives the output."""
    conf = daemons.write_conf("manage")
    ours = Path(sys.executable).parent / "masakari-ng-manage"

    def run(*words: str, our: bool = False) -> str:
        return _run(ours if our else _UPSTREAM / "bin/masakari-manage", conf, *words)

    return run


@pytest.fixture
def upstream_api(daemons: Daemons, tmp_path: Path) -> Iterator[Callable[[], Api]]:
    started: list[Api] = []

    def start() -> Api:
        port = free_port()
        own = {"DEFAULT": {"masakari_api_listen_port": port}}
        conf = daemons.write_conf("upstream-api", own, _PASTE)
        command = [str(_UPSTREAM / "bin/masakari-api"), "--config-file", str(conf)]
        started.append(Api(command, tmp_path / "upstream-api.log", port))
        started[-1].wait_ready()
        return started[-1]

    yield start
    for api in started:
        api.kill()


def _run(program: Path, conf: Path, *words: str) -> str:
    command = [str(program), "--config-file", str(conf), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _recover(api: Api, cloud: SimulatedCloud) -> str:
    """Let a host with an instance fail; gives the uuid of the notification, which has ended."""
    cloud.reset({"services": [{"host": "node-1"}, {"host": "node-2"}]})
    cloud.add_server("vm-1", "node-1")
    segment = {"name": "back", "service_type": "compute", "recovery_method": "auto"}
    made = api.call("POST", "/v1/segments", {"segment": segment}).json()["segment"]
    for name in ("node-1", "node-2"):
        host = {"name": name, "type": "COMPUTE", "control_attributes": "SSH"}
        api.call("POST", f"/v1/segments/{made['uuid']}/hosts", {"host": host}).raise_for_status()
    cloud.fail_host("node-1")
    report = {
        "type": "COMPUTE_HOST",
        "hostname": "node-1",
        "generated_time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        "payload": {"event": "STOPPED", "host_status": "NORMAL", "cluster_status": "OFFLINE"},
    }
    reported = api.call("POST", "/v1/notifications", {"notification": report})
    uuid: str = reported.json()["notification"]["notification_uuid"]
    shown = lambda: api.call("GET", f"/v1/notifications/{uuid}").json()  # noqa: E731
    eventually(lambda: shown()["notification"]["status"] == "finished", timeout=60)
    return uuid


def _all(api: Api) -> list[Any]:
    """Every list that has no parent, and the hosts of each segment."""
    segments = api.call("GET", "/v1/segments").json()["segments"]
    paths = ["/v1/notifications", *(f"/v1/segments/{made['uuid']}/hosts" for made in segments)]
    return [segments, *(api.call("GET", path).json() for path in paths)]


def test_upstream_works_on_what_ours_have_written(
    daemons: Daemons,
    cloud: SimulatedCloud,
    sql: Sql,
    manage: Manage,
    upstream_api: Callable[[], Api],
):
    daemons.settings["DEFAULT"]["periodic_enable"] = False
    ours, engine = daemons.api(), daemons.engine()
    uuid = _recover(ours, cloud)
    assert engine.terminate() == 0
    kept = {table: sql(f"SELECT * FROM {table}") for table in _OURS}

    assert "Running upgrade" not in manage("db", "sync")
    assert manage("db", "version").splitlines()[-1] == "13adff5efb9a"
    api = upstream_api()
    assert _all(api) == _all(ours)
    (move,) = api.call("GET", f"/v1/notifications/{uuid}/vmoves", version="1.3").json()["vmoves"]
    assert (move["instance_name"], move["status"]) == ("vm-1", "succeeded")
    made = api.call(
        "POST",
        "/v1/segments",
        {"segment": {"name": "after", "service_type": "c", "recovery_method": "auto"}},
    )
    assert made.status_code == 201
    assert ours.call("GET", f"/v1/segments/{made.json()['segment']['uuid']}").ok
    assert {table: sql(f"SELECT * FROM {table}") for table in _OURS} == kept


def test_upstream_purges_what_ours_have_left(
    daemons: Daemons, cloud: SimulatedCloud, sql: Sql, manage: Manage
):
    daemons.settings["DEFAULT"]["periodic_enable"] = False
    api, engine = daemons.api(), daemons.engine()
    _recover(api, cloud)
    assert engine.terminate() == 0
    ended = "SELECT COUNT(*) AS n FROM notifications WHERE status = 'finished'"

    manage("db", "purge", "--age_in_days", "0", "--max_rows", "3", our=True)
    assert sql(ended)[0]["n"] > 0
    # Ages are counted in whole seconds: the newest row may be too young for the first try.
    eventually(lambda: bool(manage("db", "purge", "--age_in_days", "0")) and not sql(ended)[0]["n"])

    assert "Running upgrade" not in manage("db", "sync")
    assert api.call("GET", "/v1/notifications").ok
    assert "Running upgrade" not in manage("db", "sync", our=True)
