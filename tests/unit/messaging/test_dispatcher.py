"""Protects that each recorded call of a peer gets the recorded answer of upstream's engine."""

import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from masakari_ng import errors
from masakari_ng.domain import Notification, RequestContext, TaskDetails
from masakari_ng.messaging import envelope, failures, objects
from masakari_ng.messaging.dispatcher import Dispatcher
from tests.servers import eventually

_DATA = Path(__file__).parent / "data"
_FINAL = {"peer-call-monitored.json": "peer-reply-monitored-final.json"}
_CALLS = sorted(path.name for path in _DATA.glob("*call-*.json"))
_KNOWN_HOSTS = {"6a4c5d5c-7e34-4ec7-8497-43dc8bb54108", "983e7c4d-20a9-4be0-98bd-95bc483e3366"}


def _message(name: str) -> dict[str, Any]:
    message: dict[str, Any] = json.loads((_DATA / name).read_text())["message"]
    return message


def _neutral(value: object) -> object:
    """Without the order of changes, which means nothing, and without tracebacks."""
    if isinstance(value, dict):
        return {
            key: sorted(each) if key.endswith(".changes") else _neutral(each)
            for key, each in value.items()
            if key not in {"tb", "_unique_id"}
        }
    return [_neutral(each) for each in value] if isinstance(value, list) else value


class _Engine:
    """Knows what upstream's engine knew when the calls were recorded."""

    def __init__(self) -> None:
        self.processed: list[Notification] = []
        self.work: Future[None] | None = None

    def process_notification(
        self,
        context: RequestContext,
        notification: Notification,
        acknowledge: Callable[[], None],
    ) -> Future[None] | None:
        self.processed.append(notification)
        acknowledge()
        disabled = _message("peer-call-segment-disabled.json")["args"]["notification"]
        if notification == objects.notification_from_wire(disabled):
            raise errors.SegmentDisabled(notification.notification_uuid, notification.type)
        return self.work

    def details(self, notification: Notification) -> list[TaskDetails]:
        uuid = notification.notification_uuid
        if notification.source_host_uuid not in _KNOWN_HOSTS:
            raise errors.WorkflowDetailsUnavailable(
                f"Failed to fetch notification recovery workflow details for {uuid}"
            )
        answers = [_message(path.name)["result"] for path in _DATA.glob("reply-details-*.json")]
        return next(
            (
                objects.details_from_wire(answer)
                for answer in answers
                if answer["masakari_object.data"]["notification_uuid"] == uuid
            ),
            [],
        )


def _answer(engine: _Engine, request: dict[str, Any], *, ping: bool = False) -> dict[str, Any]:
    """The reply as it stands on the wire, its failure decoded."""
    result, failure = None, None
    try:
        result = Dispatcher(engine, engine.details, ping=ping).run(request, lambda: None)
    except Exception as error:  # noqa: BLE001 - as the server does
        failure = json.loads(failures.describe(error))
    reply = envelope.reply(request, result, None, ending=True)
    return json.loads(json.dumps(reply | {"failure": failure}))


@pytest.mark.parametrize("name", _CALLS)
def test_calls_are_answered_as_recorded(name: str):
    golden = _message(_FINAL.get(name) or name.replace("call-", "reply-"))
    failure = golden["failure"] and json.loads(golden["failure"])

    answer = _answer(_Engine(), _message(name))

    assert _neutral(answer) == _neutral(golden | {"failure": failure})
    if failure:
        assert answer["failure"]["tb"][0] == failure["tb"][0]
        assert answer["failure"]["tb"][-1] == failure["tb"][-1]


def test_a_fanout_cast_is_understood_and_an_unknown_method_is_not():
    engine = _Engine()
    run = Dispatcher(engine, engine.details, ping=False).run

    assert run(_message("peer-cast-fanout.json"), lambda: None)
    with pytest.raises(errors.UnknownMethod):
        run(_message("peer-cast-unknown-method.json"), lambda: None)


_REQUEST = {"_msg_id": "1" * 32, "version": "1.0", "method": "process_notification"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"method": None}, "TypeError"),
        ({"version": None}, "UnsupportedVersion"),
        ({"version": "1"}, "IndexError"),
        ({"version": "1.x"}, "UnsupportedVersion"),
        ({"args": []}, "AttributeError"),
        ({"args": None}, "AttributeError"),
        ({}, "TypeError"),
        ({"args": {"notification": 1}}, "AttributeError"),
        ({"method": "periodic_tasks"}, "NoSuchMethod"),
        ({"method": "oslo_rpc_server_ping"}, "NoSuchMethod"),
    ],
    ids=str,
)
def test_what_is_no_proper_request_is_answered_as_well(changes: dict[str, Any], expected: str):
    answer = _answer(_Engine(), _REQUEST | changes)

    assert answer["failure"]["class"] == expected


def test_an_answer_waits_for_what_goes_on_elsewhere_and_a_cast_does_not():
    work: Future[None] = Future()
    engine = _Engine()
    engine.work = work
    run = Dispatcher(engine, engine.details, ping=False).run
    call = _message("peer-call-monitored.json")
    cast = {key: value for key, value in call.items() if key != "_msg_id"}

    with ThreadPoolExecutor(1) as pool:
        run(cast, lambda: None)
        answer = pool.submit(run, call, lambda: None)
        eventually(lambda: len(engine.processed) == 2)
        assert not answer.done()
        work.set_result(None)

    assert answer.done()


def test_a_ping_is_answered_if_that_is_wanted():
    answer = _answer(_Engine(), _REQUEST | {"method": "oslo_rpc_server_ping"}, ping=True)

    assert (answer["result"], answer["failure"]) == ("pong", None)


def test_unexpected_errors_keep_their_names_and_ours_are_upstreams():
    told = [
        json.loads(failures.describe(error))
        for error in (KeyError("k"), errors.DatabaseUnavailable("gone"))
    ]

    assert [(each["module"], each["class"], each["kwargs"]) for each in told] == [
        ("builtins", "KeyError", {}),
        ("masakari.exception", "MasakariException", {"code": 500}),
    ]


@pytest.mark.parametrize(
    ("failure", "kind", "text"),
    [
        (
            '{"class": "NotificationNotFound", "module": "masakari.exception", "message": "m",'
            ' "tb": [], "args": ["m"], "kwargs": {"code": 404, "id": "x"}}',
            errors.NotificationNotFound,
            "No notification with id x.",
        ),
        (
            '{"class": "MasakariException", "module": "masakari.exception", "message": "m",'
            ' "tb": [], "args": ["m"], "kwargs": {"code": 500}}',
            errors.RemoteFailure,
            "The engine has failed: masakari.exception.MasakariException: m",
        ),
        ("no JSON", errors.RemoteFailure, "The engine has failed: no JSON"),
        ({"class": "X"}, errors.RemoteFailure, "The engine has failed: {'class': 'X'}"),
    ],
    ids=["not found", "known", "no JSON", "no text"],
)
def test_failures_of_engines_are_rebuilt(failure: object, kind: type[Exception], text: str):
    rebuilt = failures.rebuild(failure)

    assert (type(rebuilt), str(rebuilt)) == (kind, text)
