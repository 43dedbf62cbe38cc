"""Protects that a purge with history leaves no part of a flow behind, and none of what is kept."""

from contextlib import closing
from pathlib import Path

import pytest

from masakari_ng.db import migrate
from masakari_ng.db.purge import purge
from masakari_ng.db.session import Database

_DATA = Path(__file__).parents[1] / "data"
_TABLES = ("notifications", "vmoves", "logbooks", "flowdetails", "atomdetails")


@pytest.fixture
def database(mariadb, mariadb_url):
    """What upstream left, in our hands."""
    for name in ("mariadb-head.sql", "data-a.sql"):
        mariadb.sql(mariadb.schema_of(mariadb_url), (_DATA / name).read_text())
    migrate.upgrade(mariadb_url)
    with closing(Database(mariadb_url)) as opened:
        yield opened


def test_flows_go_with_their_notification(database, mariadb):
    schema = database.engine.url.database
    mariadb.sql(schema, "UPDATE notifications SET updated_at = '2020-01-01' WHERE updated_at > 0")

    def counts():
        found = [mariadb.sql(schema, f"SELECT COUNT(*) AS n FROM {table}") for table in _TABLES]
        return [rows[0]["n"] for rows in found]

    assert counts() == [22, 16, 10, 11, 45]

    purge(database, days=1, limit=None, history=True, workflows=database)

    assert counts() == [6, 8, 3, 4, 17]
