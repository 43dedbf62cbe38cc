"""Protects the way of a segment through HTTP: create, show, change, list, delete."""

import pytest


def test_a_segment_from_its_creation_to_its_end(client):
    body = {"segment": {"name": "a", "recovery_method": "auto", "service_type": "COMPUTE"}}

    created = client("POST", "/v1/segments", body)
    path = f"/v1/segments/{created.json['segment']['uuid']}"
    changed = client("PUT", path, {"segment": {"name": "b", "enabled": "no"}}, version="1.2")
    shown = client("GET", path)
    deleted = client("DELETE", path)

    assert created.status_int == 201
    assert created.json["segment"]["enabled"] is True
    # Any text for `enabled` means true in an update, as in upstream.
    assert shown.json == changed.json
    assert (shown.json["segment"]["name"], shown.json["segment"]["enabled"]) == ("b", True)
    assert (deleted.status_int, deleted.body) == (204, b"")
    assert deleted.headers["Content-Type"] == "application/json"
    assert deleted.headers["Content-Length"] == "0"
    assert client("GET", path).status_int == 404
    assert client("GET", "/v1/segments").json == {"segments": []}


def test_times_have_six_digits_and_no_zone(client, segment):
    shown = client("GET", f"/v1/segments/{segment}").json["segment"]

    assert shown["created_at"].endswith(".000000")
    assert len(shown["created_at"]) == len("2026-03-01T10:00:00.000000")
    assert shown["updated_at"] is None


def test_a_name_is_taken_once(client, segment):
    body = {"segment": {"name": "rack-1", "recovery_method": "auto", "service_type": "COMPUTE"}}

    answer = client("POST", "/v1/segments", body)

    assert answer.status_int == 409
    assert answer.json["conflictingRequest"]["message"] == (
        "Failover segment with name rack-1 already exists."
    )


@pytest.mark.parametrize("word", [False, "no", "0", "Off", "FALSE"])
def test_words_are_understood_at_creation(client, word: object):
    fields = {"name": "n", "recovery_method": "auto", "service_type": "s", "enabled": word}

    answer = client("POST", "/v1/segments", {"segment": fields}, version="1.2")

    assert answer.json["segment"]["enabled"] is False


def test_a_segment_in_recovery_stays_as_it_is(client, segment, host, report):
    client("POST", "/v1/notifications", report)

    changed = client("PUT", f"/v1/segments/{segment}", {"segment": {"name": "b"}})
    deleted = client("DELETE", f"/v1/segments/{segment}")

    assert (changed.status_int, deleted.status_int) == (409, 409)
    assert f"Failover segment {segment} can't be updated" in changed.text
    assert f"Failover segment ({segment}) can't be deleted" in deleted.text


@pytest.mark.parametrize(
    ("query", "status", "names"),
    [
        ("", 200, ["c", "b", "a"]),
        ("?limit=+02", 200, ["c", "b"]),
        ("?limit=1;limit=2", 200, ["c", "b"]),
        ("?sort_dir=asc&sort_key=%20name%20", 200, ["a", "b", "c"]),
        ("?enabled=maybe", 200, []),
        ("?limit=0&marker=nonsense&sort_key=nonsense", 200, []),
        ("?limit=", 400, None),
        ("?page_size=x", 400, None),
        ("?limit=-1", 400, None),
        ("?service_type=%ff", 400, None),
    ],
)
def test_lists_are_cut_and_sorted(client, query: str, status: int, names: list[str] | None):
    for name in "abc":
        fields = {"name": name, "recovery_method": "auto", "service_type": "s"}
        client("POST", "/v1/segments", {"segment": fields})

    answer = client("GET", f"/v1/segments{query}")

    assert answer.status_int == status
    if names is not None:
        assert [found["name"] for found in answer.json["segments"]] == names


def test_no_list_is_longer_than_the_limit_of_the_service(conf, make_client):
    conf.set_override("osapi_max_limit", 1)
    client = make_client()
    for name in "ab":
        fields = {"name": name, "recovery_method": "auto", "service_type": "s"}
        client("POST", "/v1/segments", {"segment": fields})

    for query in ("", "?limit=5"):
        assert len(client("GET", f"/v1/segments{query}").json["segments"]) == 1
