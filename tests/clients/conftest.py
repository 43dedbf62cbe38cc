"""API, engine and simulated cloud as clients see them: once without Keystone, once behind it."""

import itertools
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from masakari_ng.demo.cloud import SimulatedCloud
from tests.clients.programs import Access, CommandLine, Sdk, install
from tests.daemons import Api, Daemons
from tests.servers import MariaDB, RabbitMQ, eventually


@pytest.fixture(scope="session")
def programs() -> Path:
    """Folder of the clients' programs."""
    return install()


@pytest.fixture(scope="session")
def cloud() -> Iterator[SimulatedCloud]:
    simulated = SimulatedCloud(realistic=True)
    simulated.start()
    yield simulated
    simulated.stop()


@pytest.fixture(scope="session", params=["noauth2", "keystone"])
def auth_strategy(request: pytest.FixtureRequest) -> str:
    strategy: str = request.param
    return strategy


@pytest.fixture(scope="session")
def database_url(auth_strategy: str, mariadb: MariaDB, synced_template: str) -> str:
    """A schema with all tables and no rows, another one for each strategy."""
    url = mariadb.create_schema()
    mariadb.copy_schema(synced_template, mariadb.schema_of(url))
    return url


@pytest.fixture(scope="session")
def daemons(
    auth_strategy: str,
    cloud: SimulatedCloud,
    database_url: str,
    rabbitmq: RabbitMQ,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Daemons]:
    """Starts services on a database, a vhost and a folder of the strategy's own."""
    folder = tmp_path_factory.mktemp(auth_strategy)
    broker = rabbitmq.url(rabbitmq.new_vhost())
    started = Daemons(folder, database=database_url, broker=broker, cloud=cloud.url)
    started.settings["DEFAULT"] |= {
        "auth_strategy": auth_strategy,
        "wait_period_after_service_update": 0,
        "wait_period_after_evacuation": 30,
    }
    # A token that was revoked is refused at once.
    started.settings["keystone_authtoken"]["token_cache_time"] = -1
    yield started
    started.close()


@pytest.fixture(scope="session")
def api(cloud: SimulatedCloud, daemons: Daemons) -> Api:
    """With an engine behind it; in the catalog its URL ends with the project's id."""
    started = daemons.api()
    cloud.reset(
        {
            "instance_ha": f"{started.url}/v1",
            "services": [{"host": "spare"}],
            "tokens": {"reader-token": "reader"},
        }
    )
    daemons.engine()
    return started


@pytest.fixture(scope="session")
def access(auth_strategy: str, cloud: SimulatedCloud, api: Api) -> Access:
    """What an administrator sets to use the service."""
    if auth_strategy == "noauth2":
        return {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": f"{api.url}/v1"}
    return {
        "OS_AUTH_TYPE": "password",
        "OS_AUTH_URL": f"{cloud.url}/identity/v3",
        "OS_USERNAME": "admin",
        "OS_PASSWORD": "secret",
        "OS_PROJECT_NAME": "service",
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": "RegionOne",
    }


@pytest.fixture(scope="session")
def openstack(programs: Path, access: Access) -> CommandLine:
    return CommandLine(programs, access)


@pytest.fixture(scope="session")
def sdk(programs: Path, access: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sdk]:
    """With the microversions that it chooses by itself."""
    with Sdk(programs, access, log=tmp_path_factory.mktemp("sdk") / "log") as started:
        yield started


@pytest.fixture(scope="session")
def latest_sdk(
    programs: Path, access: Access, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sdk]:
    """With microversion 1.3 for everything."""
    log = tmp_path_factory.mktemp("sdk") / "log"
    with Sdk(programs, access, log=log, ha_api_version="1.3") as started:
        yield started


@dataclass(frozen=True)
class Host:
    """A compute host that the service knows; `segment` and `uuid` are uuids."""

    segment: str
    uuid: str
    name: str

    def down(self) -> dict[str, Any]:
        """The host monitor's report that it is down."""
        return self._report(
            "COMPUTE_HOST",
            {"event": "STOPPED", "host_status": "NORMAL", "cluster_status": "OFFLINE"},
        )

    def instance_failed(self) -> dict[str, Any]:
        """The instance monitor's report that one has ended."""
        return self._report(
            "VM",
            {
                "event": "LIFECYCLE",
                "instance_uuid": str(uuid.uuid4()),
                "vir_domain_event": "STOPPED_FAILED",
            },
        )

    def _report(self, kind: str, payload: dict[str, str]) -> dict[str, Any]:
        now = datetime.now(UTC).replace(tzinfo=None)
        return {
            "type": kind,
            "hostname": self.name,
            "generated_time": now.isoformat(timespec="microseconds"),
            "payload": payload,
        }


@pytest.fixture(scope="session")
def make_host(cloud: SimulatedCloud, sdk: Sdk) -> Callable[..., Host]:
    """Makes a host that is down, in a segment of its own."""
    numbers = itertools.count(1)

    def make(*, name: str | None = None, instances: int = 0) -> Host:
        number = next(numbers)
        name = name or f"compute-{number}"
        cloud.add_service(name, state="down")
        for instance in range(instances):
            cloud.add_server(f"{name}-vm-{instance}", name, evacuate={"seconds": 0.1})
        segment = sdk.create_segment(
            name=f"rack-{number}", recovery_method="auto", service_type="compute"
        )["uuid"]
        host = sdk.create_host(segment, name=name, type="COMPUTE", control_attributes="SSH")
        return Host(segment, host["uuid"], name)

    return make


@pytest.fixture(scope="session")
def finished(sdk: Sdk) -> Callable[[str], str]:
    """Waits until the recovery of a notification is done, and gives back the notification."""

    def wait(uuid: str) -> str:
        eventually(lambda: sdk.get_notification(uuid)["status"] == "finished", timeout=60)
        return uuid

    return wait


@pytest.fixture(scope="session")
def recovered(sdk: Sdk, make_host: Callable[..., Host], finished: Callable[[str], str]) -> str:
    """The notification of a host whose three instances were evacuated."""
    report = make_host(instances=3).down()
    return finished(sdk.create_notification(**report)["notification_uuid"])
