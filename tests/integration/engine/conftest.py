"""A region: real engine processes on MariaDB, RabbitMQ and the simulated cloud."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from masakari_ng import conf as options
from masakari_ng.db import hosts, notifications, segments
from masakari_ng.db.session import Database
from masakari_ng.domain import (
    Host,
    Notification,
    NotificationType,
    RecoveryMethod,
    RequestContext,
)
from masakari_ng.messaging.client import EngineClient
from masakari_ng.messaging.connection import Broker
from tests.daemons import Daemons
from tests.servers import MariaDB

HOST_DOWN = {"event": "STOPPED", "host_status": "NORMAL", "cluster_status": "OFFLINE"}


class Region:
    """Reports failures as the API does, and looks at what has become of them.

    Attributes:
        cloud: the simulated cloud.
        daemons: starts engines.
    """

    def __init__(
        self, cloud: Any, daemons: Daemons, database: Database, client: EngineClient
    ) -> None:
        self.cloud = cloud
        self.daemons = daemons
        self._database = database
        self._client = client
        self._segment = database.write(
            lambda session: segments.create(
                session, name="rack", service_type="compute", recovery_method=RecoveryMethod.AUTO
            )
        )

    def add_host(self, name: str, instances: int = 0, **script: Any) -> str:
        """A host that is down, with instances that move as `script` says; gives its uuid."""
        self.cloud.add_service(name)
        for number in range(instances):
            self.cloud.add_server(f"{name}-vm-{number}", name, **script)
        self.cloud.fail_host(name)
        return self._create_host(name).uuid

    def reserve(self, name: str) -> None:
        """A reserved host, and the recovery method that uses it."""
        self.cloud.add_service(name)
        self._create_host(name, reserved=True)
        changes = {"recovery_method": RecoveryMethod.RESERVED_HOST}
        self._database.write(lambda session: segments.update(session, self._segment.uuid, changes))

    def _create_host(self, name: str, *, reserved: bool = False) -> Host:
        return self._database.write(
            lambda session: hosts.create(
                session,
                segment_uuid=self._segment.uuid,
                name=name,
                type="COMPUTE",
                control_attributes="SSH",
                reserved=reserved,
            )
        )

    def report(self, host: str, *, casts: int = 1) -> str:
        """Store a host failure and cast it, more than once or never; gives its uuid."""
        stored = self._database.write(
            lambda session: notifications.create(
                session,
                type=NotificationType.COMPUTE_HOST,
                generated_time=datetime.now(UTC).replace(tzinfo=None),
                source_host_uuid=host,
                payload=HOST_DOWN,
                failover_segment_uuid=self._segment.uuid,
            )
        )
        for _ in range(casts):
            self.cast(stored)
        return stored.notification_uuid

    def cast(self, notification: Notification) -> None:
        self._client.process_notification(RequestContext(request_id="req-post"), notification)

    def statuses(self) -> dict[str, str]:
        """Of all notifications, by uuid."""
        return {
            row["notification_uuid"]: row["status"]
            for row in self.rows("SELECT notification_uuid, status FROM notifications")
        }

    def rows(self, query: str) -> list[dict[str, Any]]:
        with self._database.engine.connect() as link:
            return [dict(row._mapping) for row in link.exec_driver_sql(query)]

    def vmoves(self) -> Counter[tuple[str, str]]:
        """How often each pair of instance name and status is there."""
        rows = self.rows("SELECT instance_name, status FROM vmoves")
        return Counter((row["instance_name"], row["status"]) for row in rows)

    def leftovers(self) -> list[dict[str, Any]]:
        """What no recovery leaves behind: claims and journal."""
        found = self.rows("SELECT * FROM masakari_ng_claims")
        return found + self.rows("SELECT * FROM masakari_ng_journal")

    def evacuations(self, *, accepted: bool = False) -> Counter[str]:
        """How often Nova was asked to evacuate each instance, by its name."""
        asked = self.cloud.requests("evacuate", accepted=accepted)
        return Counter({self.cloud.servers[uuid].name: count for uuid, count in asked.items()})


@pytest.fixture
def region(
    cloud: Any, daemons: Daemons, mariadb: MariaDB, synced_url: str, rabbit_url: str
) -> Iterator[Region]:
    cloud.reset({"realistic": True, "services": [{"host": "spare"}]})
    database = Database(synced_url)
    conf = options.load([], program="test", files=[])
    conf.set_override("transport_url", rabbit_url)
    client = EngineClient(Broker(conf), timeout=20)
    daemons.settings["masakari_ng"] = {"claim_heartbeat": 1, "claim_timeout": 3}
    daemons.settings["DEFAULT"] |= {
        "wait_period_after_evacuation": 30,
        "wait_period_after_service_update": 0,
    }
    yield Region(cloud, daemons, database, client)
    client.close()
    database.close()
