"""The only place that runs flows and knows how taskflow keeps them. Spec: recovery §10."""

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any

from taskflow import engines, exceptions, formatters
from taskflow.flow import Flow
from taskflow.listeners.logging import DynamicLoggingListener
from taskflow.persistence import models
from taskflow.persistence.backends import impl_sqlalchemy

from masakari_ng import errors
from masakari_ng.db.session import Database

log = logging.getLogger(__name__)


class FlowRunner:
    """Runs flows one task after the other and keeps their states in taskflow's tables.

    Args:
        taskflow_database: where these are; its patience carries a flow over an outage.
    """

    def __init__(self, taskflow_database: Database) -> None:
        self._backend = _Backend(taskflow_database)

    def run(
        self, flow: Flow, *, action: str, notification_uuid: str, store: Mapping[str, object]
    ) -> None:
        """Run a flow to its end.

        Args:
            flow: what to do.
            action: name of the notification's logbook, made with the first flow.
            notification_uuid: uuid of the logbook.
            store: what the tasks require.

        Raises:
            Exception: whatever left a task, as it was.
            DatabaseUnavailable: the states could not be kept for as long as the patience lasts.
        """
        engine = engines.load(
            flow,
            engine="serial",
            store=dict(store),
            backend=self._backend,
            book=self._logbook(action, notification_uuid),
        )
        with DynamicLoggingListener(engine, log=log, fail_formatter=_FailureText(engine)):
            engine.run()

    def _logbook(self, action: str, uuid: str) -> Any:
        connection = self._backend.get_connection()
        try:
            # Lazy: its earlier flows are of no use here, and would all be written again.
            return connection.get_logbook(uuid, lazy=True)
        except exceptions.NotFound:
            return connection.save_logbook(models.LogBook(action, uuid))


class _FailureText(formatters.FailureFormatter):
    """No traceback for what is no fault."""

    def format(self, fail: Any, atom_matcher: Any) -> tuple[Any, str]:
        if fail.check(errors.MasakariError):
            return None, str(fail.exception_str)
        exc_info, text = super().format(fail, atom_matcher)
        return exc_info, text


class _Backend(impl_sqlalchemy.SQLAlchemyBackend):
    """taskflow's own, on our engine."""

    def __init__(self, database: Database) -> None:
        super().__init__({}, engine=database.engine)
        self._connection = _Connection(self, self._upgrade_lock, database)

    def get_connection(self) -> "_Connection":
        # One serves all: it has no state, and a new one describes its tables anew, so that no
        # statement is found in SQLAlchemy's cache. Nor is it tried first whether the database is
        # there: the library would not wait for it.
        return self._connection


class _Connection(impl_sqlalchemy.Connection):
    """Repeats while the database is away, which taskflow does not: it does not know our errors."""

    def __init__(self, backend: _Backend, upgrade_lock: Any, database: Database) -> None:
        super().__init__(backend, upgrade_lock)
        self._attempt: Callable[[Callable[[], Any]], Any] = database.attempt

    def get_logbook(self, book_uuid: str, lazy: bool = False) -> Any:
        return self._attempt(functools.partial(super().get_logbook, book_uuid, lazy=lazy))

    def save_logbook(self, book: Any) -> Any:
        return self._attempt(functools.partial(super().save_logbook, book))

    def update_flow_details(self, flow_detail: Any) -> Any:
        return self._attempt(functools.partial(super().update_flow_details, flow_detail))

    def update_atom_details(self, atom_detail: Any) -> Any:
        return self._attempt(functools.partial(super().update_atom_details, atom_detail))
