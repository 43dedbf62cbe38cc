"""Protects versioned notifications: our frames are upstream's, and telling disturbs nobody."""

import json
import logging
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from masakari_ng import errors
from masakari_ng.domain import RequestContext
from masakari_ng.messaging import envelope
from masakari_ng.messaging.events import Events
from masakari_ng.messaging.notifier import Notifier
from tests.servers import eventually, free_port
from tests.told import Told

_DATA = Path(__file__).parent / "data"
_FRAMES = sorted(path.name for path in _DATA.glob("notification-*.json"))
_DYNAMIC = {"message_id", "publisher_id", "timestamp", "_unique_id", "_context_timestamp"}
_GROUP = "oslo_messaging_notifications"
_CONTEXT = RequestContext(request_id="req-1")
_SUBJECT = {"name": "s", "enabled": True}


@pytest.fixture
def told() -> Told:
    return Told()


def _subject(data: Mapping[str, Any]) -> dict[str, Any]:
    """The record behind a payload."""
    fields = {
        name: datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ")
        if name.endswith(("_at", "_time")) and value
        else value
        for name, value in data.items()
        if name not in {"fault", "failover_segment"}
    }
    if "failover_segment" in data:
        fields["segment"] = _subject(data["failover_segment"]["masakari_object.data"])
    return fields


_RAISED = {
    "FailoverSegmentExists": lambda message: errors.SegmentExists(message.split()[4]),
    "HostExists": lambda message: errors.HostExists(message.split()[3]),
    "OperationalError": errors.DatabaseUnavailable,
}


def _fault(data: Mapping[str, Any]) -> Exception | str | None:
    if data["fault"] is None:
        return None
    recorded = data["fault"]["masakari_object.data"]
    text: str = recorded["exception_message"]
    if recorded["exception"] == "str":
        return text
    try:
        raise _RAISED[recorded["exception"]](text)
    except errors.MasakariError as error:
        return error


@pytest.mark.parametrize("name", _FRAMES)
def test_events_are_those_of_upstream(told: Told, name: str):
    golden = json.loads((_DATA / name).read_text())["message"]
    data = golden["payload"]["masakari_object.data"]
    context = envelope.context_from_wire(golden | {"_context_auth_token": "secret"})

    Events(told).emit(context, golden["event_type"], _subject(data), _fault(data))

    (sent,) = json.loads(json.dumps(told.sent))
    fault, expected = (each["payload"]["masakari_object.data"]["fault"] for each in (sent, golden))
    if expected and expected["masakari_object.data"]["exception"] != "str":
        # Where it was raised is our code and not theirs.
        own, theirs = fault.pop("masakari_object.data"), expected.pop("masakari_object.data")
        assert own.keys() == theirs.keys()
        assert own["exception_message"] == theirs["exception_message"]
        assert own["exception"] in {theirs["exception"], "MasakariException"}
        assert (own["module_name"], own["function_name"]) == (__name__, "_fault")
    for key in golden.keys() - _DYNAMIC:
        assert sent[key] == golden[key], key
    assert sent.keys() == golden.keys() - {"_unique_id"}
    binary = golden["publisher_id"].partition(":")[0]
    assert sent["publisher_id"].startswith(f"{binary}:")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}", sent["timestamp"])


def test_secrets_stay_here(told: Told):
    context = RequestContext(
        request_id="req-1",
        auth_token="token-1",
        service_catalog=({"type": "compute"},),
        remote_address="10.0.0.1",
        resource_uuid="r",
        is_admin_project=False,
    )

    Events(told).emit(context, "segment.create.start", _SUBJECT)

    sent = told.sent[0]
    assert [
        sent[f"_context_{key}"]
        for key in ("auth_token", "service_catalog", "remote_address", "resource_uuid")
    ] == [None, [], None, None]
    assert sent["_context_is_admin_project"] is True


def test_a_change_is_told_at_its_start_and_at_its_end(told: Told):
    with Events(told).around(_CONTEXT, "segment.update") as about:
        about(_SUBJECT)
        about(_SUBJECT)  # the transaction is repeated

    assert told.events == ["segment.update.start", "segment.update.end"]


def test_a_change_that_fails_is_told_with_the_reason(told: Told):
    def change() -> None:
        with Events(told).around(_CONTEXT, "segment.update") as about:
            about(_SUBJECT)
            raise errors.SegmentExists("s")

    with pytest.raises(errors.SegmentExists):
        change()

    assert told.events == ["segment.update.start", "segment.update.error"]
    fault = told.payload("segment.update.error")["fault"]["masakari_object.data"]
    assert (fault["exception"], fault["function_name"]) == ("FailoverSegmentExists", "change")


def test_a_change_that_is_refused_is_not_told(told: Told):
    with pytest.raises(errors.SegmentNotFound), Events(told).around(_CONTEXT, "segment.update"):
        raise errors.SegmentNotFound("s")

    assert told.events == []


def test_what_cannot_be_told_disturbs_nobody(told: Told, caplog: pytest.LogCaptureFixture):
    with Events(told).around(_CONTEXT, "host.update") as about:
        about({"segment": None})

    assert "Could not send notification to versioned_notifications" in caplog.text


def test_without_a_driver_nothing_is_told(conf: cfg.ConfigOpts):
    conf.set_override("transport_url", "nonsense")

    events = Events.from_conf(conf)
    events.emit(_CONTEXT, "segment.create.start", _SUBJECT)
    events.close()


def test_the_log_driver_writes_one_line_without_context(
    conf: cfg.ConfigOpts, caplog: pytest.LogCaptureFixture
):
    conf.set_override("driver", ["log", "noop", "nonsense"], _GROUP)
    caplog.set_level(logging.INFO)

    Events.from_conf(conf).emit(_CONTEXT, "segment.create.start", _SUBJECT)

    line = caplog.records[-1]
    assert line.name == "oslo.messaging.notification.segment.create.start"
    message = json.loads(line.getMessage())
    assert message["event_type"] == "segment.create.start"
    assert not [key for key in message if key.startswith("_")]
    assert "no driver 'nonsense'" in caplog.text


@pytest.fixture
def without_broker(conf: cfg.ConfigOpts) -> cfg.ConfigOpts:
    conf.set_override("transport_url", f"rabbit://127.0.0.1:{free_port()}/")
    conf.set_override("driver", ["messagingv2"], _GROUP)
    return conf


def test_a_broker_that_is_away_holds_up_nobody_and_what_is_too_much_is_counted(
    without_broker: cfg.ConfigOpts, caplog: pytest.LogCaptureFixture
):
    without_broker.set_override("event_buffer", 5, "masakari_ng")
    notifier = Notifier(without_broker)
    events = Events(notifier)

    for _ in range(20):
        events.emit(_CONTEXT, "segment.create.start", _SUBJECT)

    assert 14 <= notifier.dropped <= 15  # one may be on its way already
    assert caplog.text.count("Too many versioned notifications wait") == 1
    events.close()


def test_attempts_can_be_limited(without_broker: cfg.ConfigOpts, caplog: pytest.LogCaptureFixture):
    without_broker.set_override("retry", 0, _GROUP)
    events = Events.from_conf(without_broker)

    events.emit(_CONTEXT, "segment.create.start", _SUBJECT)

    eventually(lambda: "Could not send notification to versioned_notifications" in caplog.text)
    events.close()
