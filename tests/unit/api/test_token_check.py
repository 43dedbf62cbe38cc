"""Protects that with Keystone in front nobody learns or changes anything without a valid token."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from masakari_ng import conf as options
from masakari_ng.cmd import compose
from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Daemons
from tests.unit.api.conftest import Client

PATHS = [
    "",
    "/",
    "/versions",
    "/versions/v1.0",
    "/extensions",
    "/extensions/segments",
    "/segments",
    "/segments/x",
    "/segments/x/action",
    "/segments/x/hosts",
    "/segments/x/hosts/x",
    "/segments/new",
    "/notifications",
    "/notifications/x",
    "/notifications/x/vmoves",
    "/notifications/x/vmoves/x",
    "/nothing",
]
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "get", "BREW"]


@pytest.fixture
def keystone_client(cloud: SimulatedCloud, tmp_path: Path, database: object) -> Iterator[Client]:
    """The application behind the token check of a cloud that knows the token `good`."""
    cloud.reset({"tokens": {"good": "admin"}})
    services = Daemons(
        tmp_path,
        database=f"sqlite:///{tmp_path}/masakari.sqlite",
        broker="memory://",
        cloud=cloud.url,
    )
    file = services.write_conf("masakari", {"DEFAULT": {"auth_strategy": "keystone"}})
    app = compose.build_api(options.load([], program=compose.API, files=[str(file)]))
    yield Client(app)
    app.close()


@pytest.mark.parametrize("root", ["/v1", "/v1/0123456789abcdef", "//%761/", "/v1/segments.json"])
def test_no_route_answers(keystone_client, root: str):
    identity = {"X-User-Id": "u", "X-Roles": "admin", "X-Identity-Status": "Confirmed"}

    answers = [
        keystone_client(method, root + path, headers=identity)
        for method in METHODS
        for path in PATHS
    ]

    assert {answer.status_int for answer in answers} == {401}
    assert all("WWW-Authenticate" in answer.headers for answer in answers)


@pytest.mark.parametrize(
    ("token", "status"),
    [("good", 200), ("", 401), ("bad", 401), ("GOOD", 401), ("good\u00ff", 401)],
)
def test_only_a_valid_token_is_let_in(keystone_client, token: str, status: int):
    answer = keystone_client("GET", "/v1/segments", headers={"X-Auth-Token": token})

    assert answer.status_int == status


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/", {}, 200),
        ("GET", "/v2/segments", {}, 300),
        ("GET", "/healthcheck", {}, 200),
        ("GET", "/healthcheck/../v1/segments", {}, 200),
        ("OPTIONS", "/v1/segments", {}, 200),
        ("OPTIONS", "/v1/nothing", {}, 200),
        ("GET", "/segments", {"Accept": "application/json;version=1"}, 401),
    ],
)
def test_what_is_open(keystone_client, method: str, path: str, headers, status: int):
    segment = {"segment": {"name": "secret", "recovery_method": "auto", "service_type": "s"}}
    keystone_client("POST", "/v1/segments", segment, headers={"X-Auth-Token": "good"})

    answer = keystone_client(method, path, headers=headers)

    assert answer.status_int == status
    assert b"secret" not in answer.body
    assert method != "OPTIONS" or answer.body == b""


@settings(
    max_examples=50,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(token=st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF), max_size=300))
def test_no_odd_token_is_valid(keystone_client, token: str):
    assert keystone_client("GET", "/v1/segments", headers={"X-Auth-Token": token}).status_int == 401


def test_without_keystone_nobody_gets_in(keystone_client, cloud: SimulatedCloud):
    cloud.arm_faults([{"match": {"path": "^/identity"}, "do": {"status": 500}}])

    answer = keystone_client("GET", "/v1/segments", headers={"X-Auth-Token": "good"})

    assert answer.status_int == 503
