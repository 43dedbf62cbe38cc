"""Protects the report of a failure: what is accepted, what is answered, what is shown later."""

from pathlib import Path
from typing import Any

import pytest


def test_a_report_is_accepted_and_shown(client, segment, host, report):
    created = client("POST", "/v1/notifications", report)
    sent, answered = report["notification"], created.json["notification"]
    shown = client("GET", f"/v1/notifications/{answered['notification_uuid']}").json
    listed = client("GET", "/v1/notifications?generated-since=2026-03-01T10:00:00").json

    assert created.status_int == 202
    assert (answered["status"], answered["payload"]) == ("new", sent["payload"])
    assert (answered["source_host_uuid"], answered["failover_segment_uuid"]) == (host, segment)
    assert answered["generated_time"] == "2026-03-01T10:00:00.250000"
    # The database has whole seconds only.
    stored = {**answered, "generated_time": "2026-03-01T10:00:00.000000"}
    assert shown == {"notification": stored}
    assert listed == {"notifications": [stored]}


@pytest.mark.parametrize("version", ["1.1", "1.3"])
def test_details_come_with_newer_versions(client, host, report, version: str):
    uuid = client("POST", "/v1/notifications", report).json["notification"]["notification_uuid"]

    shown = client("GET", f"/v1/notifications/{uuid}", version=version)

    assert shown.json["notification"]["recovery_workflow_details"] == []
    assert client("GET", "/v1/notifications/nope", version=version).status_int == 404


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({}, 409, "host compute-1 of type COMPUTE_HOST is duplicate."),
        ({"generated_time": "2020-01-01"}, 409, "is duplicate."),
        ({"generated_time": "2026-03-01T10:03:00Z"}, 409, "is duplicate."),
        ({"generated_time": "2026-03-01T11:03:00.5+01:00"}, 202, ""),
        ({"payload": {"event": "STOPPED"}}, 202, ""),
        ({"hostname": "compute-9"}, 400, "Host with name compute-9 could not be found."),
        ({"type": "VM"}, 400, "'instance_uuid' is a required property"),
    ],
    ids=["same", "older", "180s", "180.5s", "other-payload", "unknown-host", "wrong-payload"],
)
@pytest.mark.usefixtures("host")
def test_what_else_is_accepted_after_a_report(
    client, report, change: dict[str, Any], status: int, message: str
):
    client("POST", "/v1/notifications", report)
    report["notification"].update(change)

    answer = client("POST", "/v1/notifications", report)

    assert answer.status_int == status
    assert message in answer.text


def test_reports_of_a_host_on_maintenance_are_refused(client, segment, host, report):
    path = f"/v1/segments/{segment}/hosts/{host}"
    client("PUT", path, {"host": {"on_maintenance": True}})

    answer = client("POST", "/v1/notifications", report)

    assert answer.status_int == 409
    assert "of type 'COMPUTE_HOST' is ignored as the host is already under" in answer.text


@pytest.mark.usefixtures("host")
def test_the_first_of_all_times_is_one(client, report):
    report["notification"]["generated_time"] = "0001-01-01"

    assert client("POST", "/v1/notifications", report).status_int == 202


@pytest.mark.parametrize("time", ["yesterday", "0001-01-01T00:00%2B01:00"])
def test_a_time_that_cannot_be_read_is_no_filter(client, time: str):
    answer = client("GET", f"/v1/notifications?generated-since={time}")

    assert answer.json["badRequest"]["message"] == "Invalid generated-since value"


@pytest.mark.usefixtures("host")
def test_a_lock_service_is_asked_about_host_failures_only(
    conf, make_client, report, tmp_path: Path
):
    conf.set_override("backend_url", f"file://{tmp_path}/locks", "coordination")
    client = make_client()
    process = {"event": "STOPPED", "process_name": "nova-compute"}
    other = {"notification": report["notification"] | {"type": "PROCESS", "payload": process}}
    name = "masakari-create_host_notification-compute-1"

    first = client("POST", "/v1/notifications", other)
    made = list(tmp_path.glob("locks/masakari-*"))
    second = client("POST", "/v1/notifications", report)

    assert (first.status_int, made, second.status_int) == (202, [], 202)
    assert [path.name for path in tmp_path.glob("locks/masakari-*")] == [name]


@pytest.mark.usefixtures("host")
def test_reports_are_taken_without_the_lock_service(
    conf, make_client, report, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "file").touch()
    conf.set_override("backend_url", f"file://{tmp_path}/file", "coordination")
    client = make_client()

    answers = [client("POST", "/v1/notifications", report).status_int for _ in range(2)]

    assert answers == [202, 409]
    assert caplog.text.count("Going on without the lock masakari-create_host_notification") == 2
