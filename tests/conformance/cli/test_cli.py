"""Protects the promise that scripts around upstream's programs notice no difference.

A case says in what state the database is, which files there are and what is called, and what
upstream did then: its exit code, lines that must be printed, rows afterwards.
"""

import contextlib
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql
import pytest

from masakari_ng.cmd import manage, status
from tests.servers import MariaDB

_CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))
_SCHEMA = Path(__file__).parents[2] / "integration/data"
_PROGRAM = re.compile(r"\bmasakari-(?=(?:api|engine|manage|status)\b)")
_MAIN = {"masakari-ng-manage": manage.main, "masakari-ng-status": status.main}
_AS_COMMANDS = (
    "db-purge-default",
    "db-sync-empty",
    "db-sync-legacy-006",
    "status-check-policy-json",
)
"""Cases that run once more as commands; those of the daemons always do."""

# oslo.log says so where the suite runs on green threads.
pytestmark = pytest.mark.filterwarnings("ignore:Eventlet support is deprecated:DeprecationWarning")


class Stage:
    """The database and the files of one case."""

    def __init__(self, case: dict[str, Any], folder: Path, mariadb: MariaDB) -> None:
        self._setup = case["setup"]
        self._mariadb = mariadb
        self._file = folder / "masakari.sqlite"
        self.on_mariadb = self._setup.get("database") == "mariadb"
        url = f"sqlite:///{self._file}"
        if self.on_mariadb:
            url = mariadb.create_schema()
            if self._setup.get("create") is False:
                url = mariadb.url("nothing_of_this_name")
        self._schema = mariadb.schema_of(url)
        self._names = {"DB": url, "ETC": str(folder)}
        for name in self._setup.get("state", ()):
            mariadb.sql(self._schema, (_SCHEMA / name).read_text())
        if statements := self._setup.get("sql"):
            mariadb.sql(self._schema, self.fill(statements))
        for name, text in self._setup.get("files", {}).items():
            (folder / name).write_text(self.fill(text))

    def fill(self, text: str) -> str:
        """Our names of the programs, and the values of `${NAME}`."""
        for name, value in self._names.items():
            text = text.replace(f"${{{name}}}", value)
        return _PROGRAM.sub("masakari-ng-", text)

    def rows(self, query: str) -> list[list[Any]]:
        """As upstream's programs see them: without our own tables."""
        try:
            found = self._rows(query)
        except (pymysql.Error, sqlite3.Error) as error:  # a missing table is a finding, too
            return [[type(error).__name__]]
        found = [row for row in found if not str(row[0]).startswith("masakari_ng_")]
        return [[v if isinstance(v, int | None) else str(v) for v in row] for row in found]

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        if self.on_mariadb:
            return [tuple(row.values()) for row in self._mariadb.sql(self._schema, query)]
        with contextlib.closing(sqlite3.connect(self._file)) as link:
            return link.execute(query).fetchall()


Run = Callable[[list[str]], tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home and working folder of a program."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a program that ends by itself in this process; gives exit code, output and errors."""

    def run(words: list[str]) -> tuple[int, str, str]:
        try:
            code = _MAIN[words[0]](words[1:])
        except SystemExit as ended:
            code = ended.code or 0
        return code, *capsys.readouterr()

    return run


def _command(words: list[str]) -> tuple[int, str, str]:
    """The same with the installed program."""
    words = [str(Path(sys.executable).parent / words[0]), *words[1:]]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def _differences(case: dict[str, Any], stage: Stage, run: Run) -> list[str]:
    code, output, complaint = run([stage.fill(word) for word in case["argv"]])
    found = []
    wanted = case["exit_code"]
    # Where upstream dies with a traceback, only that it fails counts.
    if (bool(code) != bool(wanted)) if "defect" in case else (code != wanted):
        found.append(f"exit code {code}, not {wanted}: {output}{complaint}")
    for name, text in (("stdout", output), ("stderr", complaint)):
        lines = case.get("must_contain", {}).get(name, ())
        found += [
            f"{name} lacks {line!r}: {text}" for line in lines if stage.fill(line) not in text
        ]
    found += [
        f"{query}: {stage.rows(query)}, not {rows}"
        for query, rows in case.get("after", ())
        if stage.rows(query) != rows
    ]
    if "Traceback" in output + complaint:
        found.append(f"a traceback: {output}{complaint}")
    return found


@pytest.mark.parametrize("path", _CASES, ids=lambda path: path.stem)
def test_as_recorded(path: Path, folder: Path, mariadb: MariaDB, call: Run):
    case = json.loads(path.read_text())
    stage = Stage(case, folder, mariadb)
    program, *arguments = case["argv"]
    # Without arguments a program shows its name, which is another one here.
    run = call if arguments and stage.fill(program) in _MAIN else _command

    assert _differences(case, stage, run) == []


@pytest.mark.parametrize("name", _AS_COMMANDS)
def test_the_command_does_as_recorded(name: str, folder: Path, mariadb: MariaDB):
    case = json.loads((Path(__file__).parent / f"cases/{name}.json").read_text())

    assert _differences(case, Stage(case, folder, mariadb), _command) == []
