"""Protects that tasks which others have written for upstream are found and run unchanged."""

import pytest

from masakari_ng.db import hosts
from masakari_ng.recovery import instance
from masakari_ng.recovery.driver import TaskFlowDriver
from masakari_ng.recovery.evacuation import save_reserved
from masakari_ng.recovery.runner import FlowRunner
from tests.unit.recovery.conftest import described, uuid_of

TASKS = """
from taskflow import task


class CheckTask(task.Task):
    def __init__(self, context, novaclient, **kwargs):
        super().__init__(requires=["instance_uuid"])
        self.context = context
        self.novaclient = novaclient

    def execute(self, instance_uuid, **kwargs):
        server = self.novaclient.get_server(self.context, instance_uuid)
        assert getattr(server, "OS-EXT-STS:vm_state") == "active"
        self.novaclient.lock_server(self.context, instance_uuid)


class ReturnTask(task.Task):
    def __init__(self, context, novaclient, **kwargs):
        super().__init__()
        self.context = context
        self.update_host_method = kwargs["update_host_method"]

    def execute(self, host_name, reserved_host):
        self.update_host_method(self.context, reserved_host, reserved=True)
"""


@pytest.fixture
def installed(install):
    folder = install(
        "[masakari.task_flow.tasks]\n"
        "check_task = somebodys_tasks:CheckTask\n"
        "return_task = somebodys_tasks:ReturnTask\n"
    )
    (folder / "somebodys_tasks.py").write_text(TASKS)


@pytest.mark.usefixtures("installed")
def test_instance_flow(recovery, build, conf):
    build(described("vm-1", metadata={"HA_Enabled": "True"}))
    conf.set_override(
        "instance_failure_recovery_tasks",
        {"pre": ["check_task", "no_op", "stop_instance_task"], "main": [], "post": []},
        "taskflow_driver_recovery_flows",
    )

    instance.recover(recovery.context, uuid_of("vm-1"), FlowRunner(recovery.context.database))

    assert recovery.frames("vm-1") == ["GET", "lock", "GET", "os-stop", "GET", "GET"]


@pytest.mark.usefixtures("installed")
def test_host_flow_with_reserved_host(recovery, build, conf):
    services = [{"host": "compute-1"}, {"host": "compute-2"}, {"host": "compute-4"}]
    build(described("vm-1"), services=services)
    context, host = recovery.context, recovery.host
    reserved = context.database.write(
        lambda session: hosts.create(
            session,
            segment_uuid=host.segment.uuid,
            name="compute-4",
            type="COMPUTE",
            control_attributes="SSH",
            reserved=True,
        )
    )
    flow = conf.taskflow_driver_recovery_flows.host_rh_failure_recovery_tasks
    conf.set_override(
        "host_rh_failure_recovery_tasks",
        flow | {"main": [*flow["main"], "return_task"]},
        "taskflow_driver_recovery_flows",
    )

    TaskFlowDriver(FlowRunner(context.database)).execute_host_failure(
        context,
        "compute-1",
        "reserved_host",
        recovery.notification_uuid,
        update_host_method=save_reserved,
        reserved_host_list=["compute-4"],
    )

    assert [move.dest_host for move in recovery.moves] == ["compute-4"]
    assert context.database.read(lambda s: hosts.by_uuid(s, reserved.uuid)).reserved
