"""Builds the objects of the API service from its options and connects them."""

from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log as oslo_log

from masakari_ng import conf as options
from masakari_ng.api import app
from masakari_ng.api.middleware import Wsgi
from masakari_ng.compute.nova import Cloud
from masakari_ng.db.session import Database
from masakari_ng.messaging.client import EngineClient
from masakari_ng.messaging.connection import Broker
from masakari_ng.operations import Hosts, Notifications, Segments, VMoves

API = "masakari-ng-api"
"""Name of the program, whichever server runs it."""


def application(arguments: Sequence[str], files: Sequence[str] | None = None) -> Wsgi:
    """What one process serves: reads the options as `conf.load` does, begins to log, and builds.

    Raises:
        cfg.Error: the options cannot be read.
        ConfigurationError: one of them cannot be used.
    """
    conf = options.load(arguments, program=API, files=files)
    oslo_log.setup(conf, options.PROJECT)
    return build_api(conf)


def build_api(conf: cfg.ConfigOpts) -> Wsgi:
    """The WSGI application of the API service; nothing is contacted before the first request.

    Raises:
        ConfigurationError: an option cannot be used.
    """
    database = Database.from_conf(conf)
    return app.create(
        conf,
        segments=Segments(database),
        hosts=Hosts(database, Cloud(conf)),
        notifications=Notifications(
            database,
            EngineClient(Broker(conf), timeout=conf.masakari_ng.cast_timeout),
            workflows=_workflows(conf, database),
            window=conf.duplicate_notification_detection_interval,
        ),
        vmoves=VMoves(database),
    )


def _workflows(conf: cfg.ConfigOpts, database: Database) -> Database | None:
    """Taskflow's tables, which commonly stand in the same schema; None: not known."""
    connection = conf.taskflow.connection
    if not connection or connection == conf.database.connection:
        return database if connection else None
    return Database(connection, dict(conf.database))
