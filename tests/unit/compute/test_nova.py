"""Protects what Nova is asked, under which headers, and what its and Keystone's refusals become."""

import re
import socket
from collections.abc import Callable, Iterator

import pytest
from keystoneauth1 import exceptions as keystone
from novaclient import exceptions as novaclient

from masakari_ng import errors
from masakari_ng.compute.nova import Aggregate, Cloud, ComputeService, Nova, Server

UUID = "11111111-0000-4000-8000-000000000001"
SERVER = {"id": UUID, "name": "vm-1", "host": "compute-1"}
NOVA = r"/compute"


@pytest.fixture
def nova(cloud, conf) -> Nova:
    cloud.reset(
        {
            "services": [{"host": "compute-1", "id": "service-1"}],
            "servers": [SERVER],
            "aggregates": [{"id": 7, "name": "rack", "hosts": ["compute-1"]}],
        }
    )
    return Cloud(conf).nova("req-1")


def frames(cloud) -> list[tuple[str, str, object]]:
    return [
        (frame["method"], f"{frame['path']}?{frame['raw_query']}".rstrip("?"), frame["body"])
        for frame in cloud.frames
        if frame["path"].startswith(NOVA)
    ]


ACTION = f"/compute/v2.1/servers/{UUID}/action"
OPERATIONS: dict[str, tuple[Callable[[Nova], object], tuple[str, str, object]]] = {
    "list servers": (
        lambda nova: nova.servers_on("compute-1"),
        ("GET", "/compute/v2.1/servers/detail?all_tenants=True&host=compute-1", None),
    ),
    "get server": (
        lambda nova: nova.server(UUID),
        ("GET", f"/compute/v2.1/servers/{UUID}", None),
    ),
    "lock": (lambda nova: nova.lock(UUID), ("POST", ACTION, {"lock": None})),
    "unlock": (lambda nova: nova.unlock(UUID), ("POST", ACTION, {"unlock": None})),
    "reset state": (
        lambda nova: nova.reset_state(UUID, "active"),
        ("POST", ACTION, {"os-resetState": {"state": "active"}}),
    ),
    "evacuate": (lambda nova: nova.evacuate(UUID), ("POST", ACTION, {"evacuate": {}})),
    "evacuate to": (
        lambda nova: nova.evacuate(UUID, "compute-9"),
        ("POST", ACTION, {"evacuate": {"host": "compute-9"}}),
    ),
    "stop": (lambda nova: nova.stop(UUID), ("POST", ACTION, {"os-stop": None})),
    "start": (lambda nova: nova.start(UUID), ("POST", ACTION, {"os-start": None})),
    "find service": (
        lambda nova: nova.services("compute 1"),
        ("GET", "/compute/v2.1/os-services?host=compute+1&binary=nova-compute", None),
    ),
    "disable service": (
        lambda nova: nova.disable_service("service-1", "It failed."),
        (
            "PUT",
            "/compute/v2.1/os-services/service-1",
            {"status": "disabled", "disabled_reason": "It failed."},
        ),
    ),
    "disable service without reason": (
        lambda nova: nova.disable_service("service-1", ""),
        ("PUT", "/compute/v2.1/os-services/service-1", {"status": "disabled"}),
    ),
    "enable service": (
        lambda nova: nova.enable_service("service-1"),
        ("PUT", "/compute/v2.1/os-services/service-1", {"status": "enabled"}),
    ),
    "list aggregates": (
        lambda nova: nova.aggregates(),
        ("GET", "/compute/v2.1/os-aggregates", None),
    ),
    "add host": (
        lambda nova: nova.add_host("7", "compute-9"),
        (
            "POST",
            "/compute/v2.1/os-aggregates/7/action",
            {"add_host": {"host": "compute-9"}},
        ),
    ),
}


@pytest.mark.parametrize(("call", "frame"), OPERATIONS.values(), ids=list(OPERATIONS))
def test_each_operation_is_one_request_with_the_headers_of_upstream(cloud, nova, call, frame):
    if call is OPERATIONS["start"][0]:
        cloud.patch_server(UUID, {"vm_state": "stopped"})

    call(nova)

    assert frames(cloud) == [frame]
    headers = cloud.frames[-1]["headers"]
    assert headers["X-Auth-Token"].startswith("tok-")
    assert {name: headers[name] for name in headers if "Token" not in name} == {
        "User-Agent": "python-novaclient",
        "Accept": "application/json",
        "Content-Type": None if frame[2] is None else "application/json",
        "X-OpenStack-Nova-API-Version": "2.53",
        "OpenStack-API-Version": "compute 2.53",
        "X-OpenStack-Request-ID": "req-1",
    }


def test_records_hold_what_nova_says(cloud, nova):
    cloud.patch_server(
        UUID,
        {
            "task_state": "deleting",
            "hypervisor_hostname": "node-1",
            "metadata": {"HA_Enabled": "True"},
            "locked": True,
        },
    )

    assert nova.server(UUID) == Server(
        uuid=UUID,
        name="vm-1",
        metadata={"HA_Enabled": "True"},
        locked=True,
        vm_state="active",
        task_state="deleting",
        power_state=1,
        host="compute-1",
        hypervisor_hostname="node-1",
    )
    assert nova.services("compute-1") == [
        ComputeService("service-1", "compute-1", "nova-compute", "enabled", "up")
    ]
    assert nova.services("nowhere") == []
    with pytest.raises(errors.ComputeServiceNotFound):
        nova.service("nowhere")
    assert nova.aggregates() == [Aggregate("7", "rack", ("compute-1",))]


def test_every_page_of_servers_is_read(cloud, conf):
    servers = [{"id": f"vm-{n}", "name": f"vm-{n}", "host": "compute-1"} for n in range(7)]
    cloud.reset({"page_size": 3, "servers": servers})

    found = Cloud(conf).nova("req-1").servers_on("compute-1")

    assert [server.uuid for server in found] == [f"vm-{n}" for n in range(7)]
    queries = [frame["raw_query"] for frame in cloud.frames if NOVA in frame["path"]]
    assert queries == [
        "all_tenants=True&host=compute-1",
        "all_tenants=True&host=compute-1&marker=vm-2",
        "all_tenants=True&host=compute-1&marker=vm-5",
    ]


KEYSTONE = "/auth/tokens"
REFUSALS = [
    (NOVA, 400, errors.CloudBadRequest, "Invalid input received: no (HTTP 400)"),
    (NOVA, 401, errors.CloudError, "no (HTTP 401)"),
    (NOVA, 403, errors.CloudForbidden, "no (HTTP 403)"),
    (NOVA, 404, errors.CloudNotFound, "no (HTTP 404)"),
    (NOVA, 409, errors.CloudConflict, "no (HTTP 409)"),
    (NOVA, 413, errors.CloudError, "no (HTTP 413)"),
    (NOVA, 418, errors.CloudError, "no (HTTP 418)"),
    (NOVA, 429, errors.CloudError, "no (HTTP 429)"),
    (NOVA, 500, errors.CloudError, "no (HTTP 500)"),
    (NOVA, 503, errors.CloudError, "no (HTTP 503)"),
    (KEYSTONE, 400, errors.CloudBadRequest, "Invalid input received: no (HTTP 400)"),
    (KEYSTONE, 401, errors.CloudError, "no (HTTP 401)"),
    (KEYSTONE, 403, errors.CloudForbidden, "no (HTTP 403)"),
    (KEYSTONE, 404, errors.CloudError, "no (HTTP 404)"),
    (KEYSTONE, 500, errors.CloudError, "no (HTTP 500)"),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: f"{refusal[0]}-{refusal[1]}")
def test_refusals_become_ours_with_the_texts_of_the_client(cloud, nova, refusal):
    path, status, expected, text = refusal
    body = {"error": {"code": status, "message": "no"}}
    cloud.arm_faults([{"match": {"path": path}, "do": {"status": status, "body": body}}])

    with pytest.raises(errors.CloudError) as raised:
        nova.server(UUID)

    assert type(raised.value) is expected
    assert re.sub(r" \(Request-ID: req-[0-9a-f-]+\)$", "", str(raised.value)) == text
    assert ("Request-ID" in str(raised.value)) is ("HTTP" in text)
    assert raised.value.__cause__ is not None


@pytest.mark.parametrize("path", [NOVA, KEYSTONE, "/identity/?$"])
def test_a_dropped_connection_is_unreachable_and_no_action_is_sent_twice(cloud, conf, path):
    # Only a URL without a version needs the version document.
    conf.set_override("os_privileged_user_auth_url", f"{cloud.url}/identity")
    cloud.arm_faults([{"match": {"path": path}, "do": {"drop": True}}])

    with pytest.raises(errors.CloudUnreachable, match=cloud.url):
        Cloud(conf).nova("req-1").lock(UUID)

    assert len(frames(cloud)) == (path == NOVA)


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def test_a_refused_connection_is_unreachable(conf, cloud, closed_port):
    conf.set_override("os_privileged_user_auth_url", f"http://127.0.0.1:{closed_port}/v3")

    with pytest.raises(errors.CloudUnreachable):
        Cloud(conf).nova("req-1").server(UUID)


def test_no_class_of_the_libraries_escapes(cloud, conf):
    """Whatever they may raise for an answer descends from a class in the table."""
    for answer in novaclient._error_classes:
        assert issubclass(answer, novaclient.ClientException)
    for name in ("HttpError", "ConnectionError", "CatalogException", "AuthPluginException"):
        assert issubclass(getattr(keystone, name), keystone.ClientException)
    conf.set_override("nova_catalog_admin_info", "compute:nothere:publicURL")

    with pytest.raises(errors.CloudError, match="endpoint"):
        Cloud(conf).nova("req-1").server(UUID)
