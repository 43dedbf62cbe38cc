"""Protects when and what the periodic tasks retry, and what they give up."""

from datetime import timedelta

import pytest

from masakari_ng import errors
from masakari_ng.domain import Correction, NotificationStatus, VMoveStatus
from masakari_ng.engine.periodic import Periodic, Task
from tests.servers import eventually

from .conftest import PATIENCE, Recovery

NEW = NotificationStatus.NEW
RUNNING = NotificationStatus.RUNNING
ERROR = NotificationStatus.ERROR
FAILED = NotificationStatus.FAILED
FINISHED = NotificationStatus.FINISHED


@pytest.fixture
def periodic_of(site):
    def make(manager, **options):
        for name, value in options.items():
            site.conf.set_override(name, value)
        return Periodic(site.conf, manager, site.database, site.clock, site.corrections)

    return make


def test_first_run_is_one_spacing_after_the_start_then_on_multiples():
    task = Task("t", lambda: None, spacing=10, last=100.0)

    assert task.wait(100.0) == 10
    assert task.wait(109.7) == pytest.approx(0.3)
    assert task.wait(109.9) == 0  # near enough
    task.mark(113.0)  # late
    assert task.wait(113.0) == 7
    task.mark(145.0)  # several were missed
    assert task.wait(145.0) == 5


def test_long_spacings_get_some_jitter():
    def next_run(spacing):
        task = Task("t", lambda: None, spacing=spacing, last=0.0)
        task.mark(spacing)
        return task.last + task.spacing

    assert {next_run(19) for _ in range(20)} == {38}
    runs = [next_run(100) for _ in range(200)]
    assert 200 <= min(runs) < max(runs) <= 205


@pytest.mark.parametrize(
    ("options", "pauses"),
    [
        ({}, [60, 60]),
        ({"process_unfinished_notifications_interval": 15}, [15, 15]),
        ({"periodic_interval_max": 7}, [7, 7]),
        ({"process_unfinished_notifications_interval": 0}, [60, 60]),
        ({"process_unfinished_notifications_interval": 100}, [60, 40]),
    ],
    ids=str,
)
def test_pause_between_looks(site, periodic_of, options, pauses):
    periodic = periodic_of(site.manager(Recovery()), **options)

    for pause in pauses:
        assert periodic.look() == pytest.approx(pause)
        site.clock.sleep(pause)


def test_negative_spacing_switches_a_task_off(site, periodic_of):
    notification = site.report(ERROR)
    manager = site.manager(Recovery())
    periodic = periodic_of(manager, process_unfinished_notifications_interval=-1)

    for _ in range(10):
        site.clock.sleep(periodic.look())

    assert site.status(notification) is ERROR


def test_failed_and_lost_notifications_are_retried_once(site, periodic_of):
    retried = [site.report(ERROR), site.report(ERROR, age=9999), site.report(NEW, age=61)]
    left = [site.report(NEW, age=59), site.report(RUNNING, age=9999), site.report(FAILED)]
    before = [site.status(one) for one in left]
    manager = site.manager(Recovery(errors.HostRecoveryFailure("no")))
    periodic = periodic_of(manager, process_unfinished_notifications_interval=15)

    for _ in range(10):
        site.clock.now = 0  # nobody grows older here
        periodic.retry_unfinished()
        assert manager.wait_idle(PATIENCE)

    assert [site.status(one) for one in retried] == [FAILED] * 3
    assert [site.status(one) for one in left] == before


def test_lost_notification_can_have_its_retry(site, periodic_of):
    """D10: the first try of what was lost is not the last one; the second is."""
    site.corrections = frozenset({Correction.RETRY_LOST_NOTIFICATIONS})
    lost, failed = site.report(NEW, age=61), site.report(ERROR, host=site.add_host("h2").uuid)
    manager = site.manager(Recovery(errors.HostRecoveryFailure("no")))
    periodic = periodic_of(manager)

    seen = []
    for _ in range(3):
        periodic.retry_unfinished()
        assert manager.wait_idle(PATIENCE)
        seen.append((site.status(lost), site.status(failed)))

    assert seen == [(ERROR, FAILED), (FAILED, FAILED), (FAILED, FAILED)]


def test_newest_comes_first(site, periodic_of):
    reports = [site.report(ERROR) for _ in range(3)]
    recovery = Recovery(held=True)
    manager = site.manager(recovery)

    periodic_of(manager).retry_unfinished()
    recovery.go()

    eventually(lambda: {site.status(one) for one in reports} == {FINISHED})
    done = [context.notification.notification_uuid for context in recovery.contexts]
    assert done == [one.notification_uuid for one in reversed(reports)]
    assert len({context.nova for context in recovery.contexts}) == 1  # one id for the whole run


def test_slow_recovery_holds_up_no_other_host(site, periodic_of):
    """faults 49"""
    slow = site.report(ERROR, host=site.add_host("slow").uuid)
    recovery = Recovery(held=True)
    manager = site.manager(
        lambda context, host: recovery(context, host) if host.name == "slow" else FINISHED
    )
    periodic = periodic_of(manager)

    periodic.retry_unfinished()
    quick = site.report(ERROR)
    periodic.retry_unfinished()

    eventually(lambda: site.status(quick) is FINISHED)
    recovery.wait_begun()
    assert site.status(slow) is RUNNING
    recovery.go()
    eventually(lambda: site.status(slow) is FINISHED)


def test_trouble_with_one_does_not_end_the_pass(site, periodic_of):
    """faults 48"""
    quick = site.report(ERROR)
    gone = site.report(NEW, age=100, host="no-such-host")
    manager = site.manager(Recovery())

    periodic_of(manager).retry_unfinished()

    eventually(lambda: site.status(quick) is FINISHED)
    eventually(lambda: site.status(gone) is FAILED)
    assert site.row(gone).message == "No host with id no-such-host."


def test_old_notifications_are_given_up(site, periodic_of, caplog):
    day = 86400
    expired = [site.report(status, age=day + 1) for status in (NEW, RUNNING, ERROR)]
    left = [site.report(FINISHED, age=day + 1), site.report(RUNNING, age=day - 60)]

    periodic_of(site.manager(Recovery())).expire()

    assert [site.status(one) for one in expired] == [FAILED] * 3
    assert [site.status(one) for one in left] == [FINISHED, RUNNING]
    assert f"Notification {expired[0].notification_uuid} is expired." in caplog.text


@pytest.mark.parametrize("corrected", [False, True])
def test_age_can_be_counted_from_the_receipt(site, periodic_of, corrected):
    """faults 14, 15: monitors' clocks may be wrong."""
    site.corrections = frozenset({Correction.EXPIRY_BY_RECEIPT}) if corrected else frozenset()
    day = 86400
    minute_ago, day_ago = (site.clock.utcnow() - timedelta(seconds=s) for s in (61, day + 1))
    past = site.report(RUNNING, age=99 * day, received=minute_ago)
    future = site.report(RUNNING, age=-99 * day, received=day_ago)
    lost = site.report(NEW, age=-99 * day, received=minute_ago)
    fresh = site.report(NEW, age=99 * day, host=site.add_host("h2").uuid)
    recovery = Recovery()
    manager = site.manager(recovery)
    periodic = periodic_of(manager)

    periodic.retry_unfinished()
    assert manager.wait_idle(PATIENCE)
    periodic.expire()

    tried = [context.notification.notification_uuid for context in recovery.contexts]
    assert tried == [(lost if corrected else fresh).notification_uuid]
    statuses = [site.status(one) for one in (past, future, lost, fresh)]
    wrong, right = [FAILED, RUNNING, NEW, FINISHED], [RUNNING, FAILED, FINISHED, NEW]
    assert statuses == (right if corrected else wrong)


def test_result_of_what_was_given_up_meanwhile_is_ignored(site, periodic_of):
    """D24: its engine was frozen for a day."""
    notification, recovery = site.report(ERROR, age=99999), Recovery(held=True)
    manager = site.manager(recovery)
    periodic_of(manager).retry_unfinished()
    recovery.wait_begun()
    site.set_status(notification, FAILED)

    recovery.go()

    assert manager.wait_idle(PATIENCE)
    assert site.status(notification) is FAILED


def test_what_a_live_engine_works_on_is_not_given_up(site, periodic_of):
    """faults 51"""
    works, waits = site.report(age=99999), site.report(age=99999)
    site.take(works, "alive"), site.take(waits, "alive")

    periodic_of(site.manager(Recovery())).expire()

    assert (site.status(works), site.status(waits)) == (RUNNING, NEW)


class Meanwhile:
    """A database on which something else happens once, after a read or before a write."""

    def __init__(self, database, *, after_read=None, before_write=None):
        self._database = database
        self._after_read, self._before_write = after_read, before_write

    def read(self, work):
        found = self._database.read(work)
        happens, self._after_read = self._after_read, None
        if happens is not None:
            happens()
        return found

    def write(self, work):
        if self._before_write is not None:
            self._before_write()
        return self._database.write(work)


def test_what_begins_while_old_ones_are_looked_for_is_not_given_up(site):
    notification = site.report(age=99999)
    database = Meanwhile(site.database, after_read=lambda: site.take(notification, "alive"))

    Periodic(site.conf, site.manager(Recovery()), database, site.clock).expire()

    assert site.status(notification) is RUNNING


def test_what_ends_while_it_is_given_up_keeps_its_status(site, caplog):
    notification = site.report(RUNNING, age=99999)
    database = Meanwhile(
        site.database, before_write=lambda: site.set_status(notification, FINISHED)
    )

    Periodic(site.conf, site.manager(Recovery()), database, site.clock).expire()

    assert site.status(notification) is FINISHED
    assert "is expired" not in caplog.text


def test_old_error_is_put_in_order_before_it_is_given_up(site, periodic_of, caplog):
    """Its run had died in the middle and failed when it was taken up again."""
    notification, recovery = site.report(ERROR, age=99999), Recovery()
    site.plan_move(notification)
    manager = site.manager(recovery)

    periodic_of(manager).expire()

    assert manager.wait_idle(PATIENCE)
    assert site.status(notification) is FAILED
    assert (recovery.contexts, site.journal(notification), site.held()) == ([], [], [])
    assert [vmove.status for vmove in site.vmoves(notification)] == [VMoveStatus.FAILED]
    uuid = notification.notification_uuid
    assert f"'{uuid}'. Reason: The notification is expired." in caplog.text


def test_error_in_a_task_ends_that_run_only(site, periodic_of, caplog):
    manager = site.manager(Recovery())
    periodic = periodic_of(manager, process_unfinished_notifications_interval=5)
    site.rename_table("notifications", "hidden")

    site.clock.sleep(5)
    assert periodic.look() == pytest.approx(5)

    assert "Error during MasakariManager._process_unfinished_notifications" in caplog.text
    site.rename_table("hidden", "notifications")
    notification = site.report(ERROR)
    site.clock.sleep(5)
    periodic.look()
    eventually(lambda: site.status(notification) is FINISHED)
