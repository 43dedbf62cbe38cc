"""Protects the names, inputs and order of the tasks, and the way in for tasks of one's own."""

import pytest
from taskflow.task import Task

from masakari_ng.compute.upstream import UpstreamNova
from masakari_ng.recovery import host, instance, process, registry
from masakari_ng.recovery.evacuation import save_reserved


def phases(flow) -> dict[str, list[str]]:
    return {part.name: [atom.name for atom in part] for part in flow}


def needs(flow):
    """What each task requires, and what it takes if it is there, by name."""
    return {
        atom.name: (set(atom.requires), set(atom.optional))
        for part in flow
        for atom in part
        if not atom.provides
    }


HOST_TASKS = {
    "DisableComputeServiceTask": ({"host_name"}, set()),
    "PrepareHAEnabledInstancesTask": ({"host_name", "notification_uuid"}, set()),
    "EvacuateInstancesTask": ({"host_name", "notification_uuid"}, {"reserved_host"}),
}
INSTANCE = ({"instance_uuid"}, set())
PROCESS = ({"process_name", "host_name"}, set())
FLOWS = {
    "auto": (
        host.auto_flow,
        "instance_evacuate_engine",
        {
            "pre_tasks": ["DisableComputeServiceTask"],
            "main_tasks": ["PrepareHAEnabledInstancesTask"],
            "post_tasks": ["EvacuateInstancesTask"],
        },
        HOST_TASKS,
    ),
    "reserved host": (
        host.reserved_host_flow,
        "instance_evacuate_engine",
        {
            "pre_tasks": ["DisableComputeServiceTask"],
            "retry_instance_evacuate_engine": [
                "PrepareHAEnabledInstancesTask",
                "EvacuateInstancesTask",
            ],
            "post_tasks": [],
        },
        HOST_TASKS,
    ),
    "instance": (
        instance.flow,
        "instance_recovery_engine",
        {
            "pre_tasks": ["StopInstanceTask"],
            "main_tasks": ["StartInstanceTask"],
            "post_tasks": ["ConfirmInstanceActiveTask"],
        },
        {
            "StopInstanceTask": INSTANCE,
            "StartInstanceTask": INSTANCE,
            "ConfirmInstanceActiveTask": INSTANCE,
        },
    ),
    "process": (
        process.flow,
        "process_recovery_engine",
        {
            "pre_tasks": ["DisableComputeNodeTask"],
            "main_tasks": ["ConfirmComputeNodeDisabledTask"],
            "post_tasks": [],
        },
        {"DisableComputeNodeTask": PROCESS, "ConfirmComputeNodeDisabledTask": PROCESS},
    ),
}


@pytest.mark.parametrize(("make", "name", "parts", "tasks"), FLOWS.values(), ids=list(FLOWS))
def test_each_flow_keeps_its_contract(context, make, name, parts, tasks):
    flow = make(context)

    assert flow.name == name
    assert phases(flow) == parts
    assert needs(flow) == tasks
    assert {atom.version for part in flow for atom in part} <= {(1, 0)}


def test_the_retry_goes_through_the_reserved_hosts(context):
    (again,) = [part.retry for part in host.reserved_host_flow(context) if part.retry]

    assert again.name == "retry_instance_evacuate_engine_retry"
    assert set(again.requires) == {"reserved_host_list"}
    assert set(again.provides) == {"reserved_host"}


def test_tasks_come_in_the_configured_order(context):
    configured = {
        "pre": ["evacuate_instances_task", "no_op", "disable_compute_service_task"],
        "main": [],
        "post": [],
    }

    flow = registry.flow("mine", configured, context)

    assert phases(flow) == {
        "pre_tasks": [
            "EvacuateInstancesTask",
            "masakari.engine.drivers.taskflow.no_op.Noop",
            "DisableComputeServiceTask",
        ],
        "main_tasks": [],
        "post_tasks": [],
    }


def test_an_unknown_task_is_left_out_with_a_warning(context, caplog):
    flow = registry.flow("mine", {"pre": ["nonesuch", "no_op"], "main": [], "post": []}, context)

    assert sum(len(part) for part in flow) == 1
    assert "Could not load nonesuch" in caplog.text


def test_a_missing_phase_is_refused(context):
    with pytest.raises(KeyError, match="post"):
        registry.flow("mine", {"pre": [], "main": []}, context)


class SomebodysTask(Task):
    """As others write them for upstream."""

    def __init__(self, context, novaclient, **kwargs):
        super().__init__()
        self.context, self.nova, self.more = context, novaclient, kwargs

    def execute(self, host_name):
        pass


@pytest.mark.parametrize("method", [None, save_reserved], ids=["auto", "reserved host"])
def test_a_plug_in_is_made_with_the_keywords_of_upstream(context, method):
    task = registry.made(SomebodysTask, context, update_host_method=method)

    assert task.context is context
    assert isinstance(task.nova, UpstreamNova)
    assert task.more == {"update_host_method": method}
    assert set(task.requires) == {"host_name"}
