"""Protects the recovery of a host from end to end: requests, vmoves, progress, end, takeover."""

from dataclasses import replace

import pytest

from masakari_ng import errors
from masakari_ng.domain import Correction, RecoveryMethod
from masakari_ng.recovery.host import HostRecovery
from masakari_ng.recovery.runner import FlowRunner
from tests.simulated_clock import SimulatedClock
from tests.unit.recovery.conftest import described, details, uuid_of

VM1, VM2, VM3 = (uuid_of(name) for name in ("vm-1", "vm-2", "vm-3"))
HA = {"metadata": {"HA_Enabled": "True"}}
SERVICE = "c8b6aa8d-d1d9-5ab4-b5f2-b45dd7d4d5a8"


def test_three_instances_move(recovery, build):
    """As recorded: host-failure-auto."""
    build(described("vm-1"), described("vm-2", **HA), described("vm-3", vm_state="stopped"))
    (service,) = [s["id"] for s in recovery.cloud.services if s["host"] == "compute-1"]

    recovery.run()

    assert recovery.frames() == [
        "GET /os-services",
        f"PUT /os-services/{service}",
        "GET /servers/detail",
    ]
    assert recovery.cloud.services[0]["status"] == "disabled"
    assert recovery.cloud.services[0]["disabled_reason"] == "Masakari detected host failed."
    moves = [(m.instance_uuid, m.instance_name, m.source_host, m.dest_host) for m in recovery.moves]
    assert moves == [
        (VM2, "vm-2", "compute-1", "compute-2"),
        (VM1, "vm-1", "compute-1", "compute-2"),
        (VM3, "vm-3", "compute-1", "compute-2"),
    ]
    assert {(m.type, m.status, m.message) for m in recovery.moves} == {
        ("evacuation", "succeeded", None)
    }
    assert recovery.journal == []
    assert details(recovery) == {
        "DisableComputeServiceTask": (
            "SUCCESS",
            [
                (0.0, "Disabling compute service on host: 'compute-1'"),
                (1.0, "Disabled compute service on host: 'compute-1'"),
            ],
        ),
        "PrepareHAEnabledInstancesTask": (
            "SUCCESS",
            [
                (0.0, "Preparing instances for evacuation"),
                (0.3, "Total instances running on failed host 'compute-1' is 3"),
                (0.6, "Total HA Enabled instances count: '1'"),
                (0.7, "Total Non-HA Enabled instances count: '2'"),
                (
                    0.8,
                    "All instances (HA Enabled/Non-HA Enabled) should be considered for evacuation."
                    " Total count is: '3'",
                ),
                (1.0, f"Instances to be evacuated are: '{VM2},{VM1},{VM3}'"),
            ],
        ),
        "EvacuateInstancesTask": (
            "SUCCESS",
            [
                (
                    0.0,
                    "Start evacuation of instances from failed host 'compute-1', instance uuids"
                    f" are: '{VM3},{VM1},{VM2}'",
                ),
                (0.5, f"Evacuation of instance started: '{VM3}'"),
                (0.5, f"Evacuation of instance started: '{VM1}'"),
                (0.5, f"Evacuation of instance started: '{VM2}'"),
                (
                    0.7,
                    f"Successfully evacuate instances '{VM1},{VM2},{VM3}' from host 'compute-1'",
                ),
                (1.0, "Evacuation process completed!"),
            ],
        ),
    }


def test_one_recovery_needs_one_token(recovery, build):
    build(*(described(f"vm-{number}") for number in range(1, 9)))

    recovery.run()

    assert sum("/auth/tokens" in frame["path"] for frame in recovery.cloud.frames) == 1


def test_the_host_gets_its_time_to_be_seen_down(recovery, build, conf, clock):
    conf.set_override("wait_period_after_service_update", 240)
    build()

    with pytest.raises(errors.SkipHostRecovery):
        recovery.run()

    assert clock.now == 240


class Noticing(SimulatedClock):
    """Nova reports the failed host down after a minute."""

    def __init__(self, cloud):
        super().__init__()
        self._cloud = cloud

    def sleep(self, seconds):
        super().sleep(seconds)
        if self.now >= 60:
            self._cloud.services[0]["state"] = "down"


def polling(recovery):
    corrections = frozenset({Correction.SERVICE_DOWN_POLL})
    return replace(recovery, context=replace(recovery.context, corrections=corrections))


@pytest.mark.parametrize(("wait", "end"), [(180, 60), (30, 31), (0, 0)])
def test_it_can_go_on_as_soon_as_nova_sees_the_host_down(recovery, build, conf, wait, end):
    """faults 63; at the latest after the wait, however it stands then."""
    conf.set_override("wait_period_after_service_update", wait)
    build()
    clock = Noticing(recovery.cloud)

    with pytest.raises(errors.SkipHostRecovery):
        polling(recovery).on(clock).run()

    assert clock.now == end
    _, messages = details(recovery)["DisableComputeServiceTask"]
    assert (
        0.5,
        "Nova still reports the compute service on 'compute-1' up",
    ) in messages or end != 31


def test_nova_may_be_away_while_it_is_asked(recovery, build):
    look_up = {"method": "GET", "path": "/os-services"}
    build(faults=[{"match": look_up, "skip": 1, "times": 5, "do": {"status": 503}}])
    clock = Noticing(recovery.cloud)

    with pytest.raises(errors.SkipHostRecovery):
        polling(recovery).on(clock).run()

    assert clock.now == 60


def test_one_thread_shows_the_order(recovery, build, conf):
    """As recorded: last inserted first, so HA-enabled ones last."""
    conf.set_override("host_failure_recovery_threads", 1)
    names = ["vm-1", "vm-2", "vm-3", "vm-4"]
    build(*(described(name, **(HA if name in {"vm-2", "vm-4"} else {})) for name in names))

    recovery.run()

    order = [
        frame["path"].split("/")[-2]
        for frame in recovery.cloud.frames
        if "evacuate" in (frame["body"] or {})
    ]
    assert order == [uuid_of(name) for name in ("vm-3", "vm-1", "vm-4", "vm-2")]


def test_no_more_threads_than_configured(recovery, build, conf):
    conf.set_override("host_failure_recovery_threads", 2)
    build(*(described(f"vm-{number}") for number in range(1, 7)))

    recovery.run()

    open_now, most = 0, 0
    for frame in recovery.cloud.frames:
        action = frame["body"] if "/action" in frame["path"] else {}
        open_now += ("lock" in action) - ("unlock" in action)
        most = max(most, open_now)
    assert most == 2


WORDS = dict.fromkeys(("t", "true", "on", "y", "yes", "1", "TRUE", " True "), True) | dict.fromkeys(
    ("false", "0", "", "junk", "None", "enabled", "11"), False
)


def test_words_that_make_an_instance_ha_enabled(recovery, build, conf):
    conf.set_override("evacuate_all_instances", False, "host_failure")
    wanted = {
        f"vm-{number}": {"metadata": {"HA_Enabled": word}} for number, word in enumerate(WORDS, 1)
    }
    others = {"vm-98": {"metadata": {"ha_enabled": "True"}}, "vm-99": {}}
    build(*(described(name, **state) for name, state in (wanted | others).items()))

    recovery.run()

    expected = [name for name, true in zip(wanted, WORDS.values(), strict=True) if true]
    assert [move.instance_name for move in recovery.moves] == expected
    _, messages = details(recovery)["PrepareHAEnabledInstancesTask"]
    assert [progress for progress, _ in messages] == [0.0, 0.3, 0.6, 1.0]


def test_instances_in_error_can_be_left_out(recovery, build, conf):
    conf.set_override("ignore_instances_in_error_state", True, "host_failure")
    conf.set_override("ha_enabled_instance_metadata_key", "Important", "host_failure")
    important = {"metadata": {"Important": "yes"}}
    build(
        described("vm-1", vm_state="error"),
        described("vm-2", vm_state="error", **important),
        described("vm-3"),
    )

    recovery.run()

    assert [move.instance_name for move in recovery.moves] == ["vm-3"]
    _, messages = details(recovery)["PrepareHAEnabledInstancesTask"]
    ignoring = f"Ignoring recovery of HA_Enabled instance '{VM2}' as it is in 'error' state."
    assert messages[2:4] == [(0.4, ignoring), (0.6, "Total HA Enabled instances count: '0'")]


def test_a_host_without_instances_is_skipped(recovery, build):
    build(described("vm-1", host="compute-2"))
    reason = "Skipped host 'compute-1' recovery as no instances needs to be evacuated"

    with pytest.raises(errors.SkipHostRecovery, match=f"^{reason}$"):
        recovery.run()

    assert recovery.moves == []
    state, messages = details(recovery)["PrepareHAEnabledInstancesTask"]
    assert (state, messages[-1]) == ("REVERTED", (1.0, reason))
    assert "EvacuateInstancesTask" not in details(recovery)


def test_one_of_three_fails(recovery, build):
    build(
        described("vm-1"),
        described("vm-2", evacuate={"outcome": "error"}),
        described("vm-3"),
    )
    reason = f"Failed to evacuate instances '{VM2}' from host 'compute-1'"

    with pytest.raises(errors.HostRecoveryFailure, match=f"^{reason}$"):
        recovery.run()

    assert [(move.instance_name, move.status) for move in recovery.moves] == [
        ("vm-1", "succeeded"),
        ("vm-2", "failed"),
        ("vm-3", "succeeded"),
    ]
    state, messages = details(recovery)["EvacuateInstancesTask"]
    assert state == "REVERTED"
    assert messages[-2:] == [
        (0.7, f"Successfully evacuate instances '{VM1},{VM3}' from host 'compute-1'"),
        (0.7, reason),
    ]


@pytest.mark.parametrize("path", ["/identity/v3/auth/tokens", "/servers/1"])
def test_an_outage_in_between_leaves_no_instance_without_an_end(recovery, build, path):
    """faults 59"""
    outage = {"match": {"path": path}, "after": {"action": "evacuate"}, "times": 3}
    fault = outage | {"do": {"status": 503}}
    refused = {"match": {"action": "evacuate"}, "skip": 1, "times": 1, "do": {"status": 401}}
    build(*(described(f"vm-{number}") for number in range(1, 5)), faults=[fault, refused])

    with pytest.raises(errors.HostRecoveryFailure):
        recovery.run()

    for move in recovery.moves:
        assert move.end_time
        assert move.status == "succeeded" or (move.status == "failed" and "503" in move.message)


def test_moves_that_were_left_waiting_are_taken_along(recovery, build):
    """As upstream: a pending vmove of an earlier run is carried out with those of this one."""
    build(described("vm-1"), described("vm-2", host="compute-9"))
    recovery.begun("vm-2")

    recovery.run()

    assert [(move.instance_name, move.status) for move in recovery.moves] == [
        ("vm-2", "succeeded"),
        ("vm-1", "succeeded"),
    ]


def test_an_unknown_compute_service_ends_it(recovery, build):
    build(services=[])

    with pytest.raises(errors.ComputeServiceNotFound):
        recovery.run()

    assert recovery.frames() == ["GET /os-services"]


FIRST_REQUESTS = {
    "look-up": {"method": "GET", "path": "/os-services"},
    "disable": {"method": "PUT", "path": "/os-services"},
    "list": {"path": "/servers/detail"},
}


@pytest.mark.parametrize("match", FIRST_REQUESTS.values(), ids=list(FIRST_REQUESTS))
def test_nova_failing_before_the_first_instance_ends_it(recovery, build, match):
    build(described("vm-1"), faults=[{"match": match, "do": {"status": 500}}])

    with pytest.raises(errors.CloudError, match=r"\(HTTP 500\)"):
        recovery.run()

    assert recovery.moves == []
    assert recovery.frames("vm-1") == []


class Unnoticed:
    """A database none of whose commits is noticed, so that each transaction runs once more."""

    def __init__(self, database):
        self.read = database.read
        self._write = database.write

    def write(self, work, **turn):
        self._write(work, **turn)
        return self._write(work, **turn)


def test_unnoticed_commits_plan_nothing_twice(recovery, build):
    build(described("vm-1"), described("vm-2"))
    context = replace(recovery.context, database=Unnoticed(recovery.context.database))
    runner = FlowRunner(recovery.context.database)

    HostRecovery(context, "compute-1", runner).run(RecoveryMethod.AUTO)

    assert [(move.instance_name, move.status) for move in recovery.moves] == [
        ("vm-1", "succeeded"),
        ("vm-2", "succeeded"),
    ]
    assert recovery.cloud.requests("evacuate") == {VM1: 1, VM2: 1}


def test_only_faults_have_a_traceback(recovery, build, caplog):
    caplog.set_level("INFO", "masakari_ng.recovery")
    build(described("vm-1", evacuate={"outcome": "error"}))

    with pytest.raises(errors.HostRecoveryFailure):
        recovery.run()

    ours = [one for one in caplog.records if one.name.startswith("masakari_ng.recovery")]
    assert any("Instance was not evacuated" in one.message for one in ours)
    assert any("Sleeping 180 sec before starting recovery" in one.message for one in ours)
    assert [one for one in ours if one.exc_info] == []


# What a takeover finds.
SENT = {"vm_state": "active", "compare_state": "active", "locked": True, "evacuate_sent": True}


def test_a_takeover_neither_waits_nor_lists_again(recovery, build, clock):
    build(
        described("vm-1", host="compute-2", locked=True),
        described("vm-2"),
        described("vm-3", host="compute-2", locked=True),
        described("vm-4"),  # came later; nobody has planned to move it
    )
    recovery.begun("vm-1", "ongoing", **SENT)
    recovery.begun("vm-2")
    recovery.begun("vm-3", "succeeded", **SENT)

    recovery.taken_over().run()

    assert recovery.frames() == []
    assert clock.now < 10
    assert [(move.instance_name, move.status) for move in recovery.moves] == [
        ("vm-1", "succeeded"),
        ("vm-2", "succeeded"),
        ("vm-3", "succeeded"),
    ]
    assert recovery.cloud.requests("evacuate") == {VM2: 1}
    assert not any(server.locked for server in recovery.cloud.servers.values())
    assert recovery.journal == []
    _, messages = details(recovery)["PrepareHAEnabledInstancesTask"]
    assert messages[-1] == (1.0, "Resuming the evacuation of instances, count: '3'")


def test_a_takeover_before_the_first_vmove_begins_anew(recovery, build, clock):
    build(described("vm-1"))

    recovery.taken_over().run()

    assert clock.now >= 180
    assert len(recovery.frames()) == 3
    assert [move.status for move in recovery.moves] == ["succeeded"]


class Stopping(SimulatedClock):
    """Stops at the wait of this number."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._left = at

    def sleep(self, seconds: float) -> None:
        self._left -= 1
        if self._left <= 0:
            self.stop()
        super().sleep(seconds)


def test_a_stop_while_nova_gets_its_time_leaves_nothing(recovery, build):
    build(described("vm-1"))

    with pytest.raises(errors.Stopped):
        recovery.on(Stopping(at=1)).run()

    assert recovery.moves == []


def test_a_stop_in_mid_evacuation_is_taken_up_by_another_engine(recovery, build):
    build(*(described(f"vm-{number}", evacuate={"polls": 5}) for number in range(1, 6)))

    with pytest.raises(errors.Stopped):
        recovery.on(Stopping(at=3)).run()

    left = {move.instance_name: move.status for move in recovery.moves}
    assert set(left.values()) == {"pending", "ongoing"}
    assert recovery.cloud.requests("unlock") == {}
    assert {move.end_time for move in recovery.moves} == {None}

    recovery.taken_over().run()

    assert {move.status for move in recovery.moves} == {"succeeded"}
    assert not any(server.locked for server in recovery.cloud.servers.values())
    assert recovery.journal == []


def test_a_lost_claim_plans_nothing(recovery, build):
    build(described("vm-1"))
    recovery.taken_over()

    with pytest.raises(errors.ClaimLost):
        recovery.run()

    assert recovery.frames() == ["GET /os-services"]
    assert recovery.moves == []
    assert recovery.frames("vm-1") == []
