"""Protects what the simulated cloud does to a request: all other tests believe it."""

import threading
import time
from typing import Any

import pytest
import requests

from masakari_ng import errors
from masakari_ng.compute.nova import Cloud, Nova
from masakari_ng.demo.cloud import SimulatedCloud

SOURCE, OTHER, FULLER = "compute-1", "compute-2", "compute-3"


@pytest.fixture
def nova(cloud, conf) -> Nova:
    for host in (SOURCE, OTHER, FULLER):
        cloud.add_service(host)
    return Cloud(conf).nova("req-1")


@pytest.fixture
def realistic(cloud, nova) -> SimulatedCloud:
    cloud.reset({"realistic": True})
    for host in (SOURCE, OTHER, FULLER):
        cloud.add_service(host)
    cloud.add_server("neighbour", FULLER)
    return cloud


def send(cloud: SimulatedCloud, method: str, path: str, body: object = None) -> requests.Response:
    with requests.Session() as link:
        link.trust_env = False
        headers = {"X-Auth-Token": "tok-1"}
        url = f"{cloud.url}/compute/v2.1{path}"
        return link.request(method, url, json=body, headers=headers, timeout=10)


def act(cloud: SimulatedCloud, server: str, action: str) -> requests.Response:
    return send(cloud, "POST", f"/servers/{server}/action", {action: None})


def wait_until(condition, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# What an action does after one GET, and before.
ACTIONS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "lock": ({}, {"lock": None}, {"locked": True}),
    "unlock": ({"locked": True}, {"unlock": None}, {"locked": False}),
    "os-resetState": (
        {"task_state": "deleting"},
        {"os-resetState": {"state": "error"}},
        {"vm_state": "error", "task_state": None},
    ),
    "os-stop": ({}, {"os-stop": None}, {"vm_state": "stopped", "power_state": 4}),
    "os-start": (
        {"vm_state": "stopped"},
        {"os-start": None},
        {"vm_state": "active", "power_state": 1},
    ),
    "evacuate": ({}, {"evacuate": {}}, {"host": OTHER, "node": OTHER, "vm_state": "active"}),
    "evacuate stopped": (
        {"vm_state": "stopped", "evacuate": {"to": FULLER, "node": "fqdn"}},
        {"evacuate": {}},
        {"host": FULLER, "node": "fqdn", "vm_state": "stopped", "power_state": 4},
    ),
    "evacuate to a host": (
        {"vm_state": "error", "evacuate": {"to": FULLER}},
        {"evacuate": {"host": OTHER}},
        {"host": OTHER, "vm_state": "active"},
    ),
    "evacuation fails": (
        {"evacuate": {"outcome": "error"}},
        {"evacuate": {}},
        {"host": SOURCE, "vm_state": "error"},
    ),
    "evacuation never ends": (
        {"evacuate": {"outcome": "never"}},
        {"evacuate": {}},
        {"host": SOURCE, "vm_state": "active"},
    ),
    "only with a host": (
        {"evacuate": {"outcome_with_host": "error"}},
        {"evacuate": {"host": OTHER}},
        {"host": SOURCE, "vm_state": "error"},
    ),
}


@pytest.mark.parametrize(("state", "body", "then"), ACTIONS.values(), ids=list(ACTIONS))
def test_an_action_changes_the_server(cloud, state, body, then):
    server = cloud.add_server("vm-1", SOURCE, **state)

    answer = send(cloud, "POST", f"/servers/{server}/action", body)
    for _ in range(2):
        send(cloud, "GET", f"/servers/{server}")

    assert answer.status_code in {200, 202}
    found = cloud.servers[server]
    assert {key: getattr(found, key) for key in then} == then


REFUSALS = {
    "evacuate paused": ({"vm_state": "paused"}, "evacuate", 409, "vm_state paused"),
    "evacuate busy": ({"task_state": "deleting"}, "evacuate", 409, "task_state deleting"),
    "stop stopped": ({"vm_state": "stopped"}, "os-stop", 409, "vm_state stopped"),
    "start active": ({}, "os-start", 409, "vm_state active"),
    "unknown": ({}, "shelve", 400, "Unknown request"),
}


@pytest.mark.parametrize(
    ("state", "action", "status", "message"), REFUSALS.values(), ids=list(REFUSALS)
)
def test_refuses_what_the_state_does_not_allow(cloud, state, action, status, message):
    answer = act(cloud, cloud.add_server("vm-1", SOURCE, **state), action)

    assert answer.status_code == status
    ((_, fault),) = answer.json().items()
    assert fault["code"] == status
    assert message in fault["message"]


def test_polls_count_gets_and_seconds_follow_the_clock(clock):
    cloud = SimulatedCloud(monotonic=clock.monotonic).start()
    polled = cloud.add_server("polled", evacuate={"polls": 2})
    timed = cloud.add_server("timed", evacuate={"seconds": 30})
    for server in (polled, timed):
        send(cloud, "POST", f"/servers/{server}/action", {"evacuate": {}})

    hosts = []
    for _ in range(4):
        clock.sleep(10)
        for server in (polled, timed):
            send(cloud, "GET", f"/servers/{server}")
        hosts.append((cloud.servers[polled].host, cloud.servers[timed].host))

    cloud.stop()
    assert hosts == [(SOURCE, SOURCE), (SOURCE, SOURCE), (OTHER, OTHER), (OTHER, OTHER)]


def test_a_real_service_refuses_while_it_is_up_and_while_a_task_runs(realistic, nova):
    server = realistic.add_server("vm-1", SOURCE, evacuate={"polls": 0}, stop={"polls": 0})

    with pytest.raises(errors.CloudBadRequest, match="Compute service of compute-1 is still in"):
        nova.evacuate(server)
    realistic.fail_host(SOURCE)
    nova.lock(server)
    nova.evacuate(server)
    assert realistic.servers[server].task_state == "rebuilding"
    with pytest.raises(errors.CloudConflict):
        nova.evacuate(server)
    moved = nova.server(server)
    nova.stop(server)
    assert realistic.servers[server].task_state == "powering-off"
    with pytest.raises(errors.CloudConflict):
        nova.stop(server)
    stopped = nova.server(server)

    assert (moved.host, moved.task_state, moved.locked) == (OTHER, None, True)
    assert (stopped.vm_state, stopped.task_state) == ("stopped", None)
    assert realistic.requests("evacuate") == {server: 3}
    assert realistic.requests("evacuate", accepted=True) == {server: 1}


def test_a_real_move_survives_a_reset_and_ends_in_error_without_a_host(realistic, nova):
    realistic.fail_host(SOURCE)
    server = realistic.add_server("vm-1", SOURCE, evacuate={"polls": 1})
    nova.evacuate(server)
    nova.reset_state(server, "error")
    states = [(found.host, found.vm_state) for found in (nova.server(server), nova.server(server))]
    for host in (OTHER, FULLER):
        service = nova.services(host)[0]
        nova.disable_service(service.id, "full")
    realistic.fail_host(OTHER)
    nova.evacuate(server)
    nova.server(server)

    assert states == [(SOURCE, "error"), (OTHER, "active")]
    assert (nova.server(server).host, nova.server(server).vm_state) == (OTHER, "error")


def test_a_host_fails_after_a_while(clock):
    cloud = SimulatedCloud(monotonic=clock.monotonic)
    cloud.add_service(SOURCE)

    cloud.fail_host(SOURCE, seconds=5)
    clock.sleep(4)
    before = cloud.services[0]["state"]
    clock.sleep(1)

    cloud.stop()
    assert (before, cloud.services[0]["state"]) == ("up", "down")


FAULTS: dict[str, tuple[dict[str, Any], list[object], int]] = {
    # rule, status of four locks, how many were carried out
    "status": ({"do": {"status": 503}}, [503, 503, 503, 503], 0),
    "apply": ({"do": {"status": 503, "apply": True}}, [503, 503, 503, 503], 4),
    "skip and times": ({"skip": 1, "times": 2, "do": {"status": 500}}, [202, 500, 500, 202], 2),
    "after": (
        {"after": {"action": "lock"}, "do": {"status": 500}},
        [202, 500, 500, 500],
        1,
    ),
    "drop": ({"times": 1, "do": {"drop": True}}, ["dropped", 202, 202, 202], 3),
    "other": ({"match": {"action": "unlock"}, "do": {"status": 500}}, [202] * 4, 4),
    "delay": ({"times": 1, "do": {"delay": 0.2}}, [202] * 4, 4),
}


@pytest.mark.parametrize(("rule", "statuses", "carried_out"), FAULTS.values(), ids=list(FAULTS))
def test_faults(cloud, rule, statuses, carried_out):
    servers = [cloud.add_server(f"vm-{number}") for number in range(4)]
    cloud.arm_faults([{"match": {"path": "^/compute/.*/action$", "method": "POST"}} | rule])

    began = time.monotonic()
    for server in servers:
        try:
            act(cloud, server, "lock")
        except requests.ConnectionError:
            continue

    assert [frame["status"] for frame in cloud.frames] == statuses
    assert sum(server.locked for server in cloud.servers.values()) == carried_out
    assert time.monotonic() - began >= rule["do"].get("delay", 0)


def test_pages_of_servers_are_linked(cloud):
    cloud.reset({"page_size": 2})
    servers = [cloud.add_server(f"vm-{number}", SOURCE) for number in range(3)]
    cloud.add_server("elsewhere", OTHER)

    first = send(cloud, "GET", f"/servers/detail?all_tenants=True&host={SOURCE}").json()
    link = first["servers_links"][0]["href"].removeprefix(f"{cloud.url}/compute/v2.1")
    second = send(cloud, "GET", link).json()

    assert [found["id"] for found in first["servers"]] == servers[:2]
    assert [found["id"] for found in second["servers"]] == servers[2:]
    assert "servers_links" not in second
    assert send(cloud, "GET", "/servers/detail?marker=nobody").status_code == 400


def test_services_and_aggregates_can_be_changed(cloud, nova):
    cloud.reset(
        {
            "services": [{"host": SOURCE}, {"host": OTHER, "id": "fixed", "sticky": True}],
            "aggregates": [{"id": 7, "name": "rack", "hosts": [SOURCE]}],
        }
    )
    for host in (SOURCE, OTHER):
        nova.disable_service(nova.services(host)[0].id, "It failed.")
    body = {"add_host": {"host": OTHER}}
    added = [send(cloud, "POST", "/os-aggregates/7/action", body).status_code for _ in range(2)]

    assert [service["status"] for service in cloud.services] == ["disabled", "enabled"]
    assert cloud.services[0]["disabled_reason"] == "It failed."
    assert added == [200, 409]
    assert cloud.aggregates[0]["hosts"] == [SOURCE, OTHER]


def test_a_revoked_token_is_replaced_once(cloud, nova):
    nova.services(SOURCE)
    cloud.revoke_tokens()
    nova.services(SOURCE)

    assert [
        (frame["method"], frame["status"])
        for frame in cloud.frames
        if not frame["path"].rstrip("/").endswith("/identity/v3")
    ] == [("POST", 201), ("GET", 200), ("GET", 401), ("POST", 201), ("GET", 200)]


def test_tokens_expire(clock):
    cloud = SimulatedCloud(monotonic=clock.monotonic).start()
    cloud.reset({"token_seconds": 60})
    tokens = f"{cloud.url}/identity/v3/auth/tokens"
    statuses = []
    with requests.Session() as link:
        link.trust_env = False
        token = link.post(tokens, json={"auth": {}}, timeout=10).headers["X-Subject-Token"]
        for _ in range(2):
            validated = link.get(tokens, headers={"X-Subject-Token": token}, timeout=10)
            used = link.get(
                f"{cloud.url}/compute/v2.1/os-services", headers={"X-Auth-Token": token}, timeout=10
            )
            statuses.append((validated.status_code, used.status_code))
            clock.sleep(60)

    cloud.stop()
    assert statuses == [(200, 200), (404, 401)]


def test_stop_ends_delays_and_leaves_no_thread():
    threads = set(threading.enumerate())
    cloud = SimulatedCloud().start()
    server = cloud.add_server("vm-1")
    cloud.arm_faults([{"match": {"action": "lock"}, "do": {"delay": 60}}])
    with requests.Session() as kept:
        kept.trust_env = False
        kept.get(f"{cloud.url}/identity", timeout=10)
        waiting = threading.Thread(target=lambda: act(cloud, server, "lock"), daemon=True)
        waiting.start()
        wait_until(lambda: cloud.requests("lock"))

        cloud.stop()

        waiting.join(10)
    assert set(threading.enumerate()) == threads
