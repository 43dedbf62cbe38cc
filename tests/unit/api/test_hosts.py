"""Protects the way of a host through HTTP, above all the question to Nova."""

import pytest

OS_SERVICES = {"path": "/os-services$"}


@pytest.fixture
def ids(segment, host) -> dict[str, str]:
    return {"segment": segment, "host": host}


@pytest.fixture
def path(ids) -> str:
    """Of the host compute-1."""
    return "/v1/segments/{segment}/hosts/{host}".format(**ids)


def asked(cloud) -> list[str]:
    return [frame["raw_query"] for frame in cloud.frames if "os-services" in frame["path"]]


def test_a_host_from_its_addition_to_its_removal(client, segment, path):
    shown = client("GET", path).json["host"]
    changed = client("PUT", path, {"host": {"reserved": "yes", "name": "compute-2"}})
    listed = client("GET", f"/v1/segments/{segment}/hosts?reserved=ON").json["hosts"]
    deleted = client("DELETE", path)

    assert (shown["name"], shown["reserved"], shown["on_maintenance"]) == (
        "compute-1",
        False,
        False,
    )
    assert shown["failover_segment"]["uuid"] == shown["failover_segment_id"] == segment
    assert listed == [changed.json["host"]]
    assert (listed[0]["name"], listed[0]["reserved"]) == ("compute-2", True)
    assert deleted.status_int == 204
    assert client("GET", path).status_int == 404


def test_nova_must_know_the_host(client, cloud, segment):
    fields = {"name": "a b&\u00e9", "type": "COMPUTE", "control_attributes": "SSH"}

    answer = client("POST", f"/v1/segments/{segment}/hosts", {"host": fields})

    assert answer.status_int == 400
    assert answer.json["badRequest"]["message"] == (
        "Compute service with name a b&\u00e9 could not be found."
    )
    assert asked(cloud) == ["host=a+b%26%C3%A9&binary=nova-compute"]


def test_nova_logs_the_callers_request_id(client, cloud, path):
    request_id = "req-11111111-2222-4333-8444-555555555555"
    headers = {"X-OpenStack-Request-ID": request_id}

    client("PUT", path, {"host": {"name": "compute-1"}}, headers=headers)

    assert cloud.frames[-1]["headers"]["X-OpenStack-Request-ID"] == request_id


def test_nova_is_asked_for_names_only(client, cloud, path):
    hosts = path.rpartition("/")[0]
    before = len(asked(cloud))

    client("PUT", path, {"host": {"reserved": True}})
    client("POST", hosts, {"host": {}})
    client("POST", hosts, {"host": {"name": "n", "type": None, "control_attributes": "c"}})
    client("GET", hosts)

    assert len(asked(cloud)) == before


@pytest.mark.parametrize(
    ("status", "answers"),
    [
        (400, (500, 500)),
        (401, (500, 500)),
        (403, (403, 403)),
        (404, (500, 500)),
        (409, (500, 409)),
        (429, (500, 500)),
        (503, (500, 500)),
    ],
    ids=str,
)
def test_failures_of_nova(client, cloud, path, status: int, answers: tuple[int, int]):
    cloud.arm_faults([{"match": OS_SERVICES, "do": {"status": status}}])
    fields = {"name": "compute-2", "type": "COMPUTE", "control_attributes": "SSH"}

    created = client("POST", path.rpartition("/")[0], {"host": fields})
    updated = client("PUT", path, {"host": {"name": "compute-2"}})

    assert (created.status_int, updated.status_int) == answers


def test_a_host_in_recovery_stays_as_it_is(client, host, path, report):
    client("POST", "/v1/notifications", report)

    changed = client("PUT", path, {"host": {"name": "not-even-known-to-nova"}})
    deleted = client("DELETE", path)

    assert (changed.status_int, deleted.status_int) == (409, 409)
    assert f"Host {host} can't be updated as it is in-use" in changed.text
    assert f"Host {host} can't be deleted as it is in-use" in deleted.text


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "/v1/segments/nope/hosts/nope", "No host with id nope."),
        ("GET", "/v1/segments/nope/hosts/{host}", "under failover_segment 'nope' could not"),
        ("DELETE", "/v1/segments/{segment}/hosts/nope", "Host 'nope' under failover_segment"),
        ("GET", "/v1/segments/nope/hosts?reserved=maybe", "No failover segment with id nope."),
    ],
)
def test_which_thing_was_not_found(client, ids, method: str, path: str, message: str):
    answer = client(method, path.format(**ids))

    assert answer.status_int == 404
    assert message in answer.json["itemNotFound"]["message"]


def test_flags_of_a_list_are_words(client, segment):
    answer = client("GET", f"/v1/segments/{segment}/hosts?on_maintenance=maybe")

    assert answer.json["badRequest"]["message"].startswith(
        "Invalid value for on_maintenance: Unrecognized value 'maybe', acceptable values are: '0',"
    )
