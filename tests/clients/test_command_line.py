"""Protects that `openstack segment ...` and `openstack notification ...` work unchanged."""

import json

import pytest


def test_segment(openstack):
    made = openstack("segment create --description first --is_enabled false cli auto compute")
    listed = openstack("segment list --limit 1 --sort name:asc --filters recovery_method=auto")
    changed = openstack("segment update --description second --is_enabled true cli")
    shown = openstack("segment show cli")
    old = openstack("--os-ha-api-version 1.0 segment show", made["uuid"])
    deleted = openstack.output("segment delete cli")

    columns = ["uuid", "name", "description", "service_type", "recovery_method", "is_enabled"]
    assert {key: made[key] for key in columns[1:]} == {
        "name": "cli",
        "description": "first",
        "service_type": "compute",
        "recovery_method": "auto",
        "is_enabled": False,
    }
    assert [found for found in listed if found["name"] == "cli"] == [
        {key: made[key] for key in columns}
    ]
    assert (changed["description"], changed["is_enabled"]) == ("second", True)
    assert shown == changed
    assert shown["id"] == made["id"]
    assert "is_enabled" not in old
    assert deleted == (0, "Segment deleted: cli")


def test_host(openstack, cloud, make_host, sdk):
    segment = sdk.get_segment(make_host().segment)["name"]
    cloud.add_service("cli-host", state="down")

    made = openstack("segment host create --reserved True cli-host COMPUTE SSH", segment)
    listed = openstack("segment host list", segment)
    changed = openstack("segment host update --on_maintenance True", segment, "cli-host")
    shown = openstack("segment host show", segment, "cli-host")
    deleted = openstack.output("segment host delete", segment, "cli-host")

    assert (made["name"], made["type"], made["control_attributes"]) == (
        "cli-host",
        "COMPUTE",
        "SSH",
    )
    assert (made["reserved"], made["on_maintenance"]) == (True, False)
    moments = ("created_at", "updated_at")
    assert listed[0] == {key: value for key, value in made.items() if key not in moments}
    assert (changed["reserved"], changed["on_maintenance"]) == (True, True)
    assert shown == changed
    assert deleted == (0, "Host deleted: cli-host")


def test_notification_and_its_vmoves(openstack, make_host, finished):
    host = make_host(instances=2)
    report = host.down()
    words = ["hostname", "generated_time"]

    made = openstack(
        "notification create COMPUTE_HOST",
        *(report[word] for word in words),
        json.dumps(report["payload"]),
    )
    uuid = finished(made["notification_uuid"])
    shown = openstack("notification show", uuid)
    listed = openstack("notification list --filters", f"source_host_uuid={host.uuid}")
    moves = openstack("notification vmove list --sort instance_name:asc", uuid)
    move = openstack("notification vmove show", uuid, moves[0]["uuid"])

    assert (made["type"], made["source_host_uuid"]) == ("COMPUTE_HOST", host.uuid)
    assert (made["payload"], shown["status"]) == (report["payload"], "finished")
    details = shown["recovery_workflow_details"]
    assert {task["state"] for task in details} == {"SUCCESS"}
    assert all(task["progress_details"] for task in details)
    assert [found["notification_uuid"] for found in listed] == [uuid]
    assert list(listed[0]) == [
        "notification_uuid",
        "generated_time",
        "status",
        "type",
        "source_host_uuid",
        "payload",
    ]
    assert [found["server_name"] for found in moves] == [f"{host.name}-vm-{n}" for n in (0, 1)]
    assert {(found["status"], found["dest_host"]) for found in moves} == {("succeeded", "spare")}
    assert move.items() >= moves[0].items()
    assert (move["message"], move["type"]) == (None, "evacuation")


@pytest.fixture
def known(sdk, recovered):
    """Name of a segment, uuid of a notification."""
    return {"segment": sdk.segments(limit=1)[0]["name"], "notification": recovered}


@pytest.mark.parametrize("auth_strategy", ["noauth2"], indirect=True, scope="session")
@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        (
            "segment create {segment} auto compute",
            1,
            "Failover segment with name {segment} already exists.",
        ),
        (
            "segment host create nowhere COMPUTE SSH {segment}",
            1,
            "Compute service with name nowhere could not be found.",
        ),
        ("segment delete nothing", 0, "No failover segment with id nothing."),
        ("segment host show {segment} nothing", 1, "Segment host is not found: nothing"),
        ("notification show nothing", 1, "Notification not found: nothing"),
        ("notification vmove show {notification} nothing", 1, "VMove nothing is not found."),
    ],
    ids=["duplicate", "unknown-host", "delete", "host", "notification", "vmove"],
)
def test_refusal_reaches_the_user(openstack, known, command, status, message):
    ended, printed = openstack.output(command.format(**known))

    assert message.format(**known) in printed, printed
    assert ended == status, printed
