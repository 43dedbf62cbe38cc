"""Protects that no request and no periodic task reads years of notifications to find a few.

What is counted are the rows that the server reads for the very queries of the product.
"""

from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from masakari_ng.db import hosts, notifications, segments
from masakari_ng.db.paging import Page
from masakari_ng.db.session import Database
from masakari_ng.domain import UNFINISHED, NotificationType, RecoveryMethod
from tests.bench.history import fill

_ROWS = 20_000
_HOSTS = 20
_LIMIT = 50
_MUCH = 400
"""Rows that a query may read: a page, and what other hosts have reported meanwhile."""
_READ = text("SHOW SESSION STATUS LIKE 'Handler_read%'")


@pytest.fixture(scope="module")
def database(mariadb, synced_template):
    url = mariadb.create_schema()
    mariadb.copy_schema(synced_template, mariadb.schema_of(url))
    with closing(Database(url)) as opened:
        opened.write(_make_hosts)
        fill(lambda query: mariadb.sql(mariadb.schema_of(url), query), _ROWS, hosts=_HOSTS)
        yield opened


def _make_hosts(session):
    method = RecoveryMethod.AUTO
    made = segments.create(session, name="rack", service_type="C", recovery_method=method)
    for number in range(_HOSTS):
        hosts.create(
            session,
            segment_uuid=made.uuid,
            name=f"host-{number}",
            type="COMPUTE",
            control_attributes="SSH",
        )


def _list(session, *, marker=None, sort_key="created_at", sort_dir="desc", **filters):
    page = Page(limit=_LIMIT, marker=marker, sort_keys=(sort_key,), sort_dirs=(sort_dir,))
    return notifications.listed(session, page, **filters)


def _of_host(session):
    return hosts.by_name(session, "host-7").uuid


def _report(session):
    since = datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=1)
    return notifications.reported_since(session, _of_host(session), NotificationType.VM, since)


def _in_use(session):
    return segments.in_use(session, hosts.by_name(session, "host-7").segment.uuid)


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(_report, id="duplicates of a report"),
        pytest.param(_in_use, id="is the segment in use"),
        pytest.param(lambda s: notifications.unfinished(s, UNFINISHED), id="periodic tasks"),
        pytest.param(_list, id="first page"),
        pytest.param(lambda s: _list(s, marker=str(_ROWS // 2)), id="page in the middle"),
        pytest.param(lambda s: _list(s, sort_key="created_at", sort_dir="asc"), id="oldest"),
        pytest.param(lambda s: _list(s, sort_key="generated_time"), id="by generated_time"),
        pytest.param(
            lambda s: _list(s, sort_key="generated_time", marker=str(_ROWS // 2)),
            id="by generated_time in the middle",
        ),
        pytest.param(lambda s: _list(s, sort_key="updated_at"), id="by updated_at"),
        pytest.param(lambda s: _list(s, sort_key="status"), id="by status"),
        pytest.param(lambda s: _list(s, sort_key="id", sort_dir="asc"), id="by id"),
        pytest.param(lambda s: _list(s, status="failed"), id="status"),
        pytest.param(lambda s: _list(s, status="new"), id="status that none has"),
        pytest.param(lambda s: _list(s, source_host_uuid=_of_host(s)), id="host"),
        pytest.param(lambda s: _list(s, type="PROCESS"), id="type"),
        pytest.param(lambda s: _list(s, type="NOTHING"), id="type that none has"),
        pytest.param(
            lambda s: _list(s, generated_since=datetime.now(UTC).replace(tzinfo=None)), id="since"
        ),
    ],
)
def test_few_rows_are_read(database, work):
    def counted(session):
        work(session)  # Once before, so that opening the tables is not counted.
        before = {name: int(value) for name, value in session.execute(_READ)}
        work(session)
        after = {name: int(value) for name, value in session.execute(_READ)}
        return sum(after.values()) - sum(before.values())

    assert database.read(counted) < _MUCH
