"""Protects that every row upstream wrote is shown as upstream shows it."""

import contextlib
import copy
import json
from http import HTTPStatus
from pathlib import Path

import pytest
import webob

from masakari_ng.cmd import compose

_DATA = Path(__file__).parent / "data"
_PAGES = json.loads((_DATA / "expected-a.json").read_text())
_OF_DELETED_HOST = "78b94d18-7ec2-476e-bf3d-66dd1274955c"
"""Details of its recovery are refused by upstream's engine, which we do not ask."""
_WITH_TWO_FLOWS = "9beb204c-15d7-48aa-bfe6-f1fcb5b96ade"
"""Upstream shows its flows in the order of their random uuids: the second flow first."""
_TASKS_OF_A_FLOW = 3
_HEADERS = {"X-User-Id": "u1", "X-Project-Id": "p1", "X-Roles": "admin"}


@pytest.fixture
def ask(conf, mariadb, mariadb_url):
    """Asks the API, on tables and rows of upstream's, for a path in a microversion."""
    for name in ("mariadb-head.sql", "data-a.sql"):
        mariadb.sql(mariadb.schema_of(mariadb_url), (_DATA / name).read_text())
    for group in ("database", "taskflow"):
        conf.set_override("connection", mariadb_url, group)

    def get(path, version):
        headers = {**_HEADERS, "OpenStack-API-Version": f"instance-ha {version}"}
        answer = webob.Request.blank(path, headers=headers).get_response(app)
        return answer.status_int, answer.json

    with contextlib.closing(compose.build_api(conf)) as app:
        yield get


def _shown(page):
    """What we answer where upstream showed this page."""
    if (
        page["path"].endswith(_OF_DELETED_HOST)
        and page["status"] == HTTPStatus.INTERNAL_SERVER_ERROR
    ):
        return None
    body = copy.deepcopy(page["body"])
    tasks = body.get("notification", {}).get("recovery_workflow_details", [])
    if page["path"].endswith(_WITH_TWO_FLOWS):
        tasks[:] = tasks[_TASKS_OF_A_FLOW:] + tasks[:_TASKS_OF_A_FLOW]
    return page["status"], body


def test_all_pages_are_as_upstream_shows_them(ask):
    differ = [
        f"{page['version']} {page['path']}"
        for page in _PAGES
        if (wanted := _shown(page)) and ask(page["path"], page["version"]) != wanted
    ]

    assert len(_PAGES) == 140
    assert differ == []


def test_where_upstream_fails_for_want_of_the_host_we_show_what_is_stored(ask):
    _, plain = ask(f"/v1/notifications/{_OF_DELETED_HOST}", "1.0")

    for version in ("1.1", "1.3"):
        status, body = ask(f"/v1/notifications/{_OF_DELETED_HOST}", version)

        assert status == HTTPStatus.OK
        assert body["notification"].pop("recovery_workflow_details") == []
        assert body["notification"].items() >= plain["notification"].items()
