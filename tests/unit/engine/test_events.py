"""Protects what is told of a recovery, and that a peer that asks learns what its tasks reported."""

import pytest

from masakari_ng import errors
from masakari_ng.db import segments
from masakari_ng.domain import Correction, NotificationStatus, NotificationType
from masakari_ng.engine.details import WorkflowDetails
from masakari_ng.engine.manager import Manager
from masakari_ng.messaging.events import Events
from tests.told import Told

from .conftest import Recovery

START, END, ERROR = (f"notification.process.{phase}" for phase in ("start", "end", "error"))
IGNORED = NotificationStatus.IGNORED


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def manager(site, told):
    """Makes one whose recoveries of all types end in the same way."""

    def make(result, *corrections) -> Manager:
        handlers = dict.fromkeys(NotificationType, Recovery(result))
        site.managers.append(
            Manager(
                site.database,
                "engine-a",
                handlers,
                site.recovery_context,
                threads=4,
                events=Events(told),
                corrections=corrections,
            )
        )
        return site.managers[-1]

    return make


@pytest.mark.parametrize(
    ("kind", "result", "events"),
    [
        ("COMPUTE_HOST", NotificationStatus.FINISHED, [START, END]),
        ("COMPUTE_HOST", errors.SkipHostRecovery("nothing to do"), [START, END]),
        ("COMPUTE_HOST", IGNORED, [START, END]),
        ("VM", IGNORED, [START]),
        ("VM", errors.IgnoreInstanceRecovery("paused"), [START, ERROR]),
        ("PROCESS", errors.HostRecoveryFailure("2 of 3 moved"), [START, ERROR]),
        ("COMPUTE_HOST", errors.ClaimLost("engine-b"), [START]),
        ("COMPUTE_HOST", errors.Stopped("stopping"), [START]),
    ],
    ids=str,
)
def test_a_recovery_is_told_at_its_start_and_at_its_end(
    *, site, manager, told, kind, result, events
):
    notification = site.report(type=NotificationType(kind))

    site.receive(manager(result), notification, "req-post")

    assert told.events == events
    assert told.payload(START)["status"] == "new"
    assert {message["_context_request_id"] for message in told.sent} == {"req-post"}
    for event in events[1:]:
        payload = told.payload(event)
        assert payload["status"] == "running"
        fault = payload["fault"] and payload["fault"]["masakari_object.data"]["exception_message"]
        assert fault == (str(result) if event == ERROR else None)


def test_an_unexpected_error_is_told_in_upstreams_words(site, manager, told):
    notification = site.report()

    site.receive(manager(RuntimeError("x")), notification)

    fault = told.payload(ERROR)["fault"]["masakari_object.data"]
    uuid = notification.notification_uuid
    assert fault["exception_message"] == (
        f"Failed to execute host failure flow for notification '{uuid}'."
    )


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (RuntimeError("x"), "RuntimeError"),
        (errors.HostRecoveryFailure("2 of 3 moved"), "HostRecoveryFailureException"),
        (errors.ReservedHostsUnavailable(), "ReservedHostsUnavailable"),
        (errors.IgnoreInstanceRecovery("paused"), "IgnoreInstanceRecoveryException"),
        (errors.CloudConflict("Conflict"), "Conflict"),
        (errors.CloudUnreachable("?"), "MasakariException"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("corrected", [False, True])
def test_error_can_be_told_as_it_was_raised(*, site, manager, told, corrected, error, name):
    """D19"""
    corrections = [Correction.EVENT_FAULTS] if corrected else []

    site.receive(manager(error, *corrections), site.report())

    fault = told.payload(ERROR)["fault"]["masakari_object.data"]
    if not corrected:
        constants = ("str", "unknown", "unknown", "NoneType: None\n")
        assert _origin(fault) == constants
        return
    assert _origin(fault)[:3] == (name, "tests.unit.engine.conftest", "__call__")
    assert fault["exception_message"] == str(error)
    assert "raise self.result" in fault["traceback"]
    assert type(error).__name__ in fault["traceback"]


def _origin(fault):
    return tuple(fault[key] for key in ("exception", "module_name", "function_name", "traceback"))


def test_nothing_is_told_of_a_disabled_segment(site, manager, told):
    notification = site.report()
    uuid = site.segment.uuid
    site.database.write(lambda session: segments.update(session, uuid, {"enabled": False}))

    with pytest.raises(errors.SegmentDisabled):
        site.receive(manager(NotificationStatus.FINISHED), notification)

    assert told.events == []


def test_details_of_a_known_host_are_there_and_those_of_another_are_refused(site):
    details = WorkflowDetails(site.database, site.database)

    assert details(site.report()) == []
    with pytest.raises(errors.WorkflowDetailsUnavailable, match="Failed to fetch notification"):
        details(site.report(host="no-such-host"))
