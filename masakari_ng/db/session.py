"""The only place that reaches the database: transactions, repeats, translated errors.

A `Database` belongs to whoever made it; there is no default one, and no thread-local state.
"""

import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Self, TypeVar

import sqlalchemy
from oslo_config import cfg
from oslo_db import exception as oslo
from oslo_db.sqlalchemy import enginefacade
from pymysql import converters
from pymysql.constants import FIELD_TYPE
from sqlalchemy import event, exc
from sqlalchemy.orm import Session

from masakari_ng import errors, metrics

log = logging.getLogger(__name__)

T = TypeVar("T")

_TRANSLATION: tuple[tuple[type[Exception], type[errors.MasakariError]], ...] = (
    (oslo.DBDuplicateEntry, errors.DuplicateKey),
    (oslo.DBDeadlock, errors.DatabaseDeadlock),
    (oslo.DBConsistencyError, errors.DatabaseDeadlock),  # MariaDB's innodb_snapshot_isolation
    (oslo.DBConnectionError, errors.DatabaseUnavailable),
    (oslo.DBNonExistentDatabase, errors.DatabaseUnavailable),
    (exc.OperationalError, errors.DatabaseUnavailable),
    (exc.TimeoutError, errors.DatabaseUnavailable),  # no connection of the pool became free
)

_DEADLOCK_REPEATS = 5
_DEADLOCK_PAUSE = (1.0, 10.0)
_OUTAGE_PAUSE = (0.5, 5.0)
_SQLITE_BUSY = 30_000
# In the middle of a transaction. A machine that loses power would else keep its row locks until
# MariaDB misses it, which may take hours. MySQL skips the comment, and has nothing like it.
_LIMIT_SILENCE = "SET /*M!100300 SESSION idle_transaction_timeout = 20, */ @masakari_ng = 1"
_READING = "masakari_ng_reading"
_NO_TURN = contextlib.nullcontext()


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raise ours for theirs; the first pair that matches wins, what has no pair stays.

    Queries use it around a statement whose failure they expect; `Database` does for all others.
    """
    try:
        yield
    except tuple(theirs for theirs, _ in _TRANSLATION) as error:
        ours = next(ours for theirs, ours in _TRANSLATION if isinstance(error, theirs))
        # Only the first line: those below hold the statement with its values.
        raise ours(str(error).partition("\n")[0]) from error


class Database:
    """Runs units of work in transactions of their own. It connects at the first use.

    Args:
        connection: SQLAlchemy URL.
        options: options of `[database]` by name; those left out have oslo.db's defaults.
        patience: seconds for which work is repeated while the database is away; 0 for not at all.
        sleep: waits for a number of seconds; what it raises ends the waiting.
        answer_timeout: seconds that MariaDB gets for one answer; more than it waits for a row lock.
            None sets no limit, for statements that may take long.
    """

    def __init__(
        self,
        connection: str,
        options: Mapping[str, Any] | None = None,
        *,
        patience: float = 0.0,
        sleep: Callable[[float], None] = time.sleep,
        answer_timeout: int | None = 60,
    ) -> None:
        chosen: dict[str, Any] = {"max_retries": 10, "retry_interval": 10, **(options or {})}
        self._attempts = int(chosen["max_retries"])
        self._interval = float(chosen["retry_interval"])
        self._patience = patience
        self._sleep = sleep
        # The patient need no rule of its own for the first connection.
        self._reached = self._attempts == 0 or patience > 0
        self._facade = enginefacade.transaction_context()
        # oslo.db would wait for the first connection where no stop request can end it.
        url = _limited(connection, answer_timeout)
        self._facade.configure(**{**chosen, "connection": url, "max_retries": 0})
        self._facade.append_on_engine_create(_prepare)
        synchronous = chosen.get("synchronous_reader", True)
        self._reader = self._facade.writer if synchronous else self._facade.reader

    @classmethod
    def from_conf(
        cls,
        conf: cfg.ConfigOpts,
        *,
        patience: float = 0.0,
        sleep: Callable[[float], None] = time.sleep,
        answer_timeout: int | None = 60,
    ) -> Self:
        """The database of `[database]`."""
        options = dict(conf.database)
        return cls(
            options.pop("connection"),
            options,
            patience=patience,
            sleep=sleep,
            answer_timeout=answer_timeout,
        )

    @property
    def engine(self) -> sqlalchemy.Engine:
        """For migrations and taskflow, which bring their own transactions."""
        engine: sqlalchemy.Engine = self._facade.writer.get_engine()
        return engine

    def read(self, work: Callable[[Session], T]) -> T:
        """Run `work` in a transaction that changes nothing.

        Raises:
            DatabaseDeadlock: still, after all repeats.
            DatabaseUnavailable: no connection, or it was lost, for `patience` seconds.
        """
        return self.attempt(lambda: self._once(work, self._reader, _NO_TURN, reading=True))

    def write(
        self, work: Callable[[Session], T], *, turn: AbstractContextManager[object] = _NO_TURN
    ) -> T:
        """Run `work` in one transaction, committed when it returns, rolled back when it raises.

        `work` runs again from its start after a deadlock, and within `patience` after a lost
        connection. If that was lost at the commit, the earlier run may have been committed, so
        `work` must bear to find itself done. Changes to fixed values do; a status that is expected
        is found no more, a row with a new uuid is inserted twice, and of claims see `db/claims.py`.

        Args:
            work: gets the open transaction.
            turn: held during each run, and waited for without a connection; not while waiting for
                the database to come back.

        Raises:
            DuplicateKey: a unique key was taken and `work` did not expect it.
            DatabaseDeadlock: still, after all repeats. Spec: data-model §7.
            DatabaseUnavailable: no connection, or it was lost, for `patience` seconds.
        """
        return self.attempt(lambda: self._once(work, self._facade.writer, turn, reading=False))

    def attempt(self, run: Callable[[], T]) -> T:
        """Run what brings its own transactions, translated and repeated as `write` does.

        Raises:
            DatabaseDeadlock: still, after all repeats.
            DatabaseUnavailable: no connection, or it was lost, for `patience` seconds.
        """
        self._reach()
        deadlock_pauses = _doubling(*_DEADLOCK_PAUSE)
        outage_pauses = _doubling(*_OUTAGE_PAUSE)
        deadlocks, waited = 0, 0.0
        while True:
            begin = time.monotonic()
            try:
                with translated():
                    result = run()
                metrics.CONNECTED.set(1, "database")
                return result  # noqa: TRY300 - in else it would be harder to read
            except errors.DatabaseDeadlock as error:
                metrics.DATABASE_REPEATS.count("deadlock")
                deadlocks += 1
                if deadlocks > _DEADLOCK_REPEATS:
                    raise
                pause = next(deadlock_pauses) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
                log.warning("Transaction given up, again in %.1f s: %s", pause, error)
            except errors.DatabaseUnavailable as error:
                metrics.CONNECTED.set(0, "database")
                if waited >= self._patience:
                    raise
                metrics.DATABASE_REPEATS.count("unavailable")
                pause = next(outage_pauses)
                # Failing to connect takes time too; a simulated clock counts pauses only.
                waited += time.monotonic() - begin + pause
                log.warning("Database not available, again in %.1f s: %s", pause, error)
            self._sleep(pause)

    def close(self) -> None:
        """Close the idle connections of the pool."""
        self._facade.dispose_pool()

    def _once(
        self,
        work: Callable[[Session], T],
        facade: Any,
        turn: AbstractContextManager[object],
        *,
        reading: bool,
    ) -> T:
        with turn, Session(facade.get_engine()) as session:
            session.connection(execution_options={_READING: reading})
            done = work(session)
            if not reading:  # to close the session ends a transaction with one statement less
                session.commit()
            return done

    def _reach(self) -> None:
        """Try the first connection of the process as often as configured. Spec: data-model §7."""
        left = self._attempts
        while not self._reached:
            try:
                with translated(), self.engine.connect():
                    self._reached = True
            except errors.DatabaseUnavailable as error:
                metrics.CONNECTED.set(0, "database")
                left -= 1
                if left == 0 or not isinstance(error.__cause__, oslo.DBConnectionError):
                    raise
                log.warning("SQL connection failed. %s attempts left.: %s", left, error)
                self._sleep(self._interval)


def _limited(connection: str, seconds: int | None) -> str:
    """The URL with limits on both directions, unless it has its own."""
    url = sqlalchemy.make_url(connection)
    if seconds is None or url.drivername not in {"mysql+pymysql", "mariadb+pymysql"}:
        return connection
    limits = {"read_timeout": str(seconds), "write_timeout": str(seconds), **url.query}
    return url.set(query=limits).render_as_string(hide_password=False)


def _doubling(first: float, longest: float) -> Iterator[float]:
    while True:
        yield first
        first = min(2 * first, longest)


def _prepare(engine: sqlalchemy.Engine) -> None:
    """Keep values out of error texts; let several threads and processes use one SQLite file."""
    engine.hide_parameters = True  # the control attributes of a host may be credentials
    if engine.dialect.name in {"mysql", "mariadb"}:
        event.listen(engine, "connect", _mariadb_connected)
        event.listen(engine, "do_connect", _mariadb_connecting)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _sqlite_connected)
        event.listen(engine, "begin", _sqlite_begun)


def _mariadb_connected(connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_LIMIT_SILENCE)


def _mariadb_connecting(_dialect: object, _record: object, _words: object, options: Any) -> None:
    # PyMySQL's own reads each of the times in a list with a regular expression.
    options["conv"] = {**converters.conversions, FIELD_TYPE.DATETIME: _instant}


def _instant(text: str) -> Any:
    try:
        return datetime.fromisoformat(text)
    except ValueError:  # 0000-00-00, which has no datetime
        return converters.convert_datetime(text)


def _sqlite_connected(connection: Any, _record: object) -> None:
    connection.execute(f"PRAGMA busy_timeout = {_SQLITE_BUSY}")
    connection.execute("PRAGMA journal_mode = WAL")


def _sqlite_begun(connection: sqlalchemy.Connection) -> None:
    """Take the write lock at once, unless the transaction only reads.

    SQLite refuses, without waiting, to turn a transaction that has read into one that writes when
    somebody else has written since. oslo.db's listener has begun one that holds nothing yet.
    """
    if not connection.get_execution_options().get(_READING):
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
