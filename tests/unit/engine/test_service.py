"""Protects that SIGTERM loses nothing: recoveries end in time or are left to the next engine."""

import threading
import time

import pytest

from masakari_ng.clock import SystemClock
from masakari_ng.domain import NotificationStatus, RequestContext
from masakari_ng.engine.periodic import Periodic
from masakari_ng.engine.service import BEYOND_GRACE, HAND_OVER_LIMIT, Service
from masakari_ng.engine.takeover import Takeover
from masakari_ng.messaging.client import EngineClient
from masakari_ng.messaging.connection import Broker
from masakari_ng.messaging.server import Server
from tests.servers import eventually

from .conftest import PATIENCE, Recovery

NEW, RUNNING = NotificationStatus.NEW, NotificationStatus.RUNNING
FINISHED = NotificationStatus.FINISHED


class Waiting:
    """Stands for a recovery that waits for something, in looks of 10 ms."""

    def __init__(self):
        self.begun = threading.Event()
        self.over = threading.Event()

    def __call__(self, context, host):
        self.begun.set()
        while not self.over.is_set():
            context.clock.sleep(0.01)
        return FINISHED


@pytest.fixture
def start(site):
    """Start a whole engine in this process, on the in-memory broker."""
    started = []

    def make(handler, name, *, graceful_timeout=PATIENCE):
        clock = site.clock = SystemClock()
        manager = site.manager(handler, name)
        service = Service(
            Server(Broker(site.conf), manager, threads=4, clock=clock),
            manager,
            Takeover(manager, site.database, clock, heartbeat=0.1, timeout=60),
            Periodic(site.conf, manager, site.database, clock),
            closing=[site.database],
            stop_waits=clock.stop,
            graceful_timeout=graceful_timeout,
        )
        service.start()
        started.append(service)
        return service

    yield make
    for service in started:
        service.stop()


@pytest.fixture
def cast(site):
    client = EngineClient(Broker(site.conf), timeout=PATIENCE)

    def sent(notification):
        client.process_notification(RequestContext(request_id="req-1"), notification)
        return notification

    yield sent
    client.close()


def test_notification_from_the_bus_is_recovered(site, start, cast):
    recovery = Recovery()
    start(recovery, "engine-a")

    notification = cast(site.report())

    eventually(lambda: site.status(notification) is FINISHED)
    assert [context.nova for context in recovery.contexts] == ["req-1"]


def test_default_stop_ends_before_systemd_loses_patience(conf):
    assert conf.graceful_shutdown_timeout + BEYOND_GRACE < 90
    assert BEYOND_GRACE > 3 * HAND_OVER_LIMIT


def test_recovery_that_ends_in_time_is_waited_for(site, start, cast):
    recovery = Waiting()
    service = start(recovery, "engine-a")
    notification = cast(site.report())
    assert recovery.begun.wait(PATIENCE)

    stopping = threading.Thread(target=service.stop)
    stopping.start()
    late = cast(site.report(host=site.add_host("compute-2").uuid))
    recovery.over.set()
    stopping.join(PATIENCE)

    assert site.status(notification) is FINISHED
    assert site.status(late) is NEW
    start(Recovery(), "engine-b")
    eventually(lambda: site.status(late) is FINISHED)


def test_recovery_that_takes_longer_is_left_to_the_next_engine(site, start, cast):
    slow = Waiting()
    service = start(slow, "engine-a", graceful_timeout=0.2)
    notification, waiting = cast(site.report()), site.report()
    assert slow.begun.wait(PATIENCE)
    cast(waiting)
    eventually(lambda: len(site.held()) == 2)

    service.stop()
    assert (site.status(notification), site.status(waiting)) == (RUNNING, NEW)
    assert len(site.handed_over()) == 2
    recovery, begin = Recovery(), time.monotonic()
    start(recovery, "engine-b")
    eventually(lambda: {site.status(notification), site.status(waiting)} == {FINISHED})

    assert [context.resumed for context in recovery.contexts] == [True, False]
    assert time.monotonic() - begin < PATIENCE  # long before the claims would have grown stale
