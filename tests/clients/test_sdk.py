"""Protects that openstacksdk works unchanged, as dashboards and programs of operators use it."""

import pytest

from tests.clients.programs import Refused, Sdk

with_keystone = pytest.mark.parametrize(
    "auth_strategy", ["keystone"], indirect=True, scope="session"
)


def test_segment(sdk):
    made = sdk.create_segment(
        name="sdk-segment", recovery_method="auto", service_type="compute", description="first"
    )
    uuid = made["uuid"]
    shown = sdk.get_segment(uuid)
    changed = sdk.update_segment(uuid, name="sdk-renamed", is_enabled=False)
    listed = [found for found in sdk.segments(recovery_method="auto") if found["uuid"] == uuid]
    disabled = [found["uuid"] for found in sdk.segments(is_enabled=False)]
    sdk.delete_segment(uuid, ignore_missing=False)

    assert isinstance(made["id"], int)
    assert (made["name"], made["description"], made["is_enabled"]) == ("sdk-segment", "first", True)
    assert shown == made
    assert (changed["name"], changed["is_enabled"]) == ("sdk-renamed", False)
    assert (changed["description"], changed["created_at"]) == ("first", made["created_at"])
    assert listed == [changed]
    assert disabled == [uuid]
    with pytest.raises(Refused, match=f"No failover segment with id {uuid}") as refusal:
        sdk.get_segment(uuid)
    assert (refusal.value.kind, refusal.value.status) == ("NotFoundException", 404)


def test_host(sdk, cloud, make_host):
    segment = make_host().segment
    cloud.add_service("sdk-host", state="down")

    made = sdk.create_host(
        segment,
        name="sdk-host",
        type="COMPUTE",
        control_attributes="SSH",
        reserved="False",
        on_maintenance="False",
    )
    uuid = made["uuid"]
    shown = sdk.get_host(uuid, segment)
    changed = sdk.update_host(uuid, segment, on_maintenance=True)
    again = sdk.update_host(uuid, segment, name="sdk-host", reserved="True", type="KVM")
    listed = sdk.hosts(segment, on_maintenance=True)
    sdk.delete_host(uuid, segment, ignore_missing=False)

    assert isinstance(made["id"], int)
    assert (made["name"], made["type"], made["control_attributes"]) == (
        "sdk-host",
        "COMPUTE",
        "SSH",
    )
    assert (made["reserved"], made["on_maintenance"]) == (False, False)
    assert made["failover_segment_id"] == segment
    assert shown == made
    assert (changed["on_maintenance"], changed["reserved"]) == (True, False)
    assert (again["on_maintenance"], again["reserved"], again["type"]) == (True, True, "KVM")
    assert listed == [again]
    with pytest.raises(Refused, match=f"Host '{uuid}' under failover_segment '{segment}'"):
        sdk.get_host(uuid, segment)


def test_notification(sdk, latest_sdk, make_host, finished):
    host = make_host(instances=1)
    report = host.down()

    made = sdk.create_notification(**report)
    uuid = finished(made["notification_uuid"])
    shown = sdk.get_notification(uuid)
    detailed = latest_sdk.get_notification(uuid)

    assert isinstance(made["id"], int)
    assert (made["type"], made["status"]) == ("COMPUTE_HOST", "new")
    assert (made["source_host_uuid"], made["payload"]) == (host.uuid, report["payload"])
    assert made["generated_time"] == report["generated_time"]
    assert shown["generated_time"] == report["generated_time"][:19] + ".000000"
    assert (shown["status"], shown["recovery_workflow_details"]) == ("finished", None)
    task = detailed["recovery_workflow_details"][0]
    assert (task["name"], task["state"], task["progress"]) == (
        "DisableComputeServiceTask",
        "SUCCESS",
        1.0,
    )
    assert task["progress_details"][-1]["progress"] == "1.0"
    since = {"generated_since": report["generated_time"][:19]}
    wanted = {"source_host_uuid": host.uuid, "type": "COMPUTE_HOST", "status": "finished"}
    assert [found["notification_uuid"] for found in sdk.notifications(**wanted, **since)] == [uuid]
    assert sdk.notifications(**wanted, generated_since="2099-01-01") == []


def test_vmove(sdk, recovered):
    listed = sdk.vmoves(recovered, status="succeeded", sort_key="instance_name", sort_dir="asc")
    shown = sdk.get_vmove(listed[0]["uuid"], recovered)

    assert [found["server_name"][-4:] for found in listed] == ["vm-0", "vm-1", "vm-2"]
    assert {(found["type"], found["dest_host"]) for found in listed} == {("evacuation", "spare")}
    assert all(found["server_id"] and found["source_host"] for found in listed)
    assert all(found["start_time"] <= found["end_time"] for found in listed)
    assert shown == listed[0]


@pytest.fixture(scope="module")
def parents(sdk, cloud, make_host, finished, recovered):
    """What a list is asked for with, where each list has at least three objects."""
    segment = make_host().segment
    for name in ("page-1", "page-2"):
        cloud.add_service(name, state="down")
        sdk.create_host(segment, name=name, type="KVM", control_attributes="SSH")
    for _ in range(2):
        finished(sdk.create_notification(**make_host().down())["notification_uuid"])
    return {"segments": [], "hosts": [segment], "notifications": [], "vmoves": [recovered]}


@pytest.mark.parametrize("size", [1, 2], ids="size-{}".format)
@pytest.mark.parametrize("noun", ["segments", "hosts", "notifications", "vmoves"])
def test_pages_follow_the_marker_to_the_end(sdk, parents, noun, size):
    whole = getattr(sdk, noun)(*parents[noun])

    paged = getattr(sdk, noun)(*parents[noun], limit=size)

    assert len(whole) > size
    assert [found["id"] for found in paged] == [found["id"] for found in whole]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda sdk, host: sdk.create_notification(**(host.down() | {"hostname": "nowhere"})),
            ("BadRequestException", 400),
            "Host with name nowhere could not be found.",
        ),
        (
            lambda sdk, host: sdk.create_host(
                host.segment, name=host.name, type="KVM", control_attributes="SSH"
            ),
            ("ConflictException", 409),
            "already exists.",
        ),
        (
            lambda sdk, host: sdk.get_segment(1),
            ("NotFoundException", 404),
            "No failover segment with id 1.",
        ),
        (
            lambda sdk, host: sdk.hosts(host.segment, reserved="maybe"),
            ("BadRequestException", 400),
            "Invalid value for reserved",
        ),
        (
            lambda sdk, host: sdk.segments(limit=1, marker=99999),
            ("BadRequestException", 400),
            "Marker 99999 could not be found.",
        ),
        (
            lambda sdk, host: sdk.notifications(generated_since="yesterday"),
            ("BadRequestException", 400),
            "Invalid generated-since value",
        ),
    ],
    ids=["unknown-host", "duplicate", "number-in-path", "boolean", "marker", "time"],
)
def test_refusal_has_class_status_and_message(sdk, make_host, call, kind, message):
    with pytest.raises(Refused, match=message) as refusal:
        call(sdk, make_host())

    assert (refusal.value.kind, refusal.value.status) == kind


@with_keystone
def test_asks_for_a_new_token_when_its_own_is_refused(cloud, sdk):
    before = sdk.segments()

    cloud.revoke_tokens()

    assert sdk.segments() == before


@with_keystone
def test_user_without_the_role_is_refused(programs, api, make_host, tmp_path):
    segment = make_host().segment
    access = {
        "OS_AUTH_TYPE": "admin_token",
        "OS_ENDPOINT": f"{api.url}/v1",
        "OS_TOKEN": "reader-token",
    }

    with (
        Sdk(programs, access, log=tmp_path / "log") as reader,
        pytest.raises(Refused, match="os_masakari_api:segments:delete") as refusal,
    ):
        reader.delete_segment(segment)

    assert (refusal.value.kind, refusal.value.status) == ("ForbiddenException", 403)
