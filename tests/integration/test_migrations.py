"""Protects the promise that upstream finds its schema as it left it, from whichever release."""

import contextlib
import sqlite3
from functools import partial
from pathlib import Path

import pytest

from masakari_ng import errors
from masakari_ng.db import migrate, segments
from masakari_ng.db.paging import Page
from masakari_ng.db.session import Database

_DATA = Path(__file__).parent / "data"
_HEAD = "13adff5efb9a"
_TASKFLOW_HEAD = "00af93df9d77"

_COLUMNS = """
    SELECT table_name, column_name, ordinal_position, column_type, is_nullable, column_default,
           extra
    FROM information_schema.columns WHERE table_schema = database()"""
_INDEXES = """
    SELECT table_name, index_name, seq_in_index, column_name, non_unique
    FROM information_schema.statistics WHERE table_schema = database()"""
_KEYS = """
    SELECT k.table_name, k.constraint_name, k.column_name, k.referenced_table_name,
           k.referenced_column_name, r.delete_rule
    FROM information_schema.key_column_usage k
    JOIN information_schema.referential_constraints r
      ON r.constraint_name = k.constraint_name AND r.constraint_schema = k.table_schema
    WHERE k.table_schema = database()"""


@pytest.fixture
def load(mariadb):
    """A fresh schema filled from files of `data` and by a statement; gives its URL."""

    def make(*names, then=""):
        url = mariadb.create_schema()
        for text in (*((_DATA / name).read_text() for name in names), then):
            if text:
                mariadb.sql(mariadb.schema_of(url), text)
        return url

    return make


@pytest.fixture
def facts(mariadb):
    """Columns, indexes and foreign keys of upstream's and taskflow's tables."""

    def read(url):
        found = set()
        for query in (_COLUMNS, _INDEXES, _KEYS):
            for row in mariadb.sql(mariadb.schema_of(url), query):
                values = tuple(row.values())
                if not any(str(value).startswith("masakari_ng_") for value in values[:2]):
                    found.add(values)
        return found

    return read


@pytest.fixture
def content(mariadb):
    """What a schema holds apart from the versions: table to rows in order."""

    def read(url):
        schema = mariadb.schema_of(url)
        tables = [next(iter(row.values())) for row in mariadb.sql(schema, "SHOW TABLES")]
        return {
            table: (
                mariadb.sql(schema, f"SHOW CREATE TABLE `{table}`"),
                mariadb.sql(schema, f"SELECT * FROM `{table}` ORDER BY 1"),
            )
            for table in tables
        }

    return read


def _versions(mariadb, url):
    schema = mariadb.schema_of(url)
    tables = ("masakari_alembic_version", "alembic_version", "masakari_ng_alembic_version")
    return [mariadb.sql(schema, f"SELECT version_num FROM {table}") for table in tables]


def _sync(url, **options):
    with contextlib.closing(Database(url, answer_timeout=None)) as database:
        migrate.sync(database, partial(migrate.upgrade_workflows, url), **options)


def _names(differences):
    """Table and column or key of what differs."""
    return {f"{row[0]}.{row[1]}" for row in differences}


def test_an_empty_schema_becomes_upstreams_and_ours(mariadb, mariadb_url, load, facts):
    migrate.upgrade(mariadb_url)

    assert facts(mariadb_url) == facts(load("mariadb-head.sql"))
    upstream, taskflow, own = _versions(mariadb, mariadb_url)
    assert upstream == [{"version_num": _HEAD}]
    assert taskflow == [{"version_num": _TASKFLOW_HEAD}]
    assert len(own) == 1


def test_a_schema_at_head_gets_our_tables_and_then_nothing_more(load, facts, content):
    url = load("mariadb-head.sql", "data-legacy.sql")
    before, rows = facts(url), content(url)

    migrate.upgrade(url)

    after = content(url)
    assert facts(url) == before
    assert {table: after[table][1] for table in rows} == {
        table: found for table, (_, found) in rows.items()
    }

    migrate.upgrade(url)

    assert content(url) == after


def test_a_run_that_was_killed_in_the_middle_can_be_repeated(mariadb, mariadb_url, content):
    migrate.upgrade(mariadb_url)
    complete = content(mariadb_url)
    for text in (
        "DROP TABLE masakari_ng_journal",
        "ALTER TABLE masakari_ng_claims DROP INDEX masakari_ng_claims_heartbeat_idx",
        "ALTER TABLE vmoves DROP INDEX masakari_ng_vmoves_notification_idx",
        "DELETE FROM masakari_ng_alembic_version",
    ):
        mariadb.sql(mariadb.schema_of(mariadb_url), text)

    migrate.upgrade(mariadb_url)

    assert content(mariadb_url) == complete


@pytest.mark.parametrize("revision", ["8f848eb45d03", "8bdf5929c5a6"])
def test_an_older_revision_gets_the_missing_steps(load, facts, revision):
    url = load(f"mariadb-{revision}.sql", "data-legacy.sql")

    migrate.upgrade(url)

    assert facts(url) == facts(load("mariadb-head.sql"))


@pytest.mark.parametrize(("version", "number"), [("007", 7), ("008", 8), ("008", 9)])
def test_what_sqlalchemy_migrate_left_is_taken_over(mariadb, load, facts, version, number):
    """The last number is unknown, of somebody's own migrations: force is needed."""
    changed = f"UPDATE migrate_version SET version = {number}"
    url = load(f"mariadb-legacy-{version}.sql", "data-legacy.sql", then=changed)

    _sync(url, force=number == 9)

    found, wanted = facts(url), facts(load("mariadb-head.sql"))
    width = {"vmoves.status"} if version == "008" else set()
    assert _names(wanted - found) == width | {
        "hosts.failover_segment_id",
        "hosts.hosts_ibfk_1",
        "notifications.uniq_notification0uuid",
    }
    assert _names(found - wanted) == width | {
        "hosts.fk_failover_segments_uuid",
        "migrate_version.PRIMARY",
        "migrate_version.repository_id",
        "migrate_version.repository_path",
        "migrate_version.version",
        "notifications.uniq_notifications0uuid",
    }
    assert _versions(mariadb, url)[:2] == [
        [{"version_num": _HEAD}],
        [{"version_num": _TASKFLOW_HEAD}],
    ]
    with contextlib.closing(Database(url)) as database:
        listed = database.read(lambda session: segments.listed(session, Page()))
    assert [(segment.name, segment.enabled) for segment in listed] == [
        ("rack-2", True),
        ("rack-1", True),
    ]


@pytest.mark.parametrize(
    ("file", "change", "text"),
    [
        ("mariadb-legacy-006.sql", "", "at version 006; we only support"),
        ("mariadb-legacy-008.sql", "UPDATE migrate_version SET version = 9", "we do not recog"),
        (
            "mariadb-head.sql",
            "UPDATE masakari_alembic_version SET version_num = 'ffffffffffff'",
            "Can't locate revision identified by 'ffffffffffff'",
        ),
    ],
    ids=["too old", "unknown", "newer"],
)
def test_what_cannot_be_upgraded_is_left_alone(load, content, file, change, text):
    url = load(file, then=change)
    before = content(url)

    with pytest.raises(errors.MigrationRefused, match=text):
        _sync(url)

    assert content(url) == before


def test_newer_tables_of_taskflow_are_refused_after_our_part(mariadb, load):
    url = load("mariadb-head.sql", then="UPDATE alembic_version SET version_num = 'ffffffffffff'")

    with pytest.raises(errors.MigrationRefused, match="Can't locate revision identified by 'fff"):
        _sync(url)

    upstream, taskflow, own = _versions(mariadb, url)
    assert (upstream, taskflow) == ([{"version_num": _HEAD}], [{"version_num": "ffffffffffff"}])
    assert len(own) == 1


def test_tables_without_a_version_are_left_alone(load, content):
    url = load("mariadb-head.sql", then="DROP TABLE masakari_alembic_version")
    before = content(url)

    with pytest.raises(errors.DatabaseUnavailable, match="'failover_segments' already exists"):
        _sync(url)

    after = content(url)
    _, versions = after.pop("masakari_alembic_version")
    assert (after, versions) == (before, [])


def test_taskflow_may_have_a_schema_of_its_own(mariadb, facts, load):
    url, flows = mariadb.create_schema(), mariadb.create_schema()

    with contextlib.closing(Database(url, answer_timeout=None)) as database:
        migrate.sync(database, partial(migrate.upgrade_workflows, flows))

    assert not facts(url) & facts(flows)
    assert facts(url) | facts(flows) == facts(load("mariadb-head.sql"))


def test_an_sqlite_file_is_upstreams_too(tmp_path):
    path = tmp_path / "masakari.sqlite"

    migrate.upgrade(f"sqlite:///{path}")

    with contextlib.closing(sqlite3.connect(":memory:")) as wanted:
        wanted.executescript((_DATA / "sqlite-head.sql").read_text())
        with contextlib.closing(sqlite3.connect(path)) as found:
            assert _sqlite_facts(found) == _sqlite_facts(wanted)


def _sqlite_facts(link):
    """Columns, keys and indexes of each table that is not ours."""
    tables = link.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'masakari_ng_%'"
    ).fetchall()
    return {
        table: [
            link.execute(f"SELECT * FROM pragma_table_info('{table}')").fetchall(),
            link.execute(f"SELECT * FROM pragma_foreign_key_list('{table}')").fetchall(),
            set(
                link.execute(
                    'SELECT il.name, il."unique", ii.seqno, ii.name'
                    f" FROM pragma_index_list('{table}') il, pragma_index_info(il.name) ii"
                    " WHERE il.name NOT LIKE 'masakari_ng_%'"
                )
            ),
        ]
        for (table,) in tables
    }
