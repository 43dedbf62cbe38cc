"""Protects what a recovery leaves in taskflow's tables, also when the database is away a while."""

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import event, text
from taskflow.patterns import linear_flow
from taskflow.task import Task

from masakari_ng import errors
from masakari_ng.db.session import Database
from masakari_ng.recovery.runner import FlowRunner
from masakari_ng.recovery.task import RecoveryContext, RecoveryTask

UUID = "b2e9bd4c-6a0f-4f9c-9cf0-0c3a4c9a5d4f"


class Greeting(RecoveryTask):
    wire_name = "GreetingTask"

    def execute(self, host_name: str) -> None:
        self.report(f"Hello {host_name}")
        self.report("Goodbye", 1.0)


class Reporting(RecoveryTask):
    """Reports while the database is away."""

    wire_name = "ReportingTask"

    def __init__(self, context: RecoveryContext, outage: "Outage") -> None:
        super().__init__(context)
        self._outage = outage

    def execute(self) -> None:
        self._outage.left = 4
        self.report("Hello")
        assert self._outage.left == 0


class Failing(Task):
    def __init__(self, error: Exception) -> None:
        super().__init__(name="FailingTask")
        self._error = error

    def execute(self) -> None:
        raise self._error


def run(database: Database, *tasks: Task) -> None:
    flow = linear_flow.Flow("instance_evacuate_engine").add(*tasks)
    FlowRunner(database).run(
        flow, action="instance:evacuate", notification_uuid=UUID, store={"host_name": "compute-1"}
    )


def rows(database: Database, query: str) -> list[Any]:
    return database.read(lambda session: list(session.execute(text(query)).all()))


def test_a_flow_is_kept_as_upstream_keeps_it(database, context, clock):
    run(database, Greeting(context))

    assert rows(database, "SELECT uuid, name, meta FROM logbooks") == [
        (UUID, "instance:evacuate", "{}")
    ]
    assert rows(database, "SELECT name, parent_uuid, state FROM flowdetails") == [
        ("instance_evacuate_engine", UUID, "SUCCESS")
    ]
    atoms = rows(database, "SELECT name, version, state, intention, meta, results FROM atomdetails")
    assert {atom.name for atom in atoms} == {"GreetingTask", "_TaskFlow_INJECTOR"}
    stored = {atom.name: atom for atom in atoms}
    assert json.loads(stored["_TaskFlow_INJECTOR"].results) == {"host_name": "compute-1"}
    greeting = stored["GreetingTask"]
    assert (greeting.version, greeting.state, greeting.intention) == ("1.0", "SUCCESS", "EXECUTE")
    timestamp = clock.utcnow().strftime("%Y-%m-%d %H:%M:%S.000000")
    assert json.loads(greeting.meta) == {
        "progress": 1.0,
        "progress_details": {
            "at_progress": 1.0,
            "details": {
                "progress_details": [
                    {"timestamp": timestamp, "progress": 0.0, "message": "Hello compute-1"},
                    {"timestamp": timestamp, "progress": 1.0, "message": "Goodbye"},
                ]
            },
        },
    }


def test_a_second_flow_joins_the_logbook(database, context):
    run(database, Greeting(context))
    run(database, Greeting(context))

    assert rows(database, "SELECT count(*) FROM logbooks") == [(1,)]
    assert rows(database, "SELECT count(*) FROM flowdetails") == [(2,)]
    assert rows(database, "SELECT count(*) FROM atomdetails") == [(4,)]


@pytest.mark.parametrize(
    "error",
    [errors.HostRecoveryFailure("two failed"), errors.SkipHostRecovery("none"), KeyError(7)],
)
def test_the_failure_of_a_task_comes_out_as_it_was(database, context, error):
    with pytest.raises(type(error)) as raised:
        run(database, Greeting(context), Failing(error))

    assert raised.value is error
    assert rows(database, "SELECT state FROM flowdetails") == [("REVERTED",)]
    states = rows(database, "SELECT name, state, intention FROM atomdetails WHERE version = '1.0'")
    assert sorted(states) == [
        ("FailingTask", "REVERTED", "REVERT"),
        ("GreetingTask", "REVERTED", "REVERT"),
    ]
    (failure,) = rows(database, "SELECT failure FROM atomdetails WHERE name = 'FailingTask'")
    assert json.loads(failure[0])["exception_str"] == str(error)


@pytest.mark.parametrize("traceback", [True, False])
def test_only_faults_are_logged_with_a_traceback(database, caplog, traceback):
    error = KeyError("gone") if traceback else errors.SkipHostRecovery("nothing to do")

    with pytest.raises(type(error)):
        run(database, Failing(error))

    assert ("Traceback" in caplog.text) is traceback
    assert str(error) in caplog.text


class Outage:
    """Ends the connection at each statement on a table, as often as `left` says."""

    def __init__(self, database: Database, table: str, left: int) -> None:
        self.left = left
        self._table = table
        event.listen(database.engine, "before_cursor_execute", self._execute)

    def _execute(self, _connection, cursor, statement, *_rest: object) -> None:
        if self.left and self._table in statement:
            self.left -= 1
            raise sqlite3.OperationalError("unable to open database file")


@pytest.fixture
def patient(conf, database, clock) -> Iterator[Database]:
    opened = Database(conf.taskflow.connection, patience=60, sleep=clock.sleep)
    yield opened
    opened.close()


@pytest.mark.parametrize("table", ["logbooks", "flowdetails", "atomdetails"])
def test_an_outage_within_the_patience_does_not_show(patient, context, clock, table):
    outage = Outage(patient, table, 4)

    run(patient, Greeting(context))

    assert outage.left == 0
    assert clock.now > 0
    assert rows(patient, "SELECT state FROM flowdetails") == [("SUCCESS",)]
    (meta,) = rows(patient, "SELECT meta FROM atomdetails WHERE name = 'GreetingTask'")
    assert "Goodbye" in meta[0]


def test_an_outage_while_a_task_reports_does_not_show(patient, context):
    outage = Outage(patient, "UPDATE atomdetails", 0)

    run(patient, Reporting(context, outage))

    assert rows(patient, "SELECT state FROM flowdetails") == [("SUCCESS",)]


def test_a_longer_outage_ends_the_flow(patient, context):
    Outage(patient, "flowdetails", 10_000)

    with pytest.raises(errors.DatabaseUnavailable):
        run(patient, Greeting(context))
