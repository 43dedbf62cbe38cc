"""Protects the names, inputs and order of the tasks, and the way in for tasks of one's own."""

import pytest
from taskflow.task import Task

from masakari_ng.recovery import host, registry


def phases(flow) -> dict[str, list[str]]:
    return {part.name: [atom.name for atom in part] for part in flow}


def test_the_auto_flow_keeps_its_contract(context):
    flow = host.auto_flow(context)

    assert flow.name == "instance_evacuate_engine"
    assert phases(flow) == {
        "pre_tasks": ["DisableComputeServiceTask"],
        "main_tasks": ["PrepareHAEnabledInstancesTask"],
        "post_tasks": ["EvacuateInstancesTask"],
    }
    needs = {
        atom.name: (set(atom.requires), set(atom.optional), set(atom.provides))
        for part in flow
        for atom in part
    }
    assert needs == {
        "DisableComputeServiceTask": ({"host_name"}, set(), set()),
        "PrepareHAEnabledInstancesTask": ({"host_name", "notification_uuid"}, set(), set()),
        "EvacuateInstancesTask": (
            {"host_name", "notification_uuid"},
            {"reserved_host"},
            set(),
        ),
    }
    assert {atom.version for part in flow for atom in part} == {(1, 0)}


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
    def __init__(self, context, novaclient, **kwargs):
        super().__init__()
        self.given = {"context": context, "novaclient": novaclient, **kwargs}

    def execute(self, host_name):
        pass


def test_a_plug_in_is_made_with_the_keywords_of_upstream(context):
    task = registry.made(SomebodysTask, context, update_host_method=None)

    assert task.given == {
        "context": context,
        "novaclient": context.nova,
        "update_host_method": None,
    }
