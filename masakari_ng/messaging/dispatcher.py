"""From a request to its method and back: what the engine does for its peers. Spec: rpc §7."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol

from masakari_ng import errors
from masakari_ng.domain import Notification, RequestContext, TaskDetails
from masakari_ng.messaging import envelope, objects

PROCESS, DETAILS = "process_notification", "get_notification_recovery_workflow_details"
_VERSION = "1.1"

Acknowledge = Callable[[], None]
Details = Callable[[Notification], list[TaskDetails]]


class Handler(Protocol):
    """What the requests are made to."""

    def process_notification(
        self, context: RequestContext, notification: Notification, acknowledge: Acknowledge
    ) -> Future[None] | None:
        """Recover from a failure; what goes on elsewhere is returned, and an answer waits for it.

        Args:
            context: who reported it.
            notification: as it came.
            acknowledge: tells the broker that the message need not come again. Called from any
                thread, as soon as that is certain; a return does it too.

        Raises:
            Stopped: the process ends; unless acknowledged, the message goes to another engine.
        """


class Dispatcher:
    """Checks requests in upstream's order and runs their methods.

    Args:
        handler: recovers.
        details: what the tasks of a recovery have reported; None: this engine cannot tell.
        ping: whether it answers `oslo_rpc_server_ping`.
    """

    def __init__(self, handler: Handler, details: Details | None, *, ping: bool) -> None:
        self._handler = handler
        self._methods: dict[str, Callable[[Mapping[str, Any], Acknowledge], object]] = {
            PROCESS: self._process
        }
        if details is not None:
            self._methods[DETAILS] = partial(_tell, details)
        if ping:
            self._methods["oslo_rpc_server_ping"] = lambda _request, _acknowledge: "pong"

    def run(self, request: Mapping[str, Any], acknowledge: Acknowledge) -> object:
        """Do what is asked; gives the result for the reply. Spec: rpc §7.1.

        Raises:
            BadMessage: the request cannot be understood.
            Stopped: as `Handler.process_notification`.
        """
        method, version = request.get("method"), request.get("version", "1.0")
        if isinstance(version, str) and version.isdigit():
            raise errors.ShortVersion("list index out of range")
        if request.get("namespace") is not None or not envelope.compatible(version, _VERSION):
            raise errors.UnsupportedVersion(version, method)
        if not isinstance(method, str):
            raise errors.WrongArguments(
                f"attribute name must be string, not '{type(method).__name__}'"
            )
        if method not in self._methods:
            raise errors.UnknownMethod(method)
        return self._methods[method](request, acknowledge)

    def _process(self, request: Mapping[str, Any], acknowledge: Acknowledge) -> None:
        context, notification, _ = _decoded(PROCESS, request)
        work = self._handler.process_notification(context, notification, acknowledge)
        if work is not None and request.get("_msg_id") is not None:
            work.result()


def _tell(
    details: Details, request: Mapping[str, Any], _acknowledge: Acknowledge
) -> dict[str, Any]:
    _, notification, received = _decoded(DETAILS, request)
    return objects.with_details(received, details(notification))


def _decoded(method: str, request: Mapping[str, Any]) -> tuple[RequestContext, Notification, Any]:
    """Context and the only argument of both methods, that also as it was received."""
    arguments = request.get("args", {})
    if not isinstance(arguments, dict):
        raise errors.NotAnObject(f"'{type(arguments).__name__}' object has no attribute 'items'")
    context = envelope.context_from_wire(request)
    signature = f"MasakariManager.{method}()"
    for name in arguments:
        if name != "notification":
            raise errors.WrongArguments(f"{signature} got an unexpected keyword argument '{name}'")
    if not arguments:
        raise errors.WrongArguments(
            f"{signature} missing 1 required positional argument: 'notification'"
        )
    received = arguments["notification"]
    return context, objects.notification_from_wire(received), received
