"""A peer that speaks through oslo.messaging itself. Prints what it gets, a line of JSON each.

Run as a program: `peer.py URL ACTION [JSON]`.
"""

import json
import sys
import threading
from typing import Any

import oslo_messaging
from oslo_config import cfg

_TOPIC = "ha_engine"


def _tell(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class _Engine:
    """Stands for an engine of upstream."""

    target = oslo_messaging.Target(version="1.1")

    def process_notification(self, context: dict[str, Any], notification: Any) -> None:
        _tell(method="process_notification", context=context, notification=notification)

    def get_notification_recovery_workflow_details(
        self, context: dict[str, Any], notification: dict[str, Any]
    ) -> dict[str, Any]:
        data = notification["masakari_object.data"]
        if data["type"] == "PROCESS":
            raise ValueError("no details of processes")
        data["recovery_workflow_details"] = []
        return notification


class _Listener:
    """Stands for whoever consumes versioned notifications."""

    def info(self, context: Any, publisher: str, event: str, payload: Any, metadata: Any) -> None:
        _tell(priority="info", publisher=publisher, event=event, payload=payload, context=context)

    def error(self, context: Any, publisher: str, event: str, payload: Any, metadata: Any) -> None:
        _tell(priority="error", publisher=publisher, event=event, payload=payload, context=context)


def _serve(conf: cfg.ConfigOpts, url: str) -> None:
    transport = oslo_messaging.get_rpc_transport(conf, url=url)
    target = oslo_messaging.Target(topic=_TOPIC, server="peer")
    server = oslo_messaging.get_rpc_server(transport, target, [_Engine()], executor="threading")
    server.start()
    _tell(ready=True)
    threading.Event().wait()


def _listen(conf: cfg.ConfigOpts, url: str) -> None:
    transport = oslo_messaging.get_notification_transport(conf, url=url)
    target = oslo_messaging.Target(topic="versioned_notifications", exchange="masakari")
    listener = oslo_messaging.get_notification_listener(
        transport, [target], [_Listener()], executor="threading"
    )
    listener.start()
    _tell(ready=True)
    threading.Event().wait()


def _ask(conf: cfg.ConfigOpts, url: str, job: dict[str, Any]) -> None:
    """Send a request as `job` says: method, version, arguments, and how."""
    transport = oslo_messaging.get_rpc_transport(conf, url=url)
    target = oslo_messaging.Target(topic=_TOPIC, version="1.0")
    how = {"version": job["version"], **job.get("how", {})}
    client = oslo_messaging.get_rpc_client(transport, target).prepare(**how)
    send = client.call if job["wait"] else client.cast
    try:
        result = send({"request_id": "req-peer"}, job["method"], **job["arguments"])
    except oslo_messaging.RemoteError as error:
        _tell(failure=error.exc_type, message=error.value)
    except (TypeError, ValueError) as error:
        _tell(failure=type(error).__name__, message=str(error))
    else:
        _tell(result=result)


def main() -> None:
    """Do what the command line says."""
    url, action, *job = sys.argv[1:]
    conf = cfg.CONF  # noqa: TID251 - the library wants this one
    conf([])
    oslo_messaging.set_transport_defaults("masakari")
    if action == "ask":
        _ask(conf, url, json.loads(job[0]))
    else:
        {"serve": _serve, "listen": _listen}[action](conf, url)


if __name__ == "__main__":
    main()
