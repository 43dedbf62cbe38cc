"""Protects operators of engines from what users of Masakari ran into.

`SHOWN_BY` names, for each row of the list of such faults, the tests that show the right behaviour;
those of this module need real services. Rows that masakari-ng has as upstream, since no option
changes them yet, are shown as they are.
"""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pymysql
import pytest

from tests.servers import eventually

TESTS = Path(__file__).resolve().parents[2]
HERE = "integration/engine/test_faults.py::"
MOVE = "unit/recovery/test_move.py::"
HOST = "unit/recovery/test_host.py::"
RESERVED = "unit/recovery/test_reserved_host.py::"
INSTANCE = "unit/recovery/test_instance.py::"
PROCESS = "unit/recovery/test_process.py::"
PERIODIC = "unit/engine/test_periodic.py::"
MANAGER = "unit/engine/test_manager.py::"
FAILURES = "unit/engine/test_failures.py::"
RECORDED = "conformance/recovery/scenarios/"
STATES = f"{MOVE}test_each_state_has_its_frames"
FAILED_MOVES = f"{MOVE}test_a_failure_is_written_down_and_the_instance_unlocked"
LEFT_ALONE = f"{INSTANCE}test_instance_that_is_left_alone"
AS_UPSTREAM = f"{RECORDED}host-failure-auto.json"

SHOWN_BY = {
    # Life of a notification.
    "48 removed host": f"{PERIODIC}test_trouble_with_one_does_not_end_the_pass",
    "49 retries behind a slow one": f"{HERE}test_a_retry_waits_for_no_other_host",
    "50 one retry, as upstream": f"{MANAGER}test_retry_is_the_last_one",
    "51 expired while it runs": f"{HERE}test_what_is_worked_on_does_not_expire",
    "53 asks for ever": FAILED_MOVES,
    "54 timeout of a move": FAILED_MOVES,
    "54 timeout of a restart": f"{INSTANCE}test_failure",
    "54 timeout of a service": f"{PROCESS}test_service_that_stays_enabled",
    "55 timeout kills the flow": f"{RECORDED}host-failure-evacuation-timeout.json",
    "56 clock steps": f"{MOVE}test_waits_do_not_mind_a_clock_that_is_set",
    "57 fork with eventlet": "integration/api/test_server.py::workers",
    "58 error event": "unit/engine/test_events.py::test_an_unexpected_error_is_told",
    "59 503 in between": f"{HOST}test_an_outage_in_between_leaves_no_instance_without_an_end",
    "61 database away": f"{HERE}test_a_database_that_hangs_leaves_no_lock",
    # Host recovery.
    "63 fixed wait": f"{HOST}test_it_can_go_on_as_soon_as_nova_sees_the_host_down",
    "64 source still up": f"{HOST}test_it_can_go_on_as_soon_as_nova_sees_the_host_down",
    "67 reserved host used up": f"{RESERVED}test_reserved_hosts_that_took_nothing_are_reserved",
    "68 reserved host is down": f"{RESERVED}test_reserved_host_that_is_down_is_passed_over",
    "70 reserved host on maintenance": f"{FAILURES}test_reserved_hosts_that_may_be_used",
    "71 failed host was reserved": f"{FAILURES}test_host_that_is_down_goes_on_maintenance_first",
    "72 all aggregates": f"{RESERVED}test_aggregates_of_the_failed_host",
    "75 text, as upstream": f"{RECORDED}host-failure-stop-after-evacuation-500.json",
    "76 user acts meanwhile": STATES,
    "77 states": f"{RECORDED}host-failure-vm-state-matrix.json",
    "77 task states": f"{RECORDED}host-failure-task-state-matrix.json",
    "78 failed at once": FAILED_MOVES,
    "79 paused ends stopped, as upstream": STATES,
    "80 HA_Enabled=False, as upstream": f"{RECORDED}host-failure-ha-enabled-values.json",
    "81 service-owned, as upstream": AS_UPSTREAM,
    "82 local disks, as upstream": AS_UPSTREAM,
    "83 180 s to stop": "unit/conf/data/options.json::wait_period_after_power_off",
    "84 reason": f"{RECORDED}host-failure-no-disable-reason.json",
    "84 certificates": "unit/compute/test_auth.py::test_the_session_has_limits_connections",
    "84 domains, region, interface": f"{HERE}test_nova_is_found_as_configured",
    "85 tokens": f"{HOST}test_one_recovery_needs_one_token",
    "86 no service, as upstream": f"{RECORDED}host-failure-no-compute-service.json",
    "87 details of what runs": f"{HERE}test_details_can_be_read_all_the_time",
    "88 order of details": f"{RESERVED}test_details_of_a_fallback_come_in_the_order_of_time",
    "89 segment disabled": f"{MANAGER}test_disabled_segment_is_ignored_with_a_message",
    "90 nowhere to go, as upstream": f"{HERE}test_without_another_host_every_move_fails",
    "107 source comes back, as upstream": f"{HERE}test_a_source_that_comes_back_keeps_the_rest",
    "108 Nova hangs": f"{HERE}test_a_hanging_nova_holds_up_one_request",
    # Instance recovery.
    "92 stopped by its owner": f"{INSTANCE}test_instance_that_its_user_stopped_can_stay_so",
    "93 stopped already": f"{INSTANCE}test_instance_that_stops_by_itself_meanwhile",
    "94 paused, rescued": LEFT_ALONE,
    "95 other events": f"{FAILURES}test_nothing_is_touched_for_what_is_no_failure",
    "96 not HA-enabled": LEFT_ALONE,
    "97 suspended and the like, as upstream": f"{INSTANCE}test_failure",
    "98 resized, as upstream": f"{RECORDED}instance-failure-resized.json",
    "99 many at once": f"{HERE}test_many_crashes_at_once",
}


@pytest.mark.parametrize("where", SHOWN_BY.values(), ids=list(SHOWN_BY))
def test_each_fault_has_its_test(where):
    file, _, name = where.partition("::")

    assert name in (TESTS / file).read_text()


def test_a_retry_waits_for_no_other_host(region):
    """Two slow recoveries come first; the third needs as long as if it were alone."""
    quick = region.report(region.add_host("quick", 1, evacuate={"seconds": 0.3}), casts=0)
    slow = [
        region.report(region.add_host(name, 1, evacuate={"outcome": "never"}), casts=0)
        for name in ("slow-1", "slow-2")
    ]
    settings = {
        "process_unfinished_notifications_interval": 2,
        "retry_notification_new_status_interval": 1,
    }

    region.daemons.engine({"DEFAULT": settings})

    eventually(lambda: region.statuses()[quick] == "finished")
    assert [region.statuses()[uuid] for uuid in slow] == ["running", "running"]


def test_what_is_worked_on_does_not_expire(region):
    host = region.add_host("compute-1", 1, evacuate={"seconds": 5})
    settings = {"notifications_expired_interval": 1, "check_expired_notifications_interval": 1}
    engine = region.daemons.engine({"DEFAULT": settings})

    reported = region.report(host)

    seen = set()
    while not seen & {"finished", "failed", "error"}:
        seen.add(region.statuses()[reported])
        time.sleep(0.1)
    assert seen <= {"new", "running", "finished"}
    assert "expired" not in engine.log.read_text()


@pytest.mark.parametrize("hangs", ["one table", "the server"])
def test_a_database_that_hangs_leaves_no_lock(region, mariadb, synced_url, hangs):
    """In the middle of three moves, for longer than a claim lives without a sign of life."""
    host = region.add_host("compute-1", 3, evacuate={"seconds": 0.5})
    region.daemons.engine({"DEFAULT": {"host_failure_recovery_threads": 2}})
    region.report(host)
    eventually(lambda: region.evacuations().total() >= 1)

    if hangs == "one table":
        schema = mariadb.schema_of(synced_url)
        with pymysql.connect(
            host="127.0.0.1", port=mariadb.port, user="root", database=schema
        ) as other:
            other.cursor().execute("LOCK TABLES vmoves WRITE")
            time.sleep(6)
    else:
        mariadb.pause()
        time.sleep(6)
        mariadb.resume()

    eventually(lambda: set(region.statuses().values()) == {"finished"}, timeout=60)
    names = [f"compute-1-vm-{number}" for number in range(3)]
    assert region.evacuations() == Counter(names)
    assert region.vmoves() == Counter((name, "succeeded") for name in names)
    assert not any(server.locked for server in region.cloud.servers.values())
    assert region.leftovers() == []


HANGING = {
    "services": {"method": "GET", "path": "/os-services"},
    "disable": {"method": "PUT", "path": "/os-services"},
    "list": {"method": "GET", "path": "/servers/detail"},
    "look": {"method": "GET", "path": "/servers/[0-9a-f]{8}-"},
    "lock": {"action": "lock"},
    "evacuate": {"action": "evacuate"},
    "unlock": {"action": "unlock"},
}
FAILS = {"services", "disable", "list", "look", "lock", "evacuate"}


@pytest.mark.parametrize("what", HANGING)
def test_a_hanging_nova_holds_up_one_request(region, what):
    """The recovery ends, whichever request it was, and another host does not notice."""
    host = region.add_host("compute-1", 2, evacuate={"seconds": 0.3})
    other = region.add_host("compute-2", 1, evacuate={"seconds": 0.3})
    region.daemons.settings["masakari_ng"] |= {"nova_read_timeout": 3}
    region.daemons.engine()
    hang = {"match": HANGING[what], "do": {"delay": 600}, "times": 1}
    region.cloud.arm_faults([hang])

    hung = region.report(host)
    seen = region.cloud.frames
    eventually(lambda: any(region.cloud.matches(HANGING[what], frame) for frame in list(seen)))
    fine = region.report(other)
    eventually(lambda: region.statuses()[fine] == "finished")
    assert region.statuses()[hung] == "running"

    end = "error" if what in FAILS else "finished"
    eventually(lambda: region.statuses()[hung] == end)
    assert {status for _, status in region.vmoves()} <= {"succeeded", "failed"}
    assert not any(server.locked for server in region.cloud.servers.values())


def test_a_source_that_comes_back_keeps_the_rest(region):
    """Nova refuses to evacuate from a service that is up; nothing is moved by force."""
    host = region.add_host("compute-1", 4, evacuate={"seconds": 1})
    region.daemons.engine({"DEFAULT": {"host_failure_recovery_threads": 2}})
    reported = region.report(host)
    eventually(lambda: region.evacuations(accepted=True).total() == 2)

    with region.cloud.lock:
        for service in region.cloud.services:
            if service["host"] == "compute-1":
                service.update(state="up", _down_at=None)

    eventually(lambda: region.statuses()[reported] == "error")
    moved = Counter(server.host for server in region.cloud.servers.values())
    assert moved == {"spare": 2, "compute-1": 2}
    assert Counter(status for _, status in region.vmoves().elements()) == {
        "succeeded": 2,
        "failed": 2,
    }
    assert not any(server.locked for server in region.cloud.servers.values())
    assert next(s["status"] for s in region.cloud.services if s["host"] == "compute-1") == (
        "disabled"
    )


def test_without_another_host_every_move_fails(region):
    region.cloud.reset({"realistic": True})
    host = region.add_host("compute-1", 2, evacuate={"seconds": 0.3})
    region.daemons.engine()

    reported = region.report(host)

    eventually(lambda: region.statuses()[reported] == "error")
    failed = {row["message"] for row in region.rows("SELECT message FROM vmoves")}
    assert {text.partition(" instance ")[0] for text in failed} == {"Failed to evacuate"}
    assert {server.vm_state for server in region.cloud.servers.values()} == {"error"}


def test_nova_is_found_as_configured(region):
    """Domains by name or id, another region, another interface, another name in the catalog."""
    region.daemons.settings["DEFAULT"] |= {
        "os_user_domain_name": "Users",
        "os_project_domain_name": "Projects",
        "os_region_name": "RegionOne",
        "nova_catalog_admin_info": "compute:nova:internalURL",
    }
    region.daemons.engine()
    region.cloud.arm_faults()

    reported = region.report(region.add_host("compute-1", 1, evacuate={"seconds": 0.3}))

    eventually(lambda: region.statuses()[reported] == "finished")
    (login,) = (f["body"] for f in region.cloud.frames if f["path"].endswith("/auth/tokens"))
    assert login["auth"]["identity"]["password"]["user"]["domain"] == {"name": "Users"}
    assert login["auth"]["scope"]["project"]["domain"] == {"name": "Projects"}


def test_details_can_be_read_all_the_time(region):
    """From before the flow begins until it has ended."""
    host = region.add_host("compute-1", 3, evacuate={"seconds": 1})
    api = region.daemons.api()
    region.daemons.engine({"DEFAULT": {"host_failure_recovery_threads": 1}})
    reported = region.report(host)

    answers = []
    while not answers or answers[-1].json()["notification"]["status"] != "finished":
        answers.append(api.call("GET", f"/v1/notifications/{reported}", version="1.1"))
        assert answers[-1].status_code == 200, answers[-1].text
        time.sleep(0.1)

    shown = [answer.json()["notification"]["recovery_workflow_details"] for answer in answers]
    told = [sum(len(task["progress_details"]) for task in details) for details in shown]
    assert told == sorted(told)
    assert len(set(told)) > 3


def test_many_crashes_at_once(region):
    """Each report is accepted, and each instance restarted, however many die together."""
    many = 50
    region.add_host("compute-1")
    script = {"start": {"polls": 0}, "stop": {"polls": 0}, "metadata": {"HA_Enabled": "True"}}
    instances = [region.cloud.add_server(f"vm-{n}", "compute-1", **script) for n in range(many)]
    api = region.daemons.api()
    region.daemons.engine()

    def crash(instance):
        report = {
            "type": "VM",
            "hostname": "compute-1",
            "generated_time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
            "payload": {
                "event": "LIFECYCLE",
                "vir_domain_event": "STOPPED_FAILED",
                "instance_uuid": instance,
            },
        }
        return api.call("POST", "/v1/notifications", {"notification": report}).status_code

    with ThreadPoolExecutor(many) as pool:
        assert set(pool.map(crash, instances)) == {202}

    eventually(lambda: Counter(region.statuses().values()) == {"finished": many}, timeout=90)
    once = Counter(instances)
    assert region.cloud.requests("os-stop") == region.cloud.requests("os-start") == once
