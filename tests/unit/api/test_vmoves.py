"""Protects what is shown of the moves of a host recovery."""

import pytest

from masakari_ng.db import vmoves


@pytest.fixture
def notification(client, host, report) -> str:
    created = client("POST", "/v1/notifications", report).json["notification"]
    return str(created["notification_uuid"])


@pytest.fixture
def vmove(database, notification) -> str:
    made = database.write(
        lambda session: vmoves.create(
            session,
            notification_uuid=notification,
            instance_uuid="b16d3f2a-6f0c-4c3b-9f27-0c1de9a4b7f0",
            instance_name="vm-1",
            source_host="compute-1",
        )
    )
    return str(made.uuid)


def test_moves_are_listed_and_shown(client, notification, vmove):
    path = f"/v1/notifications/{notification}/vmoves"

    listed = client("GET", f"{path}?status=pending").json["vmoves"]
    shown = client("GET", f"{path}/{vmove}").json["vmove"]

    assert listed == [shown]
    assert (shown["instance_name"], shown["type"]) == ("vm-1", "evacuation")
    assert shown["start_time"] is None
    assert client("GET", f"{path}?status=failed").json == {"vmoves": []}


def test_upstreams_answers_where_something_is_missing(client, notification, report):
    report["notification"] |= {
        "type": "PROCESS",
        "payload": {"event": "STOPPED", "process_name": "nova-compute"},
    }
    other = client("POST", "/v1/notifications", report).json["notification"]["notification_uuid"]

    assert client("GET", "/v1/notifications/nope/vmoves").status_int == 404
    assert client("GET", "/v1/notifications/nope/vmoves/nope").status_int == 500
    assert client("GET", f"/v1/notifications/{notification}/vmoves/nope").status_int == 404
    for path in ("vmoves", "vmoves/nope"):
        answer = client("GET", f"/v1/notifications/{other}/{path}")
        assert answer.status_int == 400
        assert f"This notification {other} without vm moves." in answer.text
