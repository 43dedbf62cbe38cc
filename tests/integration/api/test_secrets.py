"""Protects that no log, however detailed, holds what opens a door or a line of somebody else's."""

import functools
from collections.abc import Mapping
from urllib.parse import urlsplit

import pytest

from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Api, Daemons
from tests.servers import MariaDB, RabbitMQ, eventually

USER_TOKEN, READER_TOKEN = "users-t0ken", "readers-t0ken"
DATABASE, BROKER, NOVA, KEYSTONE = "s3cret-of-db", "s3cret-of-mq", "s3cret-of-nova", "s3cret-of-ks"
ATTRIBUTES = ["s3cret-stored", "s3cret-malformed\t", "s3cret-failing"]
REPORT = {
    "type": "COMPUTE_HOST",
    "hostname": "compute-1",
    "generated_time": "2026-03-01T10:00:00",
    "payload": {"event": "STOPPED", "host_status": "NORMAL", "cluster_status": "OFFLINE"},
}


@pytest.fixture
def database_url(mariadb: MariaDB, synced_url: str) -> str:
    """The schema, for a user with a password."""
    schema = mariadb.schema_of(synced_url)
    mariadb.sql(
        None,
        f"CREATE OR REPLACE USER api@'%' IDENTIFIED BY '{DATABASE}';"
        f"GRANT ALL ON {schema}.* TO api@'%'",
    )
    return synced_url.replace("root@", f"api:{DATABASE}@")


@pytest.fixture
def transport_url(rabbitmq: RabbitMQ, rabbit_url: str) -> str:
    """The virtual host, for a user with a password."""
    rabbitmq.control("add_user", "api", BROKER)
    vhost = urlsplit(rabbit_url).path.lstrip("/")
    rabbitmq.control("set_permissions", "-p", vhost, "api", ".*", ".*", ".*")
    return rabbit_url.replace("guest:guest@", f"api:{BROKER}@")


@pytest.fixture
def region(
    daemons: Daemons, cloud: SimulatedCloud, database_url: str, transport_url: str
) -> Daemons:
    """What the services need to tell everything that they know."""
    cloud.reset(
        {
            "realistic": True,
            "services": [{"host": "compute-1", "state": "down"}, {"host": "compute-2"}],
            "tokens": {USER_TOKEN: "admin", READER_TOKEN: "reader"},
        }
    )
    cloud.add_server("vm", "compute-1", evacuate={"seconds": 0.1})
    daemons.settings["DEFAULT"] |= {
        "auth_strategy": "keystone",
        "debug": True,
        "os_privileged_user_password": NOVA,
        "transport_url": transport_url,
        "wait_period_after_service_update": 0,
    }
    daemons.settings["database"] = daemons.settings["taskflow"] = {"connection": database_url}
    daemons.settings["keystone_authtoken"] |= {"password": KEYSTONE}
    return daemons


class Caller:
    """Asks with the user's token; gives the status of the answer."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def __call__(self, method: str, path: str, body: Mapping[str, object]) -> int:
        headers = {"X-Auth-Token": USER_TOKEN}
        return self._api.call(method, f"/v1{path}", body, headers=headers).status_code

    def add_host(self, segment: str, name: str, attributes: str) -> int:
        fields = {"name": name, "type": "T", "control_attributes": attributes}
        return self("POST", f"/segments/{segment}/hosts", {"host": fields})


def shown_tokens(cloud: SimulatedCloud) -> set[str]:
    """All that Nova and Keystone have seen, the user's and those of the services."""
    names = ("X-Auth-Token", "X-Subject-Token")
    shown = {frame["headers"].get(name) for frame in cloud.frames for name in names}
    return {token for token in shown if token}


def test_logs_of_the_api_and_the_engine_hold_no_secret(
    region: Daemons, cloud: SimulatedCloud, mariadb: MariaDB, synced_url: str
):
    sql = functools.partial(mariadb.sql, mariadb.schema_of(synced_url))
    api, engine = region.api(), region.engine()
    ask = Caller(api)
    fields = {"name": "rack", "recovery_method": "auto", "service_type": "s"}
    ask("POST", "/segments", {"segment": fields})
    segment = sql("SELECT uuid FROM failover_segments")[0]["uuid"]

    statuses = [
        ask.add_host(segment, "compute-1", ATTRIBUTES[0]),
        ask.add_host(segment, "compute-2", ATTRIBUTES[1]),
    ]
    sql("CREATE TRIGGER t BEFORE INSERT ON hosts FOR EACH ROW SIGNAL SQLSTATE '45000'")
    statuses.append(ask.add_host(segment, "compute-2", ATTRIBUTES[2]))
    statuses.append(ask("POST", "/notifications", {"notification": REPORT}))
    eventually(lambda: sql("SELECT status FROM notifications")[0]["status"] == "finished")

    refused = api.call("GET", "/v1/segments/%0AFORGED", headers={"X-Auth-Token": READER_TOKEN})

    assert [*statuses, refused.status_code] == [201, 400, 500, 202, 403]
    logs = api.log.read_text() + engine.log.read_text()
    assert logs.count(" DEBUG ") > 10
    assert "FORGED" in logs
    assert "\nFORGED" not in logs
    secrets = {DATABASE, BROKER, NOVA, KEYSTONE, *map(str.strip, ATTRIBUTES), *shown_tokens(cloud)}
    assert len(secrets) > 10
    assert {secret for secret in secrets if secret in logs} == set()
