"""Protects the order of the checks and what stands around the API."""

from pathlib import Path
from typing import Any

import pytest

from masakari_ng.domain import RequestContext
from masakari_ng.messaging.connection import Broker
from masakari_ng.messaging.server import Server
from tests.servers import eventually

PROJECT = "0123456789abcdef0123456789abcdef"

MENDS: list[tuple[str, Any]] = [
    ("body", b"x" * 114689),
    ("body", b"{"),
    ("X-Service-Catalog", "[]"),
    ("path", f"/v1/{PROJECT}/notifications/x"),
    ("OpenStack-API-Version", "instance-ha 1.4"),
    ("OpenStack-API-Version", "instance-ha 1.3"),
    ("Content-Type", "application/json"),
    ("path", f"/v1/{PROJECT}/segments/x"),
    ("body", b"{}"),
    ("X-Project-Id", PROJECT),
    ("body", b'{"segment": {"name": "n"}}'),
]
"""What is put right one after the other in a request that is wrong in every way."""


def test_a_request_that_is_wrong_in_every_way_fails_at_the_first_check(
    conf, make_client, tmp_path: Path
):
    make_client()  # registers the option
    policy = tmp_path / "policy.yaml"
    policy.write_text('"os_masakari_api:segments:update": "!"\n')
    conf.set_override("policy_file", str(policy), "oslo_policy")
    client = make_client()
    request: dict[str, Any] = {"path": f"/v1/{PROJECT}/nothing/x"}
    headers = {
        "X-Service-Catalog": "{",
        "OpenStack-API-Version": "instance-ha 1",
        "Content-Type": "application/xml",
        "X-Project-Id": "abc",
    }
    answers = []
    for name, value in MENDS:
        (headers if name in headers else request)[name] = value
        answer = client("PUT", **request, headers=headers)
        answers.append((answer.status_int, answer.text))

    expected = [413, 500, 404, 400, 406, 415, 405, 400, 400, 400, 403]
    assert [status for status, _ in answers] == expected
    assert "doesn't match Context's project_id 'abc'" in answers[8][1]
    assert "'segment' is a required property" in answers[9][1]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/segments/"),
        ("GET", "/v1/segments/x/hosts/"),
        ("GET", "/v1/ABC/segments"),
        ("GET", "/v1/abc"),
        ("get", "/v1/segments"),
        ("PATCH", "/v1/segments/x"),
        ("POST", "/v1/segments/x"),
        ("BREW", "/v1/segments"),
        ("HEAD", "/v1/segments"),
    ],
)
def test_what_has_no_route_is_not_found_in_the_plain_form(make_client, method: str, path: str):
    answer = make_client()(method, path)

    assert answer.status_int == 404
    assert answer.headers["Content-Type"].startswith("text/")
    assert "OpenStack-API-Version" not in answer.headers


@pytest.mark.parametrize("path", ["/v1/segments/new", "/v1/segments/x/hosts/new"])
def test_a_member_called_new_can_be_changed_but_not_fetched(make_client, path: str):
    client = make_client()

    assert client("GET", path).status_int == 405
    assert client("PUT", path, {}).status_int == 400


def test_deeply_nested_json_is_refused(make_client):
    client = make_client()

    # Between the depths that can be shown and those that cannot even be read lie others.
    for depth in (*range(400, 1200, 5), 50_000):
        body = b'{"segment": %s%s}' % (b"[" * depth, b"]" * depth)
        assert client("POST", "/v1/segments", body).status_int == 400


@pytest.mark.parametrize("catalog", ["{", "5", "[5]", '{"type": 1}', "[" * 8000])
def test_a_service_catalog_is_a_list_of_objects(make_client, catalog: str):
    answer = make_client()("GET", "/v1/segments", headers={"X-Service-Catalog": catalog})

    assert answer.status_int == 500
    assert "Invalid service catalog json." in answer.text


def test_a_failure_outside_the_application_is_answered_as_a_fault(conf, make_client):
    conf.set_override("auth_strategy", "keystone")
    client = make_client()

    # The token check cannot even begin: there is no authentication plugin.
    answer = client("GET", "/v1/segments", headers={"X-Auth-Token": "token"})

    assert answer.status_int == 500
    assert answer.json["masakariFault"]["code"] == 500
    assert answer.headers["X-Openstack-Request-Id"].startswith("req-")


def test_without_a_token_keystone_callers_are_turned_away(conf, make_client):
    conf.set_override("auth_strategy", "keystone")
    make_client()  # registers the option
    conf.set_override("www_authenticate_uri", "http://keystone", "keystone_authtoken")
    client = make_client()

    refused = client("GET", "/v1/nothing")

    assert refused.status_int == 401
    assert refused.headers["WWW-Authenticate"] == 'Keystone uri="http://keystone"'
    assert client("GET", "/").status_int == 200
    assert client("OPTIONS", "/v1/segments").status_int == 200


def test_other_origins_may_ask_when_they_are_allowed(conf, make_client):
    make_client()  # registers the option
    conf.set_override("allowed_origin", ["http://a.example.org"], "cors")
    client = make_client()

    headers = {"Origin": "http://a.example.org", "Access-Control-Request-Method": "PUT"}
    preflight = client("OPTIONS", "/v1/segments", headers=headers)
    answer = client("GET", "/v1/segments", headers=headers)

    assert preflight.headers["Access-Control-Allow-Methods"] == "PUT"
    assert answer.headers["Vary"] == "OpenStack-API-Version,Origin"
    assert answer.headers["Access-Control-Expose-Headers"] == (
        "X-Auth-Token,X-Openstack-Request-Id,X-Subject-Token,X-Service-Token"
    )


def test_a_file_takes_the_service_out_of_a_load_balancer(conf, make_client, tmp_path: Path):
    client = make_client()
    conf.set_override("disable_by_file_path", str(tmp_path / "disabled"), "healthcheck")

    assert client("GET", "/healthcheck").status_int == 200
    (tmp_path / "disabled").touch()
    assert client("GET", "/healthcheck/x").status_int == 503


class Engine:
    """Keeps the contexts of the requests that it is sent, by their ids."""

    def __init__(self) -> None:
        self.contexts: dict[str, RequestContext] = {}

    def process_notification(self, context, notification, acknowledge) -> None:
        self.contexts[context.request_id] = context


@pytest.mark.usefixtures("host")
def test_the_callers_context_travels_with_the_cast(conf, client, report, clock):
    engine = Engine()
    server = Server(Broker(conf), engine, threads=1, clock=clock)
    server.start()
    headers = {
        "X-User-Id": "u1",
        "X-Project-Id": "p1",
        "X-Roles": "reader, member",
        "X-OpenStack-Request-ID": "req-11111111-2222-4333-8444-555555555555",
        "X-Service-Catalog": '[{"type": "compute"}, {"type": "volume"}]',
    }

    answer = client("POST", "/v1/notifications", report, headers=headers)
    request_id = answer.headers["X-Openstack-Request-Id"]
    eventually(lambda: request_id in engine.contexts)
    server.close()

    context = engine.contexts[request_id]
    assert context.nova_request_id == headers["X-OpenStack-Request-ID"]
    assert (context.user_id, context.project_id, context.is_admin) == ("u1", "p1", True)
    assert context.roles == ("reader", "member")
    assert context.service_catalog == ({"type": "compute"},)
