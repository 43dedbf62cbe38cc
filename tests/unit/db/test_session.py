"""Protects transactions: what is committed, repeated, translated, and use of one file by many."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy
from oslo_db import exception as oslo
from sqlalchemy import exc, text

from masakari_ng import errors
from masakari_ng.db import migrate
from masakari_ng.db.session import Database, translated

_CLOSED = "mysql+pymysql://nobody@127.0.0.1:1/none"
_INSERT = text("INSERT INTO masakari_ng_intake VALUES (:host, 'VM', NULL)")
_COUNT = text("SELECT count(*) FROM masakari_ng_intake")


class Pauses(list):
    """Remembers how long somebody wanted to sleep."""

    def sleep(self, seconds):
        self.append(seconds)


@pytest.fixture
def pauses():
    return Pauses()


def _database(connection, pauses, **options):
    return Database(connection, options, sleep=pauses.sleep)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (oslo.DBDuplicateEntry(), errors.DuplicateKey),
        (oslo.DBDeadlock(), errors.DatabaseDeadlock),
        (oslo.DBConsistencyError(), errors.DatabaseDeadlock),
        (oslo.DBConnectionError(), errors.DatabaseUnavailable),
        (oslo.DBNonExistentDatabase("gone"), errors.DatabaseUnavailable),
        (exc.OperationalError("SELECT secret", {}, Exception("1040")), errors.DatabaseUnavailable),
        (exc.TimeoutError("pool"), errors.DatabaseUnavailable),
    ],
    ids=lambda value: type(value).__name__,
)
def test_library_errors_become_ours(theirs, ours):
    with pytest.raises(ours) as raised, translated():
        raise theirs

    assert raised.value.__cause__ is theirs
    assert "secret" not in str(raised.value)


def test_an_unknown_error_stays_what_it_is():
    with pytest.raises(oslo.DBDataError), translated():
        raise oslo.DBDataError


def test_write_commits_what_returns_and_rolls_back_what_raises(database):
    database.write(lambda session: session.execute(_INSERT, {"host": "kept"}))

    with pytest.raises(ZeroDivisionError):
        database.write(lambda session: (session.execute(_INSERT, {"host": "lost"}), 1 / 0))

    assert database.read(lambda session: session.scalar(_COUNT)) == 1


def test_read_changes_nothing_and_a_taken_key_is_told(database):
    database.write(lambda session: session.execute(_INSERT, {"host": "one"}))

    with pytest.raises(errors.DuplicateKey):
        database.write(lambda session: session.execute(_INSERT, {"host": "one"}))


def test_a_deadlock_is_repeated_five_times_with_growing_pauses(conf, database, pauses):
    database = _database(conf.database.connection, pauses)
    runs = []

    def work(session):
        session.execute(_INSERT, {"host": str(len(runs))})
        runs.append(1)
        raise oslo.DBDeadlock

    with pytest.raises(errors.DatabaseDeadlock):
        database.write(work)

    assert len(runs) == 6
    limits = zip(pauses, (1, 2, 4, 8, 10), strict=True)
    assert all(longest / 2 <= pause <= longest for pause, longest in limits)
    assert database.read(lambda session: session.scalar(_COUNT)) == 0


def test_work_that_succeeds_after_a_deadlock_is_committed_once(conf, database, pauses):
    database = _database(conf.database.connection, pauses)
    outcomes = iter([oslo.DBDeadlock(), None])

    def work(session):
        session.execute(_INSERT, {"host": "one"})
        if error := next(outcomes):
            raise error

    database.write(work)

    assert database.read(lambda session: session.scalar(_COUNT)) == 1


def test_a_turn_is_held_by_the_one_that_runs_and_by_none_that_waits(conf, database):
    turn = threading.Lock()
    held = []
    database = Database(conf.database.connection, sleep=lambda _: held.append(turn.locked()))
    outcomes = iter([oslo.DBDeadlock(), None])

    def work(session):
        held.append(turn.locked())
        if error := next(outcomes):
            raise error

    database.write(work, turn=turn)

    assert held == [True, False, True]
    assert not turn.locked()


def test_the_patient_wait_until_the_database_is_back(tmp_path):
    folder = tmp_path / "later"
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 5:
            folder.mkdir()

    database = Database(f"sqlite:///{folder}/masakari.sqlite", patience=60, sleep=sleep)

    assert database.read(lambda session: session.scalar(text("SELECT 1"))) == 1
    assert pauses == [0.5, 1, 2, 4, 5]


def test_patience_ends(tmp_path, pauses):
    database = Database(f"sqlite:///{tmp_path}/no/x.sqlite", patience=10, sleep=pauses.sleep)

    with pytest.raises(errors.DatabaseUnavailable):
        database.write(lambda session: session.scalar(text("SELECT 1")))

    assert sum(pauses) < 10 + 5


def test_a_stop_request_ends_the_waiting(tmp_path, clock):
    clock.stop()
    database = Database(f"sqlite:///{tmp_path}/no/x.sqlite", patience=10, sleep=clock.sleep)

    with pytest.raises(errors.Stopped):
        database.write(lambda session: session.scalar(text("SELECT 1")))


def test_the_first_connection_is_tried_as_often_as_configured(pauses, caplog):
    database = _database(_CLOSED, pauses, max_retries=3, retry_interval=7)

    with pytest.raises(errors.DatabaseUnavailable, match="Can't connect"):
        database.read(lambda session: session.scalar(text("SELECT 1")))

    assert pauses == [7, 7]
    told = [message[: message.index(".:")] for message in caplog.messages]
    assert told == [f"SQL connection failed. {left} attempts left" for left in (2, 1)]


def test_the_first_connection_may_be_tried_for_ever(clock):
    def sleep(seconds):
        clock.sleep(seconds)
        if clock.now > 1000:
            clock.stop()

    database = Database(_CLOSED, {"max_retries": -1}, sleep=sleep)

    with pytest.raises(errors.Stopped):
        database.read(lambda session: session.scalar(text("SELECT 1")))


@pytest.mark.parametrize(
    ("options", "pool"),
    [
        ({}, (5, 50, 30, 3600)),
        ({"max_pool_size": 7, "max_overflow": 8}, (7, 8, 30, 3600)),
        ({"pool_timeout": 9, "connection_recycle_time": 10}, (5, 50, 9, 10)),
    ],
    ids=["default", "size", "time"],
)
def test_the_pool_is_as_configured(conf, options, pool):
    conf.set_override("connection", _CLOSED, "database")
    for name, value in options.items():
        conf.set_override(name, value, "database")

    made = Database.from_conf(conf).engine.pool

    assert (made.size(), made._max_overflow, made.timeout(), made._recycle) == pool


@pytest.mark.parametrize("synchronous", [True, False])
def test_a_replica_serves_reads_if_it_may_lag(conf, database, tmp_path, synchronous):
    migrate.upgrade(f"sqlite:///{tmp_path}/replica.sqlite")
    options = {
        "slave_connection": f"sqlite:///{tmp_path}/replica.sqlite",
        "synchronous_reader": synchronous,
    }
    opened = Database(conf.database.connection, options)

    opened.write(lambda session: session.execute(_INSERT, {"host": "one"}))

    assert opened.read(lambda session: session.scalar(_COUNT)) == (1 if synchronous else 0)
    opened.close()


def test_options_of_the_configuration_file_are_used(conf, database):
    conf.set_override("mysql_sql_mode", "ANSI", "database")

    opened = Database.from_conf(conf)

    assert opened.engine.url == sqlalchemy.make_url(conf.database.connection)
    assert opened.read(lambda session: session.scalar(_COUNT)) == 0


def test_threads_share_one_sqlite_file(conf, database):
    """Each thread reads before it writes, which SQLite refuses to those that begin by reading."""
    other = Database(conf.database.connection)
    database.write(lambda session: session.execute(_INSERT, {"host": "0"}))

    def count_up(session):
        seen = int(session.scalar(text("SELECT source_host_uuid FROM masakari_ng_intake")))
        session.execute(
            text("UPDATE masakari_ng_intake SET source_host_uuid = :next"), {"next": str(seen + 1)}
        )

    def work(number):
        for _ in range(20):
            (database, other)[number % 2].write(count_up)
            database.read(lambda session: session.scalar(_COUNT))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))

    counted = database.read(
        lambda session: session.scalar(text("SELECT source_host_uuid FROM masakari_ng_intake"))
    )
    assert counted == "160"
