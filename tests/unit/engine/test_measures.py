"""Protects that an engine counts its notifications once each, and reads the rest when asked."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from masakari_ng import errors
from masakari_ng.cmd import measuring
from masakari_ng.db import claims, segments
from masakari_ng.domain import NotificationStatus, NotificationType, RequestContext
from masakari_ng.engine.periodic import Periodic
from masakari_ng.engine.takeover import Takeover
from tests.scraped import of
from tests.servers import eventually

from .conftest import Recovery

NEW, ERROR = NotificationStatus.NEW, NotificationStatus.ERROR
HOST = "COMPUTE_HOST"
CONTEXT = RequestContext(request_id="req-x")


def age_claims(site, engine, seconds):
    """The last heartbeat of an engine was so long ago."""
    sql = (
        f"UPDATE masakari_ng_claims SET heartbeat = datetime('now', '-{seconds} seconds') "
        f"WHERE engine = '{engine}'"
    )
    site.database.write(lambda session: session.execute(text(sql)))


def test_a_recovery_is_counted_while_it_runs_and_when_it_has_ended(site, measured):
    notification, recovery = site.report(), Recovery(held=True)
    manager = site.manager(recovery)

    work = manager.process_notification(CONTEXT, notification, lambda: None)
    recovery.wait_begun()
    assert of(measured(), "recoveries_running") == {(HOST,): 1}
    recovery.go()
    work.result()

    told = measured()
    assert of(told, "recoveries_running") == {(HOST,): 0}
    assert of(told, "notifications_total") == {("", "finished", HOST): 1}
    assert of(told, "since_report_seconds_count") == {(HOST, "claimed"): 1, (HOST, "recovered"): 1}


def test_a_failure_its_retry_and_the_end_of_that(site, measured):
    notification, recovery = site.report(), Recovery(errors.HostRecoveryFailure("no room"))
    manager = site.manager(recovery)
    site.receive(manager, notification, "req-1")

    manager.retry(site.row(notification), CONTEXT)
    eventually(lambda: site.status(notification) is NotificationStatus.FAILED)
    assert manager.wait_idle(20)

    told = measured()
    assert of(told, "retries_total") == {("error", HOST): 1}
    assert of(told, "notifications_total") == {("", "error", HOST): 1, ("", "failed", HOST): 1}
    assert of(told, "since_report_seconds_count") == {(HOST, "claimed"): 1}


def test_takeovers_are_counted_by_what_became_of_the_other(site, measured):
    silent, stopped = site.report(), site.report(host=site.add_host("compute-2").uuid)
    site.take(silent, "engine-z")
    claim = site.take(stopped, "engine-y")
    site.database.write(lambda session: claims.hand_over(session, claim))
    age_claims(site, "engine-z", 61)
    manager = site.manager(Recovery())

    Takeover(manager, site.database, site.clock, heartbeat=15, timeout=60).tick()
    assert manager.wait_idle(20)

    assert of(measured(), "claims_taken_over_total") == {("silent",): 1, ("stopped",): 1}


def test_what_is_ignored_or_given_up_without_a_recovery(site, measured):
    site.report(age=1_000_000)
    periodic = Periodic(site.conf, site.manager(Recovery()), site.database, site.clock)
    periodic.expire()
    disable = {"enabled": False}
    site.database.write(lambda session: segments.update(session, site.segment.uuid, disable))
    manager, disabled = site.manager(Recovery(), "engine-b"), site.report()
    for _ in range(2):  # the broker may deliver it again
        with pytest.raises(errors.SegmentDisabled):
            site.receive(manager, disabled, "req-1")

    assert of(measured(), "notifications_total") == {
        ("", "failed", HOST): 1,
        ("", "ignored", HOST): 1,
    }


def test_the_time_is_that_since_the_report(site, measured):
    now = datetime.now(UTC).replace(tzinfo=None)
    old = replace(site.report(), created_at=now - timedelta(seconds=90))

    site.receive(site.manager(Recovery()), old, "req-1")

    assert 90 <= of(measured(), "since_report_seconds_sum")[HOST, "claimed"] < 100


def test_what_waits_in_the_database(site, measured):
    now = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    site.report(received=now - timedelta(seconds=100))
    site.report(received=now - timedelta(seconds=40))
    site.report(ERROR, type=NotificationType.VM)
    site.report(NotificationStatus.FINISHED)
    site.take(site.report(host=site.add_host("compute-2").uuid), "engine-z")
    left = site.take(site.report(host=site.add_host("compute-3").uuid), "engine-y")
    site.database.write(lambda session: claims.hand_over(session, left))
    age_claims(site, "engine-z", 70)

    found = {
        (metric.name.removeprefix("masakari_ng_"), *labels): value
        for metric, value, labels in site.database.read(measuring.samples)
    }

    oldest = found.pop(("oldest_notification_seconds", "new"))
    assert 100 <= oldest < 110
    assert 70 <= found.pop(("claim_silence_seconds",)) < 80
    assert found.pop(("oldest_notification_seconds", "running")) < 10
    assert found.pop(("oldest_notification_seconds", "error")) < 10
    assert found == {
        ("notifications_unfinished", HOST, "new", ""): 2,
        ("notifications_unfinished", HOST, "running", ""): 2,
        ("notifications_unfinished", "VM", "error", ""): 1,
        ("claims", "working"): 1,
        ("claims", "waiting"): 0,
        ("claims", "left"): 1,
        ("segment_info", site.segment.uuid, "rack"): 1,
    }


@pytest.mark.parametrize("on", [True, False])
def test_only_the_first_request_to_nova_is_measured(site, request, on):
    told = request.getfixturevalue("measured") if on else dict
    given = []
    nova = measuring.first_request(measuring.Nova(lambda: given.append(1)), site.report())

    nova.connect()
    nova.connect()

    assert len(given) == 2
    count = {(HOST, "first_request"): 1} if on else {}
    assert of(told(), "since_report_seconds_count") == count
