"""Fixtures of all suites: options, simulated time, simulated cloud, SQLite, private servers.

Servers start with the first test that asks for them and serve the whole run.
"""

import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from prometheus_client import generate_latest
from stevedore.extension import ExtensionManager

from masakari_ng import conf as options
from masakari_ng import metrics
from masakari_ng.db import migrate
from masakari_ng.db.session import Database
from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Daemons
from tests.scraped import Numbers, numbers_of
from tests.servers import MariaDB, RabbitMQ
from tests.simulated_clock import SimulatedClock


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--threads", action="store_true", help="play recovery scenarios on native threads"
    )


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def cloud() -> Iterator[SimulatedCloud]:
    """Keystone and Nova on a free port, empty until `reset`."""
    simulated = SimulatedCloud()
    simulated.start()
    yield simulated
    simulated.stop()


@pytest.fixture
def conf(request: pytest.FixtureRequest, tmp_path: Path) -> cfg.ConfigOpts:
    """Defaults, an SQLite file, an in-memory broker, no Keystone in front, `cloud` if used."""
    loaded = options.load([], program="masakari-ng-test", files=[])
    loaded.set_override("auth_strategy", "noauth2")
    loaded.set_override("transport_url", "memory://")
    for group in ("database", "taskflow"):
        loaded.set_override("connection", f"sqlite:///{tmp_path}/masakari.sqlite", group)
    if "cloud" in request.fixturenames:
        url = request.getfixturevalue("cloud").url
        loaded.set_override("auth_type", "password", "keystone_authtoken")
        loaded.set_override("os_privileged_user_name", "masakari")
        loaded.set_override("os_privileged_user_password", "secret")
        loaded.set_override("os_privileged_user_tenant", "service")
        loaded.set_override("os_privileged_user_auth_url", f"{url}/identity/v3")
    return loaded


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Path]]:
    """Makes a package with these entry points; gives the folder for its modules."""

    def installed(entry_points: str) -> Path:
        metadata = tmp_path / "somebody-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: somebody\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(entry_points)
        monkeypatch.syspath_prepend(tmp_path)
        ExtensionManager.ENTRY_POINT_CACHE.clear()
        return tmp_path

    yield installed
    ExtensionManager.ENTRY_POINT_CACHE.clear()


@pytest.fixture
def measured() -> Iterator[Callable[[], Numbers]]:
    """Metrics are kept; gives what Prometheus would read."""
    registry = metrics.begin()
    yield lambda: numbers_of(generate_latest(registry).decode())
    metrics.end()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with all tables and no rows."""
    path = tmp_path_factory.mktemp("sqlite") / "template.sqlite"
    migrate.upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def database(conf: cfg.ConfigOpts, sqlite_template: Path, tmp_path: Path) -> Iterator[Database]:
    """All tables in the SQLite file that `conf` names."""
    shutil.copyfile(sqlite_template, tmp_path / "masakari.sqlite")
    opened = Database.from_conf(conf)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDB]:
    folder = tmp_path_factory.mktemp("mariadb")
    server = MariaDB(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder / "data", ignore_errors=True)


@pytest.fixture
def mariadb_url(mariadb: MariaDB) -> str:
    """A fresh, empty schema."""
    return mariadb.create_schema()


@pytest.fixture(scope="session")
def synced_template(mariadb: MariaDB) -> str:
    """Name of a schema with all tables and no rows."""
    url = mariadb.create_schema()
    migrate.upgrade(url)
    return mariadb.schema_of(url)


@pytest.fixture
def synced_url(mariadb: MariaDB, synced_template: str) -> str:
    """A fresh schema with all tables, masakari's, taskflow's and ours, and no rows."""
    url = mariadb.create_schema()
    mariadb.copy_schema(synced_template, mariadb.schema_of(url))
    return url


@pytest.fixture(scope="session")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    folder = tmp_path_factory.mktemp("rabbitmq")
    server = RabbitMQ(folder)
    try:
        server.start()
        yield server
    finally:
        server.close()
        shutil.rmtree(folder / "mnesia", ignore_errors=True)


@pytest.fixture
def rabbit_url(rabbitmq: RabbitMQ) -> str:
    """A fresh, empty vhost."""
    return rabbitmq.url(rabbitmq.new_vhost())


@pytest.fixture
def daemons(
    cloud: SimulatedCloud, synced_url: str, rabbit_url: str, tmp_path: Path
) -> Iterator[Daemons]:
    """Starts API and engine processes on `synced_url`, `rabbit_url` and `cloud`."""
    started = Daemons(tmp_path, database=synced_url, broker=rabbit_url, cloud=cloud.url)
    yield started
    started.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """A failure shows the logs of the daemons."""
    report = yield
    if report.failed and "daemons" in getattr(item, "funcargs", {}):
        report.sections += item.funcargs["daemons"].logs()
    return report
