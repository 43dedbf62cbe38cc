"""The API's side: requests to the engines, and what they answer. Spec: rpc §3.1, §11."""

import threading
import time
import uuid
from concurrent.futures import Future
from typing import Any

from kombu.message import Message

from masakari_ng import errors
from masakari_ng.domain import Notification, RequestContext, TaskDetails
from masakari_ng.messaging import envelope, failures, objects
from masakari_ng.messaging.connection import Broker
from masakari_ng.messaging.consumer import Consumer
from masakari_ng.messaging.dispatcher import DETAILS, PROCESS
from masakari_ng.messaging.outbox import Letter, Outbox


class EngineClient:
    """Sends requests, from any thread. Its threads start with the first of them.

    Args:
        broker: where to.
        timeout: seconds that a caller waits until the broker has taken its request; a quarter of
            that once it did not take one.
        response_timeout: seconds that a caller waits for an answer. The broker drops the request
            then.
    """

    def __init__(self, broker: Broker, *, timeout: float, response_timeout: float = 60.0) -> None:
        self._broker = broker
        self._response_timeout = response_timeout
        self._outbox = Outbox(broker, timeout=timeout, name="rpc-client", timeout_away=timeout / 4)
        self._consumer: Consumer | None = None
        self._reply_queue = ""
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._expected: dict[str, Future[object]] = {}
        self._early: dict[str, object] = {}

    def process_notification(self, context: RequestContext, notification: Notification) -> None:
        """Have an engine recover from a failure.

        Raises:
            BrokerUnavailable: the broker has not taken the request in time; it may yet do so.
        """
        arguments = {"notification": objects.notification_to_wire(notification)}
        request = envelope.request(PROCESS, "1.0", arguments, context)
        self._send(request)

    def recovery_workflow_details(
        self, context: RequestContext, notification: Notification
    ) -> list[TaskDetails]:
        """Ask an engine what the tasks of a recovery have reported.

        Raises:
            BrokerUnavailable: the broker has not taken the request.
            NoAnswer: no engine has answered in time.
            NotificationNotFound: the engine does not know it.
            RemoteFailure: the engine has failed.
            BadMessage: the answer cannot be read.
        """
        arguments = {"notification": objects.notification_to_wire(notification)}
        request = envelope.request(DETAILS, "1.1", arguments, context)
        return objects.details_from_wire(self._call(request))

    def close(self) -> None:
        """End the connections and their threads; one that hangs is left behind."""
        self._outbox.close()
        with self._lock:
            self._closing.set()
        if self._consumer is not None:
            self._consumer.close()
        for answer in list(self._expected.values()):
            if not answer.done():
                answer.set_exception(errors.BrokerUnavailable("The client is closed"))

    def _send(self, request: dict[str, Any], expiration: float | None = None) -> None:
        engines = self._broker.topology.request_box()
        self._outbox.send(Letter(envelope.pack(request), engines, expiration))

    def _call(self, request: dict[str, Any]) -> object:
        deadline = time.monotonic() + self._response_timeout
        reply_queue, message_id = self._listen(), uuid.uuid4().hex
        answer = self._expected[message_id] = Future()
        try:
            request |= envelope.call_keys(message_id, reply_queue)
            self._send(request, expiration=self._response_timeout)
            return answer.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError as error:
            raise errors.NoAnswer(
                f"No engine has answered within {self._response_timeout} seconds"
            ) from error
        finally:
            self._expected.pop(message_id, None)
            self._early.pop(message_id, None)

    def _listen(self) -> str:
        """Begin to consume, unless it is done already; gives the name of the queue."""
        with self._lock:
            if self._closing.is_set():
                raise errors.BrokerUnavailable("The client is closed")
            if self._consumer is None or not self._consumer.alive:  # not alive: in a forked child
                queue = self._broker.topology.reply_queue()
                self._reply_queue = queue.name
                wait = self._closing.wait
                self._consumer = Consumer(
                    self._broker, (queue,), self._receive, name="rpc-answers", sleep=wait
                )
                self._consumer.start()
            consumer = self._consumer
        if not consumer.ready.wait(self._response_timeout):
            raise errors.BrokerUnavailable("The broker has no queue for the answer")
        return self._reply_queue

    def _receive(self, message: Message) -> None:
        """Collect, as old peers send the result and the end apart."""
        if self._consumer is not None:
            self._consumer.settle(message, Message.ack)
        reply = envelope.received(message)
        message_id, result = str(reply.get("_msg_id")), reply.get("result")
        answer = self._expected.get(message_id)
        if answer is None or answer.done():
            return
        if reply.get("failure") is not None:
            answer.set_exception(failures.rebuild(reply["failure"]))
        elif reply.get("ending"):
            answer.set_result(self._early.get(message_id) if result is None else result)
        elif result is not None:
            self._early[message_id] = result
