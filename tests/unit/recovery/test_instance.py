"""Protects what is done to a failed instance in each state, how it ends, and that it may repeat."""

from dataclasses import replace

import pytest

from masakari_ng import errors
from masakari_ng.domain import Correction
from masakari_ng.recovery import instance
from masakari_ng.recovery.runner import FlowRunner
from tests.unit.recovery.conftest import described, details, uuid_of

VM = uuid_of("vm-1")
HA = {"HA_Enabled": "True"}
STOP, START = ["os-stop", "GET", "GET"], ["GET", "os-start", "GET", "GET"]


@pytest.fixture
def restart(recovery):
    """Recover the instance, perhaps as the engine that has taken over."""

    def run(*, resumed=False):
        context = replace(recovery.context, resumed=resumed)
        instance.recover(context, VM, FlowRunner(context.database))

    return run


def named(name, **state):
    return described(name, **{"metadata": HA} | state)


RESTARTED = {
    "active": ({}, ["GET", *STOP, *START]),
    "error": ({"vm_state": "error"}, ["GET", *STOP, *START]),
    "stopped": ({"vm_state": "stopped"}, ["GET", "GET", *START]),
    # faults 98: the resize is lost, as upstream's users know it.
    "resized": ({"vm_state": "resized"}, ["GET", "os-resetState active", *STOP, *START]),
}


@pytest.mark.parametrize(("state", "frames"), RESTARTED.values(), ids=list(RESTARTED))
def test_instance_is_stopped_and_started(recovery, build, restart, state, frames):
    build(named("vm-1", **state))

    restart()

    assert recovery.frames("vm-1") == frames
    server = recovery.cloud.servers[VM]
    assert (server.vm_state, server.host, server.locked) == ("active", "compute-1", False)
    assert recovery.moves == []
    stopping = [] if state.get("vm_state") == "stopped" else [(0.0, f"Stopping instance: {VM}")]
    assert details(recovery) == {
        "StopInstanceTask": ("SUCCESS", [*stopping, (1.0, f"Stopped instance: '{VM}'")]),
        "StartInstanceTask": (
            "SUCCESS",
            [(0.0, f"Starting instance: '{VM}'"), (1.0, f"Instance started: '{VM}'")],
        ),
        "ConfirmInstanceActiveTask": (
            "SUCCESS",
            [
                (0.0, f"Confirming instance '{VM}' vm_state is ACTIVE"),
                (1.0, f"Confirmed instance '{VM}' vm_state is ACTIVE"),
            ],
        ),
    }


@pytest.mark.parametrize("after", [1, 2, 5, 6])
def test_who_was_frozen_meanwhile_touches_nothing(recovery, build, after):
    build(named("vm-1", vm_state="resized"))
    frozen = recovery.frozen(after)

    with pytest.raises(errors.ClaimLost):
        instance.recover(frozen.context, VM, FlowRunner(recovery.context.database))

    assert frozen.changes_when_thawed == []


UNTOUCHED = {
    f"faults 96: {label}": (
        state,
        errors.SkipInstanceRecovery,
        f"Skipping recovery for instance: {VM} as it is not Ha_Enabled",
    )
    for label, state in {
        "no key": {"metadata": {}},
        "false": {"metadata": {"HA_Enabled": "no"}},
        "other key": {"metadata": {"ha_enabled": "True"}},
        "paused": {"metadata": {}, "vm_state": "paused"},
    }.items()
} | {
    f"faults 94: {state}": (
        {"vm_state": state},
        errors.IgnoreInstanceRecovery,
        f"Recovery of instance '{VM}' is ignored as it is in '{state}' state.",
    )
    for state in ("paused", "rescued")
}


@pytest.mark.parametrize("case", UNTOUCHED.values(), ids=list(UNTOUCHED))
def test_instance_that_is_left_alone(recovery, build, restart, case):
    state, error, reason = case
    build(named("vm-1", **state))

    with pytest.raises(error, match=f"^{reason}$"):
        restart()

    assert recovery.frames("vm-1") == ["GET"]
    assert details(recovery) == {"StopInstanceTask": ("REVERTED", [(1.0, reason)])}


@pytest.mark.parametrize(
    "case",
    [
        ("process_all_instances", True, {}),
        ("ha_enabled_instance_metadata_key", "Important", {"Important": "yes"}),
    ],
)
def test_options_choose_the_instances(recovery, build, restart, conf, case):
    option, value, metadata = case
    conf.set_override(option, value, "instance_failure")
    build(named("vm-1", metadata=metadata))

    restart()

    assert "os-start" in recovery.frames("vm-1")


FAULT = r"scripted fault \(HTTP 500\)"
FAILURES = {
    "faults 54, 55: never stops": (
        {"stop": {"outcome": "never"}},
        None,
        (errors.InstanceRecoveryFailure, f"^Failed to stop instance {VM}$"),
        ["GET", "os-stop", *["GET"] * 182],
    ),
    "faults 54, 55: never starts": (
        {"start": {"outcome": "never"}},
        None,
        (errors.InstanceRecoveryFailure, f"^Failed to start instance {VM}$"),
        ["GET", *STOP, "GET", "os-start", *["GET"] * 62],
    ),
    "stop fails": ({}, {"action": "os-stop"}, (errors.CloudError, FAULT), ["GET", "os-stop"]),
    "start fails": (
        {},
        {"action": "os-start"},
        (errors.CloudError, FAULT),
        ["GET", *STOP, "GET", "os-start"],
    ),
} | {
    f"faults 97: {state}": (
        {"vm_state": state},
        None,
        (errors.CloudConflict, f"while it is in vm_state {state} "),
        ["GET", "os-stop", "GET"],
    )
    for state in ("suspended", "shelved", "shelved_offloaded", "building")
}


@pytest.mark.parametrize("case", FAILURES.values(), ids=list(FAILURES))
def test_failure(recovery, build, restart, case):
    state, match, (error, reason), frames = case
    build(named("vm-1", **state), faults=[{"match": match, "do": {"status": 500}}] if match else [])

    with pytest.raises(error, match=reason):
        restart()

    assert recovery.frames("vm-1") == frames


def test_instance_that_stops_by_itself_meanwhile(recovery, build, restart):
    """faults 93: Nova's own synchronisation was faster, and refuses the stop."""
    fault = {"match": {"action": "os-stop"}, "do": {"status": 409, "apply": True}}
    build(named("vm-1", stop={"polls": 0}), faults=[fault])

    restart()

    assert recovery.frames("vm-1") == ["GET", "os-stop", "GET", "GET", *START]
    _, reported = details(recovery)["StopInstanceTask"]
    assert (0.0, f"Conflict when stopping instance: {VM}") in reported


def test_instance_that_is_started_by_somebody_else(recovery, build, restart):
    build(named("vm-1", stop={"polls": 1, "restart_polls": 0}))
    reason = f"Invalid state for Instance {VM}. Expected state: 'STOPPED', Actual state: 'active'"

    with pytest.raises(errors.InstanceRecoveryFailure) as caught:
        restart()

    assert str(caught.value) == reason
    assert "os-start" not in recovery.frames("vm-1")
    assert details(recovery)["StartInstanceTask"][1][-1] == (1.0, reason)


# What a takeover finds: state of the instance, what Nova refuses, what is asked for again.
LEFT = {
    "nothing done": ({}, None, ["os-stop", "os-start"]),
    "stop under way": (
        {"task_state": "powering-off", "stop": {"polls": 2}},
        "os-stop",
        ["os-stop", "os-start"],
    ),
    "stopped": ({"vm_state": "stopped"}, None, ["os-start"]),
    "start under way": (
        {"vm_state": "stopped", "task_state": "powering-on"},
        "os-start",
        ["os-start"],
    ),
    "started": ({"vm_state": "active"}, None, ["os-stop", "os-start"]),
}


@pytest.mark.parametrize("case", LEFT.values(), ids=list(LEFT))
def test_takeover_runs_from_the_start(recovery, build, restart, case):
    state, refused, actions = case
    fault = {"match": {"action": refused}, "do": {"status": 409, "apply": True}}
    build(named("vm-1", **state), faults=[fault] if refused else [])

    restart(resumed=True)

    assert [frame for frame in recovery.frames("vm-1") if frame != "GET"] == actions
    assert recovery.cloud.servers[VM].vm_state == "active"


@pytest.fixture
def corrected(recovery):
    """Recover the instance after such an event, as it is corrected."""

    def run(event="IO_ERROR", *, resumed=False):
        notification = replace(recovery.context.notification, payload={"event": event})
        corrections = frozenset({Correction.USER_STOPPED_INSTANCES})
        context = replace(
            recovery.context, notification=notification, corrections=corrections, resumed=resumed
        )
        instance.recover(context, VM, FlowRunner(context.database))

    return run


@pytest.mark.parametrize("event", ["IO_ERROR", "QEMU_GUEST_AGENT_ERROR"])
def test_instance_that_its_user_stopped_can_stay_so(recovery, build, corrected, event):
    """faults 92"""
    build(named("vm-1", vm_state="stopped"))

    with pytest.raises(errors.IgnoreInstanceRecovery, match="as it is in 'stopped' state"):
        corrected(event)

    assert recovery.frames("vm-1") == ["GET"]


def test_crashed_instance_that_nova_has_put_down_as_stopped_is_started(recovery, build, corrected):
    build(named("vm-1", vm_state="stopped"))

    corrected("LIFECYCLE")

    assert recovery.cloud.servers[VM].vm_state == "active"


@pytest.mark.parametrize("resumed", [False, True], ids=["retry", "takeover"])
def test_instance_that_its_recovery_has_stopped_is_started(recovery, build, corrected, resumed):
    start = {"match": {"action": "os-start"}, "times": 1, "do": {"status": 500}}
    build(named("vm-1"), faults=[start])
    with pytest.raises(errors.CloudError):
        corrected()
    assert recovery.cloud.servers[VM].vm_state == "stopped"

    corrected(resumed=resumed)

    assert recovery.cloud.servers[VM].vm_state == "active"
