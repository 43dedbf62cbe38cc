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
        timeout: seconds that a caller waits until the broker has taken its request.
        response_timeout: seconds that a caller waits for an answer. The broker drops the request
            then.
    """

    def __init__(self, broker: Broker, *, timeout: float, response_timeout: float = 60.0) -> None:
        self._response_timeout = response_timeout
        self._outbox = Outbox(
            broker, broker.topology.request_box, timeout=timeout, name="rpc-client"
        )
        self._answers = _Answers(broker)

    def process_notification(self, context: RequestContext, notification: Notification) -> None:
        """Have an engine recover from a failure.

        Args:
            context: who reported it.
            notification: as it is stored.

        Raises:
            BrokerUnavailable: the broker has not taken the request in time; it may yet do so.
        """
        arguments = {"notification": objects.notification_to_wire(notification)}
        request = envelope.request(PROCESS, "1.0", arguments, context)
        self._outbox.send(Letter(envelope.pack(request)))

    def recovery_workflow_details(
        self, context: RequestContext, notification: Notification
    ) -> list[TaskDetails]:
        """Ask an engine what the tasks of a recovery have reported.

        Args:
            context: who asks.
            notification: as it is stored.

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
        self._answers.close()

    def _call(self, request: dict[str, Any]) -> object:
        deadline = time.monotonic() + self._response_timeout
        reply_queue = self._answers.listen(self._response_timeout)
        message_id = uuid.uuid4().hex
        answer = self._answers.expect(message_id)
        try:
            request |= envelope.call_keys(message_id, reply_queue)
            self._outbox.send(Letter(envelope.pack(request), expiration=self._response_timeout))
            return answer.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError as error:
            raise errors.NoAnswer(
                f"No engine has answered within {self._response_timeout} seconds"
            ) from error
        finally:
            self._answers.forget(message_id)


class _Answers:
    """The reply queue of this process, and who waits for what."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._queue = ""
        self._consumer: Consumer | None = None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._expected: dict[str, Future[object]] = {}
        self._early: dict[str, object] = {}

    def listen(self, timeout: float) -> str:
        """Begin to consume, unless it is done already; gives the name of the queue.

        Raises:
            BrokerUnavailable: there is no broker within `timeout` seconds.
        """
        with self._lock:
            if self._consumer is None or not self._consumer.alive:  # not alive: in a forked child
                queue = self._broker.topology.reply_queue()
                self._queue = queue.name
                self._consumer = Consumer(
                    self._broker,
                    (queue,),
                    self._receive,
                    name="rpc-answers",
                    sleep=self._closing.wait,
                )
                self._consumer.start()
            consumer = self._consumer
        if not consumer.ready.wait(timeout):
            raise errors.BrokerUnavailable("The broker has no queue for the answer")
        return self._queue

    def expect(self, message_id: str) -> "Future[object]":
        answer: Future[object] = Future()
        self._expected[message_id] = answer
        return answer

    def forget(self, message_id: str) -> None:
        self._expected.pop(message_id, None)
        self._early.pop(message_id, None)

    def close(self) -> None:
        self._closing.set()
        if self._consumer is not None:
            self._consumer.close()

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
