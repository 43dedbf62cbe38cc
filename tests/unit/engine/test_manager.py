"""Protects that each notification is recovered once and ends in a status, whatever happens."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from masakari_ng import errors
from masakari_ng.db import claims, journal, segments
from masakari_ng.domain import (
    Claim,
    Correction,
    NotificationStatus,
    NotificationType,
    RequestContext,
    VMoveStatus,
)
from tests.servers import eventually
from tests.simulated_clock import SimulatedClock

from .conftest import PATIENCE, Recovery

NEW = NotificationStatus.NEW
RUNNING = NotificationStatus.RUNNING
ERROR = NotificationStatus.ERROR
FAILED = NotificationStatus.FAILED
IGNORED = NotificationStatus.IGNORED
FINISHED = NotificationStatus.FINISHED

CONTEXT = RequestContext(request_id="req-x")


def test_new_notification_is_recovered(site):
    notification, recovery = site.report(), Recovery()

    acknowledged = site.receive(site.manager(recovery), notification, "req-post")

    (context,) = recovery.contexts
    assert acknowledged == 1
    assert context.nova == "req-post"
    assert context.notification.status is RUNNING
    assert not context.resumed
    assert site.status(notification) is FINISHED
    assert site.held() == []


def test_message_is_acknowledged_before_the_recovery(site):
    notification, recovery = site.report(), Recovery(held=True)
    manager, acknowledged = site.manager(recovery), threading.Event()

    work = manager.process_notification(CONTEXT, notification, acknowledged.set)
    recovery.wait_begun()
    assert acknowledged.is_set()
    assert site.status(notification) is RUNNING
    assert not work.done()
    recovery.go()

    work.result(PATIENCE)
    assert site.status(notification) is FINISHED


class Refusing:
    """A database that refuses the first transaction."""

    def __init__(self, database):
        self.read, self._write = database.read, database.write
        self._refused = False

    def write(self, work):
        if self._refused:
            return self._write(work)
        self._refused = True
        raise errors.DatabaseUnavailable("away")


def test_message_is_not_acknowledged_before_it_is_claimed(site):
    notification, recovery, acknowledged = site.report(), Recovery(), threading.Event()
    manager = site.manager(recovery, database=Refusing(site.database))

    with pytest.raises(errors.DatabaseUnavailable):
        manager.process_notification(CONTEXT, notification, acknowledged.set)

    assert not acknowledged.is_set()
    assert site.receive(manager, notification) == 1  # as when the message comes again
    assert site.status(notification) is FINISHED


def test_all_messages_are_claimed_at_once_and_some_are_worked_on(site):
    """Else other engines, and the periodic task, would not know of those that wait here."""
    reports = [site.report(host=site.add_host(f"host-{number}").uuid) for number in range(5)]
    recovery, acknowledged = Recovery(held=True), []
    manager = site.manager(recovery, threads=2)

    for report in reports:
        manager.process_notification(CONTEXT, report, lambda: acknowledged.append(True))
    recovery.wait_begun()
    recovery.wait_begun()

    assert len(acknowledged) == len(site.held()) == 5
    assert len(recovery.contexts) == 2
    assert [site.status(report) for report in reports] == [RUNNING, RUNNING, NEW, NEW, NEW]
    recovery.go()
    eventually(lambda: {site.status(report) for report in reports} == {FINISHED})
    assert {context.nova for context in recovery.contexts} == {CONTEXT.request_id}


def test_retry_is_left_to_a_later_run_where_no_thread_is_free(site):
    failed, recovery = site.report(ERROR, host=site.add_host("compute-2").uuid), Recovery(held=True)
    manager = site.manager(recovery, threads=1)
    manager.process_notification(CONTEXT, site.report(), lambda: None)
    recovery.wait_begun()

    manager.retry(failed, CONTEXT)

    assert site.status(failed) is ERROR
    assert len(site.held()) == 1
    recovery.go()


@pytest.fixture
def events(site):
    """Report a failure of the host, and of instances on it."""

    def report(instance):
        if instance == "host":
            return site.report()
        payload = {"instance_uuid": instance}
        return site.report(type=NotificationType.VM, payload=payload)

    return report


SIDE_BY_SIDE = {Correction.PARALLEL_INSTANCE_RECOVERY}


@pytest.mark.parametrize(
    "case",
    [
        ("vm-1", "vm-2", (), False),
        ("vm-1", "host", (), False),
        ("vm-1", "vm-2", SIDE_BY_SIDE, True),
        ("vm-1", "host", SIDE_BY_SIDE, True),
        ("vm-1", "vm-1", SIDE_BY_SIDE, False),
        ("host", "vm-1", SIDE_BY_SIDE, False),
        ("host", "host", SIDE_BY_SIDE, False),
    ],
)
def test_instances_are_recovered_side_by_side_where_that_is_corrected(site, events, case):
    """An instance never is while its whole host is."""
    first, second, corrections, both = case
    recovery, kinds = Recovery(held=True), (NotificationType.VM, NotificationType.COMPUTE_HOST)
    manager = site.manager(recovery, kinds=kinds, corrections=corrections)
    reports = [events(first), events(second)]

    for report in reports:
        manager.process_notification(CONTEXT, report, lambda: None)
    recovery.wait_begun()

    assert [site.status(report) for report in reports] == [RUNNING, RUNNING if both else NEW]
    recovery.go()
    eventually(lambda: {site.status(report) for report in reports} == {FINISHED})
    assert len(recovery.contexts) == 2
    assert site.held() == []


def test_disabled_segment_is_ignored_with_a_message(site, caplog):
    """faults 89"""
    uuid = site.segment.uuid
    site.database.write(lambda session: segments.update(session, uuid, {"enabled": False}))
    notification, recovery = site.report(), Recovery()

    acknowledged: list[bool] = []
    with pytest.raises(errors.SegmentDisabled):  # which tells a caller that waits for an answer
        site.manager(recovery).process_notification(
            CONTEXT, notification, lambda: acknowledged.append(True)
        )

    row = site.row(notification)
    assert (acknowledged, recovery.contexts) == ([True], [])
    assert row.status is IGNORED
    assert row.message == "Recovery aboart: the segment HA is disabled."
    assert "exits with status" not in caplog.text  # it never was `running`


def test_removed_host_ends_with_a_reason(site):
    notification = site.report(host="no-such-host")

    assert site.receive(site.manager(Recovery()), notification) == 1

    row = site.row(notification)
    assert (row.status, row.message) == (ERROR, "No host with id no-such-host.")


@pytest.mark.parametrize("status", [RUNNING, ERROR, FAILED, IGNORED, FINISHED])
def test_what_is_not_new_is_skipped(site, status, caplog):
    notification, recovery = site.report(status), Recovery()

    acknowledged = site.receive(site.manager(recovery), notification)

    assert (acknowledged, recovery.contexts) == (1, [])
    assert site.status(notification) is status
    assert "skipped to avoid recovering from failure twice" in caplog.text


def test_redelivered_message_is_skipped(site):
    notification, recovery = site.report(), Recovery(held=True)
    manager = site.manager(recovery)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(site.receive, manager, notification)
        recovery.wait_begun()
        here = site.receive(manager, notification)
        elsewhere = site.receive(site.manager(recovery, "engine-b"), notification)
        recovery.go()

    assert (here, elsewhere) == (1, 1)
    assert len(recovery.contexts) == 1


def test_notifications_of_a_host_wait_without_a_thread(site):
    first, second, third = site.report(), site.report(), site.report()
    elsewhere = site.report(host=site.add_host("compute-2").uuid)
    recovery = Recovery(held=True)
    manager = site.manager(recovery)

    with ThreadPoolExecutor(2) as pool:
        pool.submit(site.receive, manager, first, "req-1")
        recovery.wait_begun()
        assert site.receive(manager, third, "req-3") == 1  # returns at once
        assert site.receive(manager, second, "req-2") == 1
        assert site.status(second) is NEW
        pool.submit(site.receive, manager, elsewhere, "req-4")
        recovery.wait_begun()
        recovery.go()

    everything = first, second, third, elsewhere
    eventually(lambda: {site.status(one) for one in everything} == {FINISHED})
    assert [one.nova for one in recovery.contexts] == ["req-1", "req-4", "req-3", "req-2"]


class Releasing:
    """A database on which another recovery ends just after a claim has had to wait for it."""

    def __init__(self, database, other):
        self.read = database.read
        self._database, self._other = database, other

    def write(self, work):
        done = self._database.write(work)
        if isinstance(done, Claim) and not done.working:
            self._database.write(lambda session: claims.release(session, self._other))
        return done


def test_host_that_becomes_free_meanwhile_is_not_waited_for(site):
    """Without waiting for the next heartbeat."""
    other, notification, recovery = site.take(site.report(), "engine-b"), site.report(), Recovery()
    manager = site.manager(recovery, database=Releasing(site.database, other))

    site.receive(manager, notification)

    assert site.status(notification) is FINISHED


@pytest.mark.parametrize(
    ("raised", "status", "message"),
    [
        (errors.SkipHostRecovery("nothing there"), FINISHED, None),
        (errors.HostRecoveryFailure("not all moved"), ERROR, None),
        (errors.CloudUnreachable("refused"), ERROR, None),
        (errors.HostNotFound("h"), ERROR, "No host with id h."),
        (errors.LockAlreadyAcquired("compute-9"), ERROR, None),
        (errors.SkipInstanceRecovery("not HA-enabled"), FINISHED, None),
        (errors.IgnoreInstanceRecovery("paused"), IGNORED, None),
        (KeyError("a bug"), ERROR, None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_every_end_is_a_status(site, raised, status, message):
    """Only the journal of an error is kept: its retry must know which locks are ours."""
    notification = site.report()
    site.begin_move(notification)

    site.receive(site.manager(Recovery(raised)), notification)

    row = site.row(notification)
    assert (row.status, row.message) == (status, message)
    assert site.held() == []
    assert len(site.journal(notification)) == (status is ERROR)


def test_message_tells_the_cause_until_a_retry_succeeds_where_that_is_corrected(site):
    """faults 86"""
    site.corrections = frozenset({Correction.ERROR_TEXTS})
    notification, gone = site.report(), errors.ComputeServiceNotFound("compute-1")

    site.receive(site.manager(Recovery(gone)), notification)
    failed = site.row(notification)
    manager = site.manager(Recovery(), "engine-b")
    manager.retry(failed, CONTEXT)

    assert (failed.status, failed.message) == (ERROR, str(gone))
    assert manager.wait_idle(PATIENCE)
    finished = site.row(notification)
    assert (finished.status, finished.message) == (FINISHED, None)


@pytest.mark.parametrize(
    ("result", "after"),
    [(FINISHED, FINISHED), (errors.CloudUnreachable("503"), FAILED), (IGNORED, IGNORED)],
    ids=["finished", "error", "ignored"],
)
def test_retry_goes_on_with_what_was_begun_and_leaves_nothing(site, result, after):
    """A resumed recovery that fails early must neither lose its locks nor move twice."""
    notification = site.report()
    site.begin_move(notification)
    site.receive(site.manager(Recovery(errors.CloudUnreachable("503"))), notification)
    recovery = Recovery(result)
    manager = site.manager(recovery, "engine-b")

    manager.retry(site.row(notification), CONTEXT)

    assert manager.wait_idle(PATIENCE)
    assert [context.resumed for context in recovery.contexts] == [True]
    assert site.status(notification) is after
    (vmove,) = site.vmoves(notification)
    assert (vmove.status, site.journal(notification)) == (VMoveStatus.FAILED, [])
    assert vmove.message


class Unlocking:
    """Stands for Nova where only the unlocks are left."""

    def __init__(self, error=None):
        self.error = error
        self.calls = 0

    def unlock(self, uuid):
        self.calls += 1
        if self.error:
            raise self.error


def lock(site, notification):
    """What an engine leaves that dies after it has locked the instance."""
    site.begin_move(notification)
    (entry,) = site.journal(notification)
    site.database.write(lambda session: journal.update(session, entry.vmove_uuid, locked=True))


@pytest.mark.parametrize(
    "error", [errors.CloudUnreachable("503"), KeyError("a bug")], ids=["no Nova", "bug"]
)
def test_lock_that_cannot_be_released_does_not_keep_the_outcome(site, error):
    nova, notification = Unlocking(error), site.report()
    site.tools["nova"] = nova
    lock(site, notification)
    recovery = Recovery()

    site.receive(site.manager(recovery), notification)

    assert site.status(notification) is FINISHED
    assert (site.held(), site.journal(notification)) == ([], [])
    assert nova.calls > 1
    assert "The instance is still locked" in site.vmoves(notification)[0].message


class Erring(SimulatedClock):
    """What clearing away needs first, with a fault of any kind."""

    def __init__(self, error):
        super().__init__()
        self._error = error

    def utcnow(self):
        raise self._error


@pytest.mark.parametrize(
    ("error", "status", "claims_left"),
    [(KeyError("a bug"), FINISHED, 0), (errors.DatabaseUnavailable("away"), RUNNING, 1)],
    ids=["bug", "no database"],
)
def test_clearing_away_does_not_run_a_recovery_again_and_again(site, error, status, claims_left):
    """Only where the database was away somebody has to come back."""
    notification, recovery = site.report(), Recovery()
    site.tools["clock"] = Erring(error)
    lock(site, notification)
    manager = site.manager(recovery)

    site.receive(manager, notification)
    manager.beat()

    assert manager.wait_idle(PATIENCE)
    assert len(recovery.contexts) == 1
    assert site.status(notification) is status
    assert len(site.handed_over()) == claims_left


def test_retry_of_moves_that_nothing_was_done_for_begins_anew(site):
    """As after a failure of the reserved host; it may need another choice of instances."""
    notification = site.report()
    site.plan_move(notification)

    site.receive(site.manager(Recovery(errors.CloudUnreachable("503"))), notification)

    assert site.status(notification) is ERROR
    assert site.journal(notification) == []


def test_vanished_notification_is_let_go(site):
    notification = site.report()
    manager = site.manager(Recovery())
    site.take(notification, "engine-a")
    site.database.write(lambda session: session.execute(text("DELETE FROM notifications")))

    manager.beat()

    assert manager.wait_idle(PATIENCE)
    assert site.held() == []


def test_type_without_a_recovery_ends_in_error(site):
    notification = site.report(type=NotificationType.VM)

    site.receive(site.manager(Recovery()), notification)

    assert site.status(notification) is ERROR


@pytest.mark.parametrize(
    "raised",
    [errors.Stopped("SIGTERM"), errors.DatabaseUnavailable("away"), errors.DatabaseDeadlock("")],
    ids=lambda value: type(value).__name__,
)
def test_interrupted_recovery_is_left_as_it_is(site, raised):
    notification = site.report()
    site.plan_move(notification)

    site.receive(site.manager(Recovery(raised)), notification)

    (left,) = site.handed_over()
    assert left.notification_uuid == notification.notification_uuid
    assert site.status(notification) is RUNNING
    assert len(site.journal(notification)) == 1


def test_outcome_of_a_lost_claim_is_not_stored(site, caplog):
    notification, recovery = site.report(), Recovery(held=True)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(site.receive, site.manager(recovery), notification)
        recovery.wait_begun()
        (claim,) = site.held()
        site.database.write(lambda session: claims.take_over(session, claim, "engine-b", -5))
        recovery.go()

    assert site.status(notification) is RUNNING
    assert len(site.held("engine-b")) == 1
    assert "taken over by another engine" in caplog.text


@pytest.mark.parametrize("before", [NEW, ERROR])
@pytest.mark.parametrize(
    ("result", "after"),
    [(FINISHED, FINISHED), (errors.HostRecoveryFailure("no"), FAILED), (IGNORED, IGNORED)],
    ids=["finished", "error", "ignored"],
)
def test_retry_is_the_last_one(site, before, result, after, caplog):
    notification = site.report(before)
    manager = site.manager(Recovery(result))

    manager.retry(notification, CONTEXT)

    assert manager.wait_idle(PATIENCE)
    assert site.status(notification) is after
    line = f"Notification {notification.notification_uuid} exits with status: failed."
    assert (line in caplog.text) == (after is FAILED)


def test_retry_that_had_to_wait_is_the_last_one_too(site):
    first, second = site.report(), site.report(ERROR)
    recovery = Recovery(errors.HostRecoveryFailure("no"), held=True)
    manager = site.manager(recovery)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(site.receive, manager, first)
        recovery.wait_begun()
        manager.retry(second, CONTEXT)
        assert site.status(second) is ERROR
        recovery.go()

    eventually(lambda: (site.status(first), site.status(second)) == (ERROR, FAILED))


class Unnoticed:
    """A database none of whose commits is noticed, so that each transaction runs once more."""

    def __init__(self, database):
        self.read = database.read
        self._write = database.write

    def write(self, work):
        self._write(work)
        return self._write(work)


def test_unnoticed_commits_lose_nothing(site, caplog):
    """The one that stores the outcome, too: what waits for the host follows at once."""
    first, second = site.report(), site.report()
    recovery = Recovery(held=True)
    manager = site.manager(recovery, database=Unnoticed(site.database))
    caplog.set_level("INFO")

    with ThreadPoolExecutor(1) as pool:
        pool.submit(site.receive, manager, first)
        recovery.wait_begun()
        site.receive(manager, second)
        recovery.go()

    eventually(lambda: {site.status(one) for one in (first, second)} == {FINISHED})
    assert site.held() == []
    assert len(recovery.contexts) == 2
    assert f"Notification {first.notification_uuid} exits with status: finished." in caplog.text
    assert "left for later" not in caplog.text


def test_claim_that_no_thread_works_on_is_taken_up(site):
    """As after a commit whose answer was lost."""
    notification, recovery = site.report(), Recovery()
    manager = site.manager(recovery)
    site.take(notification, "engine-a")

    manager.beat()

    assert manager.wait_idle(PATIENCE)
    assert [context.resumed for context in recovery.contexts] == [True]
    assert site.status(notification) is FINISHED


def test_recovery_that_was_begun_before_is_never_begun_anew(site):
    """As when a message comes again that this engine has taken and has no memory of."""
    notification, recovery = site.report(), Recovery()
    site.plan_move(notification)

    site.receive(site.manager(recovery), notification)

    assert [context.resumed for context in recovery.contexts] == [True]


def test_stopping_manager_begins_nothing(site):
    waiting, late = site.report(), site.report()
    recovery = Recovery(held=True)
    manager = site.manager(recovery)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(site.receive, manager, site.report())
        recovery.wait_begun()
        site.receive(manager, waiting)
        manager.drain()
        site.receive(manager, late)
        recovery.go()
        assert manager.wait_idle(PATIENCE)
    manager.close()

    assert len(recovery.contexts) == 1
    assert (site.status(waiting), site.status(late)) == (NEW, NEW)
    assert len(site.handed_over()) == 2


def test_stopping_manager_leaves_what_waits_at_once(site):
    """Also where recoveries that go on for long occupy every thread."""
    waiting, recovery = site.report(), Recovery(held=True)
    manager = site.manager(recovery, threads=1)
    manager.process_notification(CONTEXT, site.report(), lambda: None)
    recovery.wait_begun()
    site.receive(manager, waiting)

    manager.drain()

    eventually(lambda: len(site.handed_over()) == 1)
    (left,) = site.handed_over()
    assert left.notification_uuid == waiting.notification_uuid
    recovery.go()
