"""Protects that nothing which a dead engine had accepted is left lying."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from masakari_ng.clock import SystemClock
from masakari_ng.db import claims
from masakari_ng.domain import NotificationStatus, RequestContext, VMoveStatus
from masakari_ng.engine.takeover import Takeover
from tests.servers import eventually
from tests.simulated_clock import SimulatedClock

from .conftest import PATIENCE, Recovery

NEW, RUNNING = NotificationStatus.NEW, NotificationStatus.RUNNING
FAILED, FINISHED = NotificationStatus.FAILED, NotificationStatus.FINISHED
TIMEOUT = 60


@pytest.fixture
def takeover_of(site):
    """The takeover of a manager; its ticks are the test's."""

    def make(manager):
        return Takeover(manager, site.database, site.clock, heartbeat=15, timeout=TIMEOUT)

    return make


class Hurrying(SimulatedClock):
    """A minute passes between any two looks at it."""

    def monotonic(self):
        self.now += 60
        return self.now


def die(site, engine, *, seconds=TIMEOUT + 1):
    """The last heartbeat of an engine was so long ago."""
    sql = (
        f"UPDATE masakari_ng_claims SET heartbeat = datetime('now', '-{seconds} seconds') "
        f"WHERE engine = '{engine}'"
    )
    site.database.write(lambda session: session.execute(text(sql)))


def test_recovery_of_a_dead_engine_is_taken_up(site, takeover_of, caplog):
    notification, recovery = site.report(), Recovery()
    site.take(notification, "dead")
    die(site, "dead")
    manager = site.manager(recovery)

    takeover_of(manager).tick()

    assert manager.wait_idle(PATIENCE)
    assert [context.resumed for context in recovery.contexts] == [True]
    assert site.status(notification) is FINISHED
    assert "taken over from engine 'dead'" in caplog.text


def test_engine_that_beats_keeps_its_recovery(site, takeover_of):
    notification, recovery = site.report(), Recovery()
    site.take(notification, "alive")
    die(site, "alive", seconds=TIMEOUT - 5)

    takeover_of(site.manager(recovery)).tick()

    assert recovery.contexts == []
    assert len(site.held("alive")) == 1


def test_after_an_outage_the_others_may_beat_first(site):
    """The heartbeat took as long as the database was away."""
    site.take(site.report(), "alive")
    die(site, "alive")
    recovery = Recovery()
    takeover = Takeover(
        site.manager(recovery), site.database, Hurrying(), heartbeat=15, timeout=TIMEOUT
    )

    takeover.tick()

    assert recovery.contexts == []
    assert len(site.held("alive")) == 1


class Slow:
    """A database that is away for a minute whenever something is read, or written."""

    def __init__(self, site, away):
        self._site, self._away = site, away

    def read(self, work):
        self._pause("read")
        return self._site.database.read(work)

    def write(self, work):
        self._pause("write")
        return self._site.database.write(work)

    def _pause(self, what):
        if self._away == what:
            self._site.clock.now += 60


@pytest.mark.parametrize("away", ["read", "write"])
def test_after_an_outage_in_the_middle_the_others_may_beat_first(site, away):
    site.take(site.report(), "alive")
    die(site, "alive")
    recovery = Recovery()
    manager = site.manager(recovery)
    takeover = Takeover(manager, Slow(site, away), site.clock, heartbeat=15, timeout=TIMEOUT)

    takeover.tick()

    assert len(site.held("alive")) == 1
    assert recovery.contexts == []


def test_running_row_without_a_claim_belongs_to_upstream(site, takeover_of):
    notification, recovery = site.report(RUNNING), Recovery()

    takeover_of(site.manager(recovery)).tick()

    assert recovery.contexts == []
    assert site.status(notification) is RUNNING


def test_what_waited_for_a_dead_engine_is_as_if_just_received(site, takeover_of):
    first, second = site.report(), site.report()
    site.take(first, "dead"), site.take(second, "dead")
    die(site, "dead")
    recovery = Recovery()
    manager = site.manager(recovery)

    takeover_of(manager).tick()

    eventually(lambda: site.status(second) is FINISHED)
    assert [context.resumed for context in recovery.contexts] == [True, False]
    assert (site.status(first), site.status(second)) == (FINISHED, FINISHED)


def test_own_claim_waits_for_the_recovery_of_another_engine(site, takeover_of):
    mine, recovery = site.report(), Recovery()
    other = site.take(site.report(), "alive")
    manager = site.manager(recovery)
    takeover = takeover_of(manager)

    site.receive(manager, mine, "req-mine")
    takeover.tick()
    assert site.status(mine) is NEW
    site.database.write(lambda session: claims.release(session, other))
    takeover.tick()

    assert manager.wait_idle(PATIENCE)
    assert [context.nova for context in recovery.contexts] == ["req-mine"]
    assert site.status(mine) is FINISHED


@pytest.fixture
def waiting(site):
    """A report that waits in `engine-a`, whose only thread works on another one, and that one."""
    recovery = Recovery(held=True)
    manager = site.manager(recovery, threads=1)
    manager.process_notification(RequestContext(request_id="req-1"), site.report(), lambda: None)
    recovery.wait_begun()
    report = site.report(host=site.add_host("compute-2").uuid)
    site.receive(manager, report)
    yield report, recovery
    recovery.go()
    assert manager.wait_idle(PATIENCE)


def test_idle_engine_relieves_one_whose_threads_all_work(site, takeover_of, waiting):
    """At the second look, since the other may be about to begin."""
    report, first = waiting
    recovery = Recovery()
    idle = site.manager(recovery, "engine-b")
    takeover = takeover_of(idle)

    takeover.tick()
    assert len(site.held()) == 2
    takeover.tick()

    eventually(lambda: site.status(report) is FINISHED)
    assert len(recovery.contexts) == 1
    assert len(site.held()) == 1
    first.go()
    assert site.managers[0].wait_idle(PATIENCE)
    assert len(first.contexts) == 1


@pytest.mark.usefixtures("waiting")
def test_engine_without_a_free_thread_takes_nothing(site, takeover_of):
    site.take(site.report(host=site.add_host("compute-3").uuid), "dead")
    die(site, "dead")
    recovery = Recovery(held=True)
    busy = site.manager(recovery, "engine-b", threads=1)
    another = site.report(host=site.add_host("compute-4").uuid)
    busy.process_notification(RequestContext(request_id="req-1"), another, lambda: None)
    recovery.wait_begun()
    takeover = takeover_of(busy)

    takeover.tick()
    takeover.tick()

    assert (len(site.held()), len(site.held("dead")), len(site.held("engine-b"))) == (2, 1, 1)
    recovery.go()
    eventually(busy.idle)
    takeover.tick()
    eventually(lambda: site.held("dead") == [])


def test_what_was_given_up_meanwhile_is_only_cleared_away(site, takeover_of):
    notification, recovery = site.report(), Recovery()
    site.take(notification, "dead")
    site.plan_move(notification)
    die(site, "dead")
    site.set_status(notification, FAILED)
    manager = site.manager(recovery)

    takeover_of(manager).tick()

    assert manager.wait_idle(PATIENCE)
    assert recovery.contexts == []
    assert site.status(notification) is FAILED
    assert (site.held(), site.journal(notification)) == ([], [])
    assert [vmove.status for vmove in site.vmoves(notification)] == [VMoveStatus.FAILED]


def test_lost_claim_is_noticed_and_named(site, takeover_of, caplog):
    notification, recovery = site.report(), Recovery(held=True)
    manager = site.manager(recovery)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(site.receive, manager, notification)
        recovery.wait_begun()
        (claim,) = site.held()
        site.database.write(lambda session: claims.take_over(session, claim, "engine-b", -5))
        takeover_of(manager).tick()
        recovery.go()

    uuid = notification.notification_uuid
    assert f"Notification '{uuid}' is worked on here and claimed no longer." in caplog.text


def test_stopping_engine_takes_nothing_over(site, takeover_of):
    site.take(site.report(), "dead")
    die(site, "dead")
    recovery = Recovery()
    manager = site.manager(recovery)

    manager.drain()
    takeover_of(manager).tick()

    assert recovery.contexts == []
    assert len(site.held("dead")) == 1


def test_thread_looks_at_once_and_outlives_errors(site, caplog):
    notification, recovery = site.report(), Recovery()
    manager, clock = site.manager(recovery), SystemClock()
    takeover = Takeover(manager, site.database, clock, heartbeat=0.05, timeout=TIMEOUT)
    site.rename_table("masakari_ng_claims", "hidden")

    takeover.start()
    eventually(lambda: "The claims cannot be looked after" in caplog.text)
    site.rename_table("hidden", "masakari_ng_claims")
    site.take(notification, "dead")
    die(site, "dead")
    eventually(lambda: site.status(notification) is FINISHED)
    clock.stop()
    takeover.join(PATIENCE)
