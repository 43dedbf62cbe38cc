"""Protects that a broker that dies again and again under load costs no report and no thread."""

import itertools
import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import kombu
import pytest

from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Api, Daemon, Daemons
from tests.servers import MariaDB, RabbitMQ, eventually

_PER_SECOND = 20
_BURST = 50
_OUTAGES = ((2.0, 0.0), (0.0, 0.0), (1.0, 4.0))
"""Seconds for which the broker runs, and those for which it does not answer until it is killed."""
_CAST_TIMEOUT, _MARGIN = 2.0, 10.0  # the margin is for a busy machine
_DROPPED = re.compile(r"(\d+) versioned notifications have been dropped")

Event = dict[str, Any]


class Load:
    """Reports again and again that a process has started, which ends `finished` by itself.

    Attributes:
        answers: statuses.
        slowest: seconds of the slowest answer so far.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._numbers = itertools.count()
        self._pool = ThreadPoolExecutor(_BURST)
        self.answers: Counter[int] = Counter()
        self.slowest = 0.0

    def burst(self, *, ahead: float = 0.0) -> None:
        """Report at once what occupies all threads, as of so many seconds from now."""
        numbers = itertools.islice(self._numbers, _BURST)
        list(self._pool.map(self._post, numbers, itertools.repeat(ahead)))

    def steady(self, until: Callable[[], bool]) -> None:
        """Report at a steady rate, however long the answers take."""
        begin, posts = time.monotonic(), []
        while not until():
            posts.append(self._pool.submit(self._post, next(self._numbers)))
            time.sleep(max(0.0, begin + len(posts) / _PER_SECOND - time.monotonic()))
        for post in posts:
            post.result()

    def close(self) -> None:
        self._pool.shutdown()

    def _post(self, number: int, ahead: float = 0.0) -> None:
        generated = time.gmtime(time.time() + ahead)
        report = {
            "type": "PROCESS",
            "hostname": "compute-1",
            "generated_time": time.strftime("%Y-%m-%dT%H:%M:%S", generated),
            "payload": {"event": "STARTED", "process_name": f"process-{number}"},
        }
        begin = time.monotonic()
        answer = self._api.call("POST", "/v1/notifications", {"notification": report})
        self.slowest = max(self.slowest, time.monotonic() - begin)
        self.answers[answer.status_code] += 1


@pytest.fixture
def events_url(rabbitmq: RabbitMQ) -> str:
    """A virtual host for events, where the broker keeps all that it has taken."""
    return f"{rabbitmq.url(rabbitmq.new_vhost())}?amqp_durable_queues=true"


@pytest.fixture
def api(daemons: Daemons, cloud: SimulatedCloud, events_url: str) -> Api:
    """Knows the host compute-1, and keeps few events."""
    cloud.reset({"services": [{"host": "compute-1"}]})
    daemons.settings["DEFAULT"] |= {
        "process_unfinished_notifications_interval": 2,
        "retry_notification_new_status_interval": 2,
        "executor_thread_pool_size": 2,  # soon all in use
    }
    daemons.settings["masakari_ng"] = {"cast_timeout": _CAST_TIMEOUT}
    daemons.settings["oslo_messaging_rabbit"] = {"rabbit_interval_max": 3}
    events = {"driver": "messagingv2", "transport_url": events_url}
    daemons.settings["oslo_messaging_notifications"] = events
    api = daemons.api({"masakari_ng": {"event_buffer": 50}})
    segment = {"name": "rack", "recovery_method": "auto", "service_type": "COMPUTE"}
    created = api.call("POST", "/v1/segments", {"segment": segment}).json()["segment"]
    host = {"name": "compute-1", "type": "COMPUTE", "control_attributes": "SSH"}
    api.call("POST", f"/v1/segments/{created['uuid']}/hosts", {"host": host})
    return api


@pytest.fixture
def load(api: Api) -> Iterator[Load]:
    made = Load(api)
    yield made
    made.close()


@pytest.fixture
def statuses(mariadb: MariaDB, synced_url: str) -> Callable[[], Counter[str]]:
    """Counts the notifications in each status."""

    def count() -> Counter[str]:
        rows = mariadb.sql(mariadb.schema_of(synced_url), "SELECT status FROM notifications")
        return Counter(row["status"] for row in rows)

    return count


@pytest.fixture
def told(events_url: str) -> Callable[[], list[Event]]:
    """Gives all events so far; one that was sent twice as its confirmation was lost comes once."""
    taken: dict[str, Event] = {}
    url = events_url.partition("?")[0].replace("rabbit:", "amqp:", 1)

    def take() -> list[Event]:
        with kombu.Connection(url) as link:
            get = link.default_channel.basic_get
            while frame := get("versioned_notifications.info", no_ack=True):
                message = json.loads(json.loads(frame.body)["oslo.message"])
                taken[message["message_id"]] = message
        return list(taken.values())

    return take


def _threads(daemon: Daemon) -> int:
    """Of all processes of a service."""
    listed = subprocess.run(
        ["ps", "-o", "nlwp=", "--sid", str(daemon.process.pid)],
        capture_output=True,
        text=True,
        check=True,
    )
    return sum(map(int, listed.stdout.split()))


def _fail(rabbitmq: RabbitMQ) -> None:
    for running, frozen in _OUTAGES:
        time.sleep(running)
        rabbitmq.pause()
        time.sleep(frozen)
        rabbitmq.kill()
        rabbitmq.start()


def _ends(events: list[Event]) -> Counter[str]:
    """How often the end of each recovery was told."""
    return Counter(
        event["payload"]["masakari_object.data"]["notification_uuid"]
        for event in events
        if event["event_type"] == "notification.process.end"
    )


def test_neither_reports_nor_events_are_lost_and_no_thread_is_stuck(
    *,
    daemons: Daemons,
    api: Api,
    load: Load,
    rabbitmq: RabbitMQ,
    statuses: Callable[[], Counter[str]],
    told: Callable[[], list[Event]],
):
    services = [api, daemons.engine(), daemons.engine(arguments=["--threads"])]
    for _ in range(2):
        load.burst()
    eventually(lambda: set(statuses()) == {"finished"}, timeout=60)
    before = [_threads(service) for service in services]
    usual, load.slowest = load.slowest, 0.0

    with ThreadPoolExecutor(1) as pool:
        outages = pool.submit(_fail, rabbitmq)
        load.steady(outages.done)
        outages.result()
    assert load.slowest < _CAST_TIMEOUT + _MARGIN + usual

    eventually(lambda: daemons.consumers() == 2, timeout=15)
    eventually(lambda: set(statuses()) == {"finished"}, timeout=60)
    load.burst(ahead=3600)  # too young for the periodic task: only casts can bring them
    eventually(lambda: set(statuses()) == {"finished"}, timeout=60)
    reports = statuses().total()
    assert load.answers == {202: reports}
    assert [_threads(service) for service in services] == before

    eventually(lambda: len(_ends(told())) == reports, timeout=60)
    assert set(_ends(told()).values()) == {1}
    of_api = [each for each in told() if each["publisher_id"].startswith("masakari-api:")]
    dropped = sum(map(int, _DROPPED.findall(api.log.read_text())))
    assert dropped > 0
    assert len(of_api) + dropped == 2 * (reports + 2)  # of segment and host, too
    assert [_DROPPED.findall(engine.log.read_text()) for engine in services[1:]] == [[], []]
