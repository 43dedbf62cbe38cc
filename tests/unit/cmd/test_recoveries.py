"""Protects what an operator sees of recoveries, and that nobody is robbed of one by mistake."""

import json
import re
from datetime import datetime

import pytest
from sqlalchemy import text

from masakari_ng.cmd import manage
from masakari_ng.db import claims, hosts, journal, notifications, segments, vmoves
from masakari_ng.db.session import Database
from masakari_ng.domain import NotificationStatus, NotificationType, RecoveryMethod, VMoveStatus

# oslo.log says so where the suite runs on green threads.
pytestmark = pytest.mark.filterwarnings("ignore:Eventlet support is deprecated:DeprecationWarning")

ENGINE = "controller-1:4711:0123456789abcdef"


@pytest.fixture
def run(tmp_path, capsys, database):
    path = tmp_path / "masakari.conf"
    path.write_text(f"[database]\nconnection = sqlite:///{tmp_path}/masakari.sqlite\n")

    def call(*arguments):
        try:
            code = manage.main(["--config-file", str(path), "recovery", *arguments])
        except SystemExit as ended:
            code = ended.code
        return code, capsys.readouterr().out

    return call


@pytest.fixture
def claimed(database: Database):
    """A host failure in work; gives its uuid."""

    def make(session):
        segment = segments.create(
            session, name="rack", service_type="compute", recovery_method=RecoveryMethod.AUTO
        )
        host = hosts.create(
            session,
            segment_uuid=segment.uuid,
            name="compute-1",
            type="COMPUTE",
            control_attributes="SSH",
        )
        made = notifications.create(
            session,
            type=NotificationType.COMPUTE_HOST,
            generated_time=datetime(2026, 1, 1),
            source_host_uuid=host.uuid,
            payload={},
            failover_segment_uuid=segment.uuid,
        )
        claims.take(session, made, ENGINE, expected={NotificationStatus.NEW})
        return made.notification_uuid

    return database.write(make)


def plan(database, uuid, name, status="pending", **entry):
    def make(session):
        vmove = vmoves.create(
            session,
            notification_uuid=uuid,
            instance_uuid=f"uuid-of-{name}",
            instance_name=name,
            source_host="compute-1",
        )
        vmoves.update(session, vmove.uuid, status=VMoveStatus(status))
        journal.plan(session, vmove)
        journal.update(session, vmove.uuid, **({"vm_state": None} | entry))

    database.write(make)


def fall_silent(database, seconds):
    age = f"datetime('now', '-{seconds} seconds')"
    sql = f"UPDATE masakari_ng_claims SET heartbeat = {age}, claimed_at = {age}"
    database.write(lambda session: session.execute(text(sql)))


def owners(database):
    return [seen.claim.engine for seen in database.read(claims.seen)]


def test_without_claims_there_is_nothing_to_see(run):
    assert run("list") == (0, "No recovery is claimed.\n")
    assert run("list", "--json") == (0, "[]\n")


def test_list_tells_who_works_on_what_since_when(run, database, claimed):
    fall_silent(database, 200)
    plan(database, claimed, "vm-1", "succeeded")
    plan(database, claimed, "vm-2")

    code, shown = run("list")

    title, line = shown.splitlines()
    assert code == 0
    assert title.split("  ")[0] == "NOTIFICATION UUID"
    assert re.split("  +", line) == [
        claimed,
        "COMPUTE_HOST",
        "compute-1",
        "running",
        "controller-1 (process 4711)",
        "working",
        "3 min ago",
        "3 min ago DEAD?",
        "1 pending, 1 succeeded",
    ]


def test_json_has_all_numbers(run, database, claimed):
    fall_silent(database, 3)

    ((found,), code) = (json.loads(run("list", "--json")[1]), 0)

    assert code == 0
    assert found["claim"]["engine"] == ENGINE
    assert found["claim"]["working"] is True
    assert 3 <= found["claim"]["age"] < 60
    assert 3 <= found["claim"]["silence"] < 60
    assert (found["host"], found["status"], found["vmoves"]) == ("compute-1", "running", {})


def test_show_tells_how_far_each_instance_is(run, database, claimed):
    plan(database, claimed, "vm-1")
    plan(database, claimed, "vm-2", vm_state="active", locked=True)
    plan(database, claimed, "vm-3", "ongoing", vm_state="active", locked=True, evacuate_sent=True)
    plan(database, claimed, "vm-4", "succeeded", vm_state="active", locked=True, target="spare")

    code, shown = run("show", claimed)

    head, _, table = shown.partition("\n\n")
    assert code == 0
    assert f"Notification uuid  {claimed}" in head
    lines = [re.split("  +", line)[1:6] for line in table.splitlines()[1:]]
    assert lines == [
        ["vm-1", "pending", "not begun", "no", "-"],
        ["vm-2", "pending", "prepared", "yes", "-"],
        ["vm-3", "ongoing", "evacuation sent", "yes", "-"],
        ["vm-4", "succeeded", "to be unlocked", "yes", "spare"],
    ]
    instances = json.loads(run("show", "--json", claimed)[1])["instances"]
    assert [instance["locked_by_us"] for instance in instances] == [False, True, True, True]


def test_show_of_nothing_is_an_error(run):
    assert run("show", "nowhere") == (1, "No notification with id nowhere.\n")


def test_release_refuses_while_the_engine_lives(run, database, claimed):
    fall_silent(database, 30)

    code, shown = run("release", claimed)

    assert code == 1
    assert "Refused: engine controller-1 (process 4711) gave a sign of life 3" in shown
    assert "Nothing was changed" in shown
    assert owners(database) == [ENGINE]


@pytest.mark.parametrize(("silence", "options"), [(30, ["--force"]), (70, [])])
def test_release_leaves_the_claim_to_the_next_engine(run, database, claimed, silence, options):
    """It does not drop it: the locks of the dead engine are known from its journal alone."""
    plan(database, claimed, "vm-1", locked=True)
    fall_silent(database, silence)

    code, shown = run("release", claimed, *options)

    assert code == 0
    assert "within 15 s (claim_heartbeat)" in shown
    assert owners(database) == [claims.NOBODY]
    (stale,) = database.read(lambda session: claims.stale(session, 60))
    assert stale.working
    assert len(database.read(lambda session: journal.of_notification(session, claimed))) == 1
    assert run("release", claimed)[0] == 0
    assert "none; it is taken by the next engine" in run("list")[1]


def test_release_without_a_claim_says_so(run):
    code, shown = run("release", "nowhere")

    assert code == 1
    assert shown == "No engine has a claim on notification nowhere. Nothing was changed.\n"
