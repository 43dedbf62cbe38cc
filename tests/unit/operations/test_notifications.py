"""Protects that one of many equal reports is accepted, and that none waits for the broker."""

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from masakari_ng import errors
from masakari_ng.db import hosts, notifications, segments
from masakari_ng.db.paging import Page
from masakari_ng.domain import RecoveryMethod, RequestContext
from masakari_ng.messaging.client import EngineClient
from masakari_ng.messaging.connection import Broker
from masakari_ng.operations import Notifications
from tests.scraped import of
from tests.servers import free_port

CALLER = RequestContext(request_id="req-1", is_admin=True)
REPORT: dict[str, Any] = {
    "type": "COMPUTE_HOST",
    "hostname": "compute-1",
    "generated_time": "2026-03-01T10:00:00",
    "payload": {"event": "STOPPED"},
}


def add_host(session) -> None:
    segment = segments.create(
        session, name="s", service_type="COMPUTE", recovery_method=RecoveryMethod.AUTO
    )
    hosts.create(
        session,
        segment_uuid=segment.uuid,
        name="compute-1",
        type="COMPUTE",
        control_attributes="SSH",
    )


@pytest.fixture
def stored(database):
    """Adds a host; gives what lists the notifications."""
    database.write(add_host)
    return lambda: database.read(lambda session: notifications.listed(session, Page()))


def operations(conf, database, *, timeout: float = 2.0) -> Notifications:
    engine = EngineClient(Broker(conf), timeout=timeout, response_timeout=timeout)
    return Notifications(database, engine, workflows=None, window=180)


def test_one_of_many_equal_reports_is_accepted(conf, database, stored, measured):
    reports = operations(conf, database)

    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(reports.create, CALLER, REPORT) for _ in range(16)]

    refused = [answer.exception() for answer in answers if answer.exception()]
    assert len(stored()) == 1
    assert len(refused) == 15
    assert {type(error) for error in refused} == {errors.DuplicateNotification}
    assert of(measured(), "reports_refused_total") == {("duplicate", "COMPUTE_HOST"): 15}


def test_without_a_broker_the_report_is_kept_and_the_answer_comes_in_time(
    conf, database, stored, measured, caplog: pytest.LogCaptureFixture
):
    conf.set_override("transport_url", f"rabbit://guest:guest@127.0.0.1:{free_port()}/")
    reports = operations(conf, database, timeout=0.5)

    begin = time.monotonic()
    created = reports.create(CALLER, REPORT)

    assert time.monotonic() - begin < 3
    assert [found.notification_uuid for found in stored()] == [created.notification_uuid]
    warnings = [found for found in caplog.records if found.levelno == logging.WARNING]
    assert created.notification_uuid in warnings[0].getMessage()
    assert of(measured(), "casts_failed_total") == {("COMPUTE_HOST",): 1}
    assert of(measured(), "connected")[("rpc-client",)] == 0


def test_a_refused_report_leaves_nothing(conf, database, stored):
    reports = operations(conf, database)

    with pytest.raises(errors.HostNotFoundByName):
        reports.create(CALLER, {**REPORT, "hostname": "compute-2"})

    assert stored() == []


def test_without_the_database_of_the_workflows_an_engine_is_asked_for_details(
    conf, database, stored
):
    reports = operations(conf, database, timeout=0.5)
    created = reports.create(CALLER, REPORT)

    with pytest.raises(errors.NoAnswer):
        reports.details(CALLER, created)
