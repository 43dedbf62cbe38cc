"""Protects transactions: what is committed, repeated, translated, and use of one file by many."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy
from oslo_db import exception as oslo
from sqlalchemy import exc, text

from masakari_ng import errors
from masakari_ng.db.session import Database, translated

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


def test_the_first_connection_is_tried_as_often_as_configured(pauses):
    closed = "mysql+pymysql://nobody@127.0.0.1:1/none"
    database = _database(closed, pauses, max_retries=3, retry_interval=7)

    with pytest.raises(errors.DatabaseUnavailable, match="Can't connect"):
        database.read(lambda session: session.scalar(text("SELECT 1")))

    assert pauses == [7, 7]


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
