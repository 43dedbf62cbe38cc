"""Builds the objects of the API service from its options and connects them."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from oslo_config import cfg
from oslo_log import log as oslo_log

from masakari_ng import conf as options
from masakari_ng import logs
from masakari_ng.api import app, middleware
from masakari_ng.api.middleware import Wsgi
from masakari_ng.api.policy import Policy
from masakari_ng.compute.nova import Cloud
from masakari_ng.conf import database as database_options
from masakari_ng.coordination import Locks
from masakari_ng.db.session import Database
from masakari_ng.messaging.client import EngineClient
from masakari_ng.messaging.connection import Broker
from masakari_ng.messaging.events import Events
from masakari_ng.operations import Hosts, Notifications, Segments, VMoves

API = "masakari-ng-api"
"""Name of the program, whichever server runs it."""


class Application:
    """The WSGI application of the API service.

    Args:
        wsgi: answers the requests.
        parts: what `close` ends.
    """

    def __init__(self, wsgi: Wsgi, parts: ExitStack) -> None:
        self._wsgi = wsgi
        self.close = parts.close

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        with logs.about():
            return self._wsgi(environ, start_response)


def load(arguments: Sequence[str], files: Sequence[str] | None = None) -> cfg.ConfigOpts:
    """Read the options as `conf.load` does, and begin to log.

    Raises:
        cfg.Error: they cannot be read.
    """
    conf = options.load(arguments, program=API, files=files)
    oslo_log.setup(conf, options.PROJECT)
    logs.begin()
    return conf


def application(arguments: Sequence[str]) -> Application:
    """What one worker process serves, from its own look at the options.

    Raises:
        cfg.Error: the options cannot be read.
        ConfigurationError: one of them cannot be used.
    """
    return build_api(load(arguments))


def build_api(conf: cfg.ConfigOpts) -> Application:
    """The application with these options; nothing is contacted before the first request.

    Raises:
        ConfigurationError: an option cannot be used.
    """
    with ExitStack() as parts:
        database = Database.from_conf(conf)
        parts.callback(database.close)
        engine = EngineClient(
            Broker(conf),
            timeout=conf.masakari_ng.cast_timeout,
            response_timeout=conf.rpc_response_timeout,
        )
        parts.callback(engine.close)
        events = Events.from_conf(conf)
        parts.callback(events.close)
        wsgi = app.create(
            conf,
            segments=Segments(database, events),
            hosts=Hosts(database, Cloud(conf), events),
            notifications=Notifications(
                database,
                engine,
                workflows=_workflows(conf, database, parts),
                window=conf.duplicate_notification_detection_interval,
                locks=_locks(conf, parts),
                events=events,
            ),
            vmoves=VMoves(database),
        )
        return Application(wsgi, parts.pop_all())


def set_defaults() -> None:
    """Give the options of libraries our defaults, as the tools of oslo.config want it."""
    database_options.set_defaults()
    middleware.set_defaults()


def policy_enforcer() -> Any:
    """The rules with the files of the usual configuration, as the tools of oslo.policy want it."""
    return Policy(options.load([], program=API)).enforcer


def _workflows(conf: cfg.ConfigOpts, database: Database, parts: ExitStack) -> Database | None:
    """Taskflow's tables, which commonly stand in the same schema; None: not known."""
    connection = conf.taskflow.connection
    if not connection or connection == conf.database.connection:
        return database if connection else None
    workflows = Database(connection, dict(conf.database))
    parts.callback(workflows.close)
    return workflows


def _locks(conf: cfg.ConfigOpts, parts: ExitStack) -> Locks | None:
    if not conf.coordination.backend_url:
        return None
    locks = Locks(conf.coordination.backend_url)
    parts.callback(locks.close)
    return locks
