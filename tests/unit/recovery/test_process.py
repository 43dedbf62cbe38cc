"""Protects what is done where nova-compute has failed, and that it may be done again."""

import pytest

from masakari_ng import errors
from masakari_ng.recovery import process
from masakari_ng.recovery.runner import FlowRunner
from tests.unit.recovery.conftest import details

LOOK = "GET /os-services"


@pytest.fixture
def recover(recovery, cloud):
    def run():
        context = recovery.context
        process.recover(context, "nova-compute", "compute-1", FlowRunner(context.database))

    return run


@pytest.fixture
def service(cloud):
    """Gives the simulated cloud a compute service; gives the request that changes it."""

    def made(**state):
        cloud.reset({"services": [{"host": "compute-1", **state}, {"host": "compute-2"}]})
        (id,) = [one["id"] for one in cloud.services if one["host"] == "compute-1"]
        return f"PUT /os-services/{id}"

    return made


CONFIRMED = (
    "SUCCESS",
    [
        (0.0, "Confirming compute service is disabled on host: 'compute-1'"),
        (1.0, "Confirmed compute service is disabled on host: 'compute-1'"),
    ],
)


def test_service_is_disabled(recovery, recover, service):
    change = service()

    recover()

    assert recovery.frames() == [LOOK, LOOK, change, LOOK]
    failed, other = recovery.cloud.services
    assert (failed["status"], failed["disabled_reason"]) == (
        "disabled",
        "Masakari detected process failed.",
    )
    assert other["status"] == "enabled"
    assert details(recovery) == {
        "DisableComputeNodeTask": (
            "SUCCESS",
            [
                (0.0, "Disabling compute service on host: 'compute-1'"),
                (1.0, "Disabled compute service on host: 'compute-1'"),
            ],
        ),
        "ConfirmComputeNodeDisabledTask": CONFIRMED,
    }


def test_who_was_frozen_meanwhile_disables_nothing(recovery, service):
    service()
    frozen, runner = recovery.frozen(after=2), FlowRunner(recovery.context.database)

    with pytest.raises(errors.ClaimLost):
        process.recover(frozen.context, "nova-compute", "compute-1", runner)

    assert frozen.changes_when_thawed == []


def test_service_that_is_disabled_is_left_alone(recovery, recover, service):
    """As after a takeover, or where an operator was faster."""
    service(status="disabled")

    recover()

    assert recovery.frames() == [LOOK, LOOK]
    skipped = "Skipping recovery for process nova-compute as it is already disabled"
    assert details(recovery)["DisableComputeNodeTask"][1][-1] == (1.0, skipped)
    assert details(recovery)["ConfirmComputeNodeDisabledTask"] == CONFIRMED


def test_service_that_stays_enabled(recovery, recover, service, conf):
    """faults 54, 55"""
    conf.set_override("wait_period_after_service_update", 4)
    change = service(sticky=True)
    reason = "Failed to disable service nova-compute"

    with pytest.raises(errors.ProcessRecoveryFailure, match=f"^{reason}$"):
        recover()

    assert recovery.frames() == [LOOK, LOOK, change, *[LOOK] * 6]
    assert details(recovery)["ConfirmComputeNodeDisabledTask"][1][-1] == (1.0, reason)


def test_service_that_nova_does_not_know(recovery, recover, cloud):
    cloud.reset({"services": [{"host": "compute-2"}]})

    with pytest.raises(errors.ComputeServiceNotFound):
        recover()
