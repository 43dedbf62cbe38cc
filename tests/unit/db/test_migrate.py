"""Protects what `db sync` makes of an SQLite file, and what it says where it cannot go on."""

import sqlite3
from functools import partial

import pytest

from masakari_ng import errors
from masakari_ng.db import migrate
from masakari_ng.db.session import Database

_HEAD = "13adff5efb9a"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fresh.sqlite"


@pytest.fixture
def empty(path):
    return Database(f"sqlite:///{path}")


def _sql(path, text):
    with sqlite3.connect(path) as link:
        found = link.execute(text).fetchall()
    link.close()
    return found


def _tables(path):
    return {name for (name,) in _sql(path, "SELECT name FROM sqlite_master WHERE type = 'table'")}


def _legacy(path, version):
    migrate.upgrade(f"sqlite:///{path}")
    for text in (
        "DELETE FROM masakari_alembic_version",
        "CREATE TABLE migrate_version (repository_id TEXT, repository_path TEXT, version INT)",
        f"INSERT INTO migrate_version VALUES ('masakari', '', {version})",
    ):
        _sql(path, text)


def test_an_empty_database_gets_all_tables(empty, path):
    assert migrate.version(empty) is None

    migrate.upgrade(f"sqlite:///{path}")

    assert migrate.version(empty) == _HEAD
    assert _tables(path) == {
        "failover_segments",
        "hosts",
        "notifications",
        "vmoves",
        "masakari_alembic_version",
        "masakari_ng_intake",
        "masakari_ng_claims",
        "masakari_ng_journal",
        "masakari_ng_alembic_version",
        "logbooks",
        "flowdetails",
        "atomdetails",
    }


def test_a_second_run_changes_nothing(empty, path):
    everything = "SELECT name, sql FROM sqlite_master ORDER BY name"
    migrate.upgrade(f"sqlite:///{path}")
    before = _sql(path, everything)

    migrate.upgrade(f"sqlite:///{path}")

    assert _sql(path, everything) == before


@pytest.mark.parametrize(
    ("version", "text"), [(6, "at version 006; we only support"), (9, "at version 009; we do not")]
)
def test_an_unknown_legacy_version_is_refused_and_left_alone(empty, path, version, text):
    _legacy(path, version)

    with pytest.raises(errors.MigrationRefused, match=text):
        migrate.upgrade(f"sqlite:///{path}")

    assert migrate.version(empty) is None


def test_a_newer_revision_is_refused_and_left_alone(empty, path):
    migrate.upgrade(f"sqlite:///{path}")
    _sql(path, "UPDATE masakari_alembic_version SET version_num = 'ffffffffffff'")

    with pytest.raises(errors.MigrationRefused, match="Can't locate revision identified by 'fff"):
        migrate.upgrade(f"sqlite:///{path}")

    assert migrate.version(empty) == "ffffffffffff"


def test_where_the_driver_fails_the_other_tables_are_made(empty):
    with pytest.raises(ZeroDivisionError):
        migrate.sync(empty, lambda: 1 / 0)

    assert migrate.version(empty) == _HEAD


def test_tables_without_a_version_are_an_error(empty, path):
    migrate.upgrade(f"sqlite:///{path}")
    _sql(path, "DROP TABLE masakari_alembic_version")

    with pytest.raises(errors.DatabaseUnavailable, match="failover_segments already exists"):
        migrate.upgrade(f"sqlite:///{path}")


def test_taskflow_may_have_a_database_of_its_own(empty, path, tmp_path):
    migrate.sync(empty, partial(migrate.upgrade_workflows, f"sqlite:///{tmp_path}/flows.sqlite"))

    assert "logbooks" in _tables(tmp_path / "flows.sqlite")
    assert "logbooks" not in _tables(path)
