"""Protects how often, as whom and for how long we wait when we log in at Keystone."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from masakari_ng import errors
from masakari_ng.compute import auth
from masakari_ng.compute.nova import Cloud

UUID = "11111111-0000-4000-8000-000000000001"


@pytest.fixture(autouse=True)
def one_server(cloud):
    cloud.reset({"servers": [{"id": UUID, "name": "vm-1", "host": "compute-1"}]})


def tokens(cloud) -> list[dict]:
    return [frame["body"] for frame in cloud.frames if frame["path"].endswith("/auth/tokens")]


PASSWORD = {
    "methods": ["password"],
    "password": {"user": {"name": "masakari", "password": "secret", "domain": {"name": "default"}}},
}


@pytest.mark.parametrize("plugin", ["password", "v3password"])
def test_one_token_serves_all_requests(cloud, conf, plugin):
    conf.set_override("auth_type", plugin, "keystone_authtoken")
    shared = Cloud(conf)

    for request_id in ("req-1", "req-2"):
        shared.nova(request_id).server(UUID)
        shared.nova(request_id).lock(UUID)

    scope = {"project": {"name": "service", "domain": {"name": "default"}}}
    assert tokens(cloud) == [{"auth": {"identity": PASSWORD, "scope": scope}}]


def test_a_fresh_nova_logs_in_again(cloud, conf):
    shared = Cloud(conf)

    shared.nova("req-1").server(UUID)
    shared.fresh_nova("req-1").server(UUID)
    shared.nova("req-1").server(UUID)

    assert len(tokens(cloud)) == 2


def test_a_refused_token_is_replaced_once(cloud, conf):
    nova = Cloud(conf).nova("req-1")
    nova.server(UUID)
    cloud.revoke_tokens()

    nova.lock(UUID)

    assert len(tokens(cloud)) == 2
    assert cloud.servers[UUID].locked


def test_a_token_that_is_always_refused_ends_the_request(cloud, conf):
    cloud.arm_faults([{"match": {"path": "/compute"}, "do": {"status": 401}}])

    with pytest.raises(errors.CloudError, match=r"\(HTTP 401\)"):
        Cloud(conf).nova("req-1").server(UUID)

    assert len(tokens(cloud)) == 2
    assert sum("/compute" in frame["path"] for frame in cloud.frames) == 2


def test_system_scope_replaces_the_project(cloud, conf):
    conf.set_override("os_system_scope", "all")
    conf.clear_override("os_privileged_user_tenant")

    Cloud(conf).nova("req-1").server(UUID)

    assert tokens(cloud)[0]["auth"]["scope"] == {"system": {"all": True}}


@pytest.mark.parametrize("unset", [None, ""])
def test_without_auth_type_nothing_is_sent(cloud, conf, unset):
    conf.set_override("auth_type", unset, "keystone_authtoken")
    nova = Cloud(conf).nova("req-1")

    for _ in range(2):
        with pytest.raises(errors.CloudError, match="auth_type is not set"):
            nova.server(UUID)

    assert cloud.frames == []


def test_an_unknown_plugin_is_named(conf):
    conf.set_override("auth_type", "nonesuch", "keystone_authtoken")

    with pytest.raises(errors.CloudError, match="nonesuch"):
        Cloud(conf).nova("req-1").server(UUID)


@pytest.mark.parametrize(
    ("path", "option", "group"),
    [("/compute", "nova_read_timeout", "masakari_ng"), ("/auth/tokens", "timeout", None)],
)
def test_a_hanging_cloud_is_unreachable(cloud, conf, path, option, group):
    conf.set_override(option, 1, group)
    cloud.arm_faults([{"match": {"path": path}, "do": {"delay": 30}}])
    begin = time.monotonic()

    with pytest.raises(errors.CloudUnreachable):
        Cloud(conf).nova("req-1").lock(UUID)

    assert 1 <= time.monotonic() - begin < 10
    assert sum(path in frame["path"] for frame in cloud.frames) == 1


def test_the_session_has_limits_connections_and_certificates(conf):
    session = auth.make_session(conf, 7)

    assert session.timeout == (10, 180)
    assert session.verify is True
    pool = session.session.get_adapter("https://nova").poolmanager.connection_from_url("https://n")
    assert pool.pool.maxsize == 7

    conf.set_override("nova_ca_certificates_file", "/ca.pem")
    conf.set_override("timeout", 20)
    assert auth.make_session(conf, 7).verify == "/ca.pem"
    assert auth.anew(conf, session).timeout == 20

    conf.set_override("nova_api_insecure", True)
    assert auth.make_session(conf, 7).verify is False


def test_every_request_that_a_lost_token_hits_is_sent_again(cloud, conf):
    shared = Cloud(conf, threads=20)
    shared.nova("req-1").server(UUID)
    cloud.revoke_tokens()

    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda _: shared.nova("req-1").server(UUID).uuid, range(40)))

    assert found == [UUID] * 40
