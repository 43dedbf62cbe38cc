"""Protects that the doctor finds what is wrong, each fault alone, and neither changes nor betrays.

Every fault is planted into a site that is otherwise in order.
"""

import json
import socket
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import kombu
import pytest

from masakari_ng.cmd import demo
from masakari_ng.db import claims, hosts, journal, notifications, segments, vmoves
from masakari_ng.db.session import Database
from masakari_ng.demo.cloud import SimulatedCloud
from masakari_ng.domain import NotificationStatus, NotificationType, RecoveryMethod
from tests.daemons import Daemons, command
from tests.servers import MariaDB, RabbitMQ, free_port

SECRET = "wr0ng-s3cret"
QUEUE = "ha_engine"
VM_1 = str(uuid.uuid5(uuid.NAMESPACE_DNS, "vm-1"))


class Site:
    """Two hosts, a reserved one, all that belongs to them, and what can be done to it."""

    def __init__(
        self, daemons: Daemons, cloud: SimulatedCloud, database: Database, mariadb: MariaDB
    ) -> None:
        self.daemons, self.cloud, self.mariadb = daemons, cloud, mariadb
        self.database = database
        self.broker = str(daemons.settings["DEFAULT"]["transport_url"]).replace("rabbit", "amqp", 1)
        self.schema = mariadb.schema_of(daemons.settings["database"]["connection"])
        self.segment = database.write(
            lambda session: segments.create(
                session, name="rack", service_type="compute", recovery_method=RecoveryMethod.AUTO
            )
        )
        cloud.reset({"services": [{"host": "compute-1"}, {"host": "compute-2"}]})
        cloud.add_service("spare", status="disabled")
        self.host = self.add_host("compute-1").uuid
        self.add_host("compute-2")
        self.add_host("spare", reserved=True)

    def add_host(self, name: str, **state: Any) -> Any:
        about = {"segment_uuid": self.segment.uuid, "type": "COMPUTE", "control_attributes": "SSH"}
        return self.database.write(
            lambda session: hosts.create(session, name=name, **about, **state)
        )

    def add_notification(self, status: str = "new", *, claimed: bool = False) -> str:
        def make(session: Any) -> str:
            made = notifications.create(
                session,
                type=NotificationType.COMPUTE_HOST,
                generated_time=datetime(2026, 1, 1),
                source_host_uuid=self.host,
                payload={},
                failover_segment_uuid=None,
            )
            uuid, new = made.notification_uuid, {NotificationStatus.NEW}
            if claimed:
                claims.take(session, made, "controller-1:1:x", expected=new)
            changed = NotificationStatus(status)
            notifications.change_status(session, uuid, expected=new, status=changed)
            return uuid

        return self.database.write(make)

    def add_move(self, notification: str, instance: str, **entry: Any) -> None:
        def make(session: Any) -> None:
            about = {"instance_name": "vm", "source_host": "compute-1"}
            vmove = vmoves.create(
                session, notification_uuid=notification, instance_uuid=instance, **about
            )
            if entry:
                journal.plan(session, vmove)
                journal.update(session, vmove.uuid, **entry)

        self.database.write(make)

    def sql(self, text: str) -> None:
        self.mariadb.sql(self.schema, text)

    def configure(self, group: str, **settings: object) -> None:
        self.daemons.settings[group] |= settings


@pytest.fixture(scope="module")
def rabbit_url(rabbitmq: RabbitMQ) -> str:
    """One vhost for all, as to make one takes long."""
    return rabbitmq.url(rabbitmq.new_vhost())


@pytest.fixture
def site(
    daemons: Daemons, cloud: SimulatedCloud, synced_url: str, mariadb: MariaDB
) -> Iterator[Site]:
    with closing(Database(synced_url)) as database:
        yield Site(daemons, cloud, database, mariadb)


@pytest.fixture
def reader(site: Site) -> Iterator[None]:
    """Consumes from the queue of the engines, in place of one."""
    with kombu.Connection(site.broker) as link:
        link.default_channel.queue_declare(QUEUE, auto_delete=False)
        link.default_channel.basic_consume(QUEUE)
        yield


@pytest.fixture
def examine(site: Site, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Gives the exit code, and the results that are not OK by check."""

    def run(*options: str) -> tuple[int, dict[str, dict[str, Any]]]:
        path = site.daemons.write_conf("doctor")
        code = demo.main(["doctor", "--config-file", str(path), "--json", *options])
        text = capsys.readouterr()
        assert SECRET not in text.out + text.err
        done = json.loads(text.out)["checks"]
        assert len(done) == 14
        return code, {one["check"]: one for one in done if one["result"] != "OK"}

    return run


def wrong_database_password(site: Site) -> None:
    url = site.daemons.settings["database"]["connection"]
    site.configure("database", connection=url.replace("root@", f"nobody:{SECRET}@"))


def no_tables(site: Site) -> None:
    url = site.mariadb.create_schema()
    site.configure("database", connection=url)
    site.configure("taskflow", connection=url)


def old_tables(site: Site) -> None:
    site.sql("UPDATE masakari_ng_alembic_version SET version_num = 'older'")


def clock_of_database_ahead(site: Site) -> None:
    first = quote("SET timestamp = UNIX_TIMESTAMP() + 100")
    url = site.daemons.settings["database"]["connection"]
    site.configure("database", connection=f"{url}&init_command={first}")


def clock_of_database_a_little_behind(site: Site) -> None:
    first = quote("SET timestamp = UNIX_TIMESTAMP() - 20")
    url = site.daemons.settings["database"]["connection"]
    site.configure("database", connection=f"{url}&init_command={first}")


def broker_down(site: Site) -> None:
    url = f"rabbit://guest:{SECRET}@127.0.0.1:{free_port()}/"
    site.configure("DEFAULT", transport_url=url)


def wrong_broker_password(site: Site) -> None:
    url = site.daemons.settings["DEFAULT"]["transport_url"]
    site.configure("DEFAULT", transport_url=url.replace("guest:guest", f"guest:{SECRET}"))


def wrong_keystone_password(site: Site) -> None:
    site.configure("DEFAULT", os_privileged_user_password=SECRET)
    refusal = {"error": {"code": 401, "message": "The request requires authentication."}}
    match = {"method": "POST", "path": "/auth/tokens"}
    site.cloud.arm_faults([{"match": match, "do": {"status": 401, "body": refusal}}])


def nova_refuses(site: Site) -> None:
    refusal = {"forbidden": {"code": 403, "message": "Policy doesn't allow os-services:list"}}
    match = {"path": "/os-services"}
    site.cloud.arm_faults([{"match": match, "do": {"status": 403, "body": refusal}}])


def nova_too_old(site: Site) -> None:
    refusal = {"computeFault": {"code": 406, "message": "Version 2.53 is not supported"}}
    match = {"path": "/os-services"}
    site.cloud.arm_faults([{"match": match, "do": {"status": 406, "body": refusal}}])


def host_unknown_to_nova(site: Site) -> None:
    site.add_host("stranger")


def host_on_maintenance(site: Site) -> None:
    site.add_host("compute-3", on_maintenance=True)
    site.cloud.add_service("compute-3")


def reserved_host_down(site: Site) -> None:
    site.cloud.fail_host("spare")


def reserved_host_enabled(site: Site) -> None:
    site.add_host("spare-2", reserved=True)
    site.cloud.add_service("spare-2")


def forgotten(status: str) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        site.add_notification(status)
        site.sql("UPDATE notifications SET created_at = '2026-01-01', updated_at = '2026-01-01'")

    return plant


def dead_engine(site: Site) -> None:
    site.add_notification("running", claimed=True)
    site.sql("UPDATE masakari_ng_claims SET heartbeat = UTC_TIMESTAMP() - INTERVAL 100 SECOND")


def lock_left_behind(site: Site) -> None:
    instance = site.cloud.add_server("vm-1", locked=True)
    site.add_move(site.add_notification("finished"), instance, locked=True)


def lock_of_failed_recovery(site: Site) -> None:
    notification = site.add_notification("failed")
    site.add_move(notification, site.cloud.add_server("vm-1", locked=True))
    site.add_move(notification, site.cloud.add_server("vm-2"))
    site.add_move(notification, "00000000-0000-0000-0000-000000000000")


def contradictory_options(site: Site) -> None:
    site.daemons.settings["masakari_ng"] = {"claim_heartbeat": 1000}


def not_a_number(site: Site) -> None:
    site.configure("DEFAULT", notifications_expired_interval="a day")


ON_TABLES = {"hosts in nova", "maintenance", "reserved hosts", "notifications", "claims", "locks"}
ON_NOVA = {"hosts in nova", "reserved hosts", "locks"}
FAULTS = [
    # what, the check that finds it, how bad, a piece of what is said, checks that cannot be done
    (wrong_database_password, "database", 2, "Access denied", {"schema", "clock"} | ON_TABLES),
    (no_tables, "schema", 2, "masakari_ng: no tables", ON_TABLES),
    (old_tables, "schema", 2, "masakari_ng: older, needed: ", ON_TABLES),
    (clock_of_database_ahead, "clock", 2, "s ahead", set()),
    (clock_of_database_a_little_behind, "clock", 1, "s behind", set()),
    (broker_down, "broker", 2, "Connection refused", {"engines"}),
    (wrong_broker_password, "broker", 2, "ACCESS_REFUSED", {"engines"}),
    (wrong_keystone_password, "keystone", 2, "HTTP 401", {"nova"} | ON_NOVA),
    (nova_refuses, "nova", 2, "HTTP 403", ON_NOVA),
    (nova_too_old, "nova", 2, "2.53", ON_NOVA),
    (host_unknown_to_nova, "hosts in nova", 2, "stranger", set()),
    (host_on_maintenance, "maintenance", 1, "compute-3", set()),
    (reserved_host_down, "reserved hosts", 1, "spare (down, disabled)", set()),
    (reserved_host_enabled, "reserved hosts", 1, "spare-2 (up, enabled)", set()),
    (forgotten("new"), "notifications", 2, "(new)", set()),
    (forgotten("error"), "notifications", 2, "(error)", set()),
    (forgotten("running"), "notifications", 2, "(running)", set()),
    (dead_engine, "claims", 2, "not taken over", set()),
    (lock_left_behind, "locks", 1, f"users: {VM_1}.", set()),
    (lock_of_failed_recovery, "locks", 1, f"users: {VM_1}.", set()),
    (contradictory_options, "configuration", 2, "claim_timeout must be", set()),
    (not_a_number, "configuration", 2, "notifications_expired_interval", set()),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault[0].__name__}-{fault[1]}")
@pytest.mark.usefixtures("reader")
def test_one_fault_is_found_and_hides_no_other(site, examine, fault):
    plant, check, code, said, unseen = fault
    plant(site)

    ended, found = examine()

    assert ended == code, found
    assert found.keys() == {check} | unseen
    assert found[check]["result"] == {1: "warning", 2: "failure"}[code]
    assert said in found[check]["found"]
    assert found[check]["advice"]
    assert {found[name]["result"] for name in unseen} <= {"not checked"}


@pytest.mark.parametrize("known", [True, False])
def test_without_engine(site, examine, rabbitmq, known):
    """Whether there was one before or not."""
    if known:
        with kombu.Connection(site.broker) as link:
            link.default_channel.queue_declare(QUEUE, auto_delete=False)
    else:
        site.configure("DEFAULT", transport_url=rabbitmq.url(rabbitmq.new_vhost()))

    code, found = examine()

    assert code == 2
    assert found.keys() == {"engines"}
    assert found["engines"]["found"] == "Engines that read ha_engine: 0; requests that wait: 0."


@pytest.mark.usefixtures("reader")
def test_what_nobody_need_mind(site, examine):
    """A report of this moment, a recovery under way, a lock of a user elsewhere."""
    site.add_notification("new")
    site.add_move(site.add_notification("running", claimed=True), "vm-1", locked=True)
    site.cloud.add_server("vm-2", locked=True)

    assert examine() == (0, {})


@pytest.mark.usefixtures("reader")
def test_who_says_nothing_is_not_waited_for(site, examine):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        site.configure("database", connection=f"mysql+pymysql://root@127.0.0.1:{port}/masakari")

        code, found = examine("--patience", "2")

    assert code == 2
    assert found["database"]["found"] == "No answer within 2 s."
    assert "nova" not in found


def test_healthy_site_with_the_right_to_read_only(
    site: Site, cloud: SimulatedCloud, mariadb: MariaDB, rabbitmq: RabbitMQ, rabbit_url: str
):
    """As an operator runs it; neither MariaDB nor RabbitMQ would let it change anything."""
    site.daemons.engine()
    mariadb.sql(
        None,
        f"CREATE OR REPLACE USER doctor@'%'; GRANT SELECT ON {site.schema}.* TO doctor@'%'",
    )
    rabbitmq.control("add_user", "doctor", "doctor")
    vhost = rabbit_url.rpartition("/")[2]
    rabbitmq.control("set_permissions", "-p", vhost, "doctor", "^$", "^$", "^$")
    url = site.daemons.settings["database"]["connection"].replace("root@", "doctor@")
    site.configure("database", connection=url)
    site.configure("taskflow", connection=url)
    site.configure("DEFAULT", transport_url=rabbit_url.replace("guest:guest", "doctor:doctor"))
    cloud.arm_faults()
    program, *options = command("masakari-ng", site.daemons.write_conf("doctor"))

    done = subprocess.run(
        [program, "doctor", *options], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.count("OK  ") == 14
    assert "Engines that read ha_engine: 1;" in done.stdout
    asked = {(frame["method"], Path(frame["path"]).name) for frame in cloud.frames}
    assert {method for method, path in asked if path != "tokens"} == {"GET"}
