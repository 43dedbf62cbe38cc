"""Protects what recovery tasks of other packages call: upstream's methods, novaclient's objects."""

import pytest

from masakari_ng import errors
from masakari_ng.compute.nova import Cloud
from masakari_ng.compute.upstream import UpstreamNova

UUID = "11111111-0000-4000-8000-000000000001"
NOTHING = object()


@pytest.fixture
def nova(cloud, conf) -> UpstreamNova:
    cloud.reset(
        {
            "services": [{"host": "compute-1", "id": "service-1"}],
            "servers": [{"id": UUID, "name": "vm-1", "host": "compute-1"}],
            "aggregates": [{"id": 7, "name": "rack", "hosts": ["compute-1"]}],
        }
    )
    return UpstreamNova(Cloud(conf).nova("req-1"))


ACTIONS = {
    "lock": lambda nova: nova.lock_server(NOTHING, UUID),
    "unlock": lambda nova: nova.unlock_server(NOTHING, UUID),
    "evacuate": lambda nova: nova.evacuate_instance(NOTHING, UUID, target="compute-9"),
    "os-resetState": lambda nova: nova.reset_instance_state(NOTHING, UUID),
    "os-stop": lambda nova: nova.stop_server(NOTHING, UUID),
}


@pytest.mark.parametrize(("action", "call"), ACTIONS.items())
def test_actions(cloud, nova, action, call):
    call(nova)

    (name,) = cloud.frames[-1]["body"]
    assert name == action


def test_start(cloud, nova):
    cloud.patch_server(UUID, {"vm_state": "stopped"})

    nova.start_server(NOTHING, UUID)

    assert cloud.frames[-1]["body"] == {"os-start": None}


def test_answers_are_those_of_novaclient(nova):
    server = nova.get_server(NOTHING, UUID)
    (listed,) = nova.get_servers(NOTHING, "compute-1")
    service = nova.find_compute_service(NOTHING, "compute-1")
    (aggregate,) = nova.get_aggregate_list(NOTHING)

    assert getattr(server, "OS-EXT-STS:vm_state") == "active"
    assert (listed.id, listed.name) == (UUID, "vm-1")
    assert (service.id, service.status) == ("service-1", "enabled")
    assert (aggregate.name, aggregate.hosts) == ("rack", ["compute-1"])


def test_service_and_aggregate_are_changed(cloud, nova):
    nova.enable_disable_service(NOTHING, "compute-1", reason="gone")
    disabled = nova.is_service_disabled(NOTHING, "compute-1", "nova-compute")
    nova.enable_disable_service(NOTHING, "compute-1", enable=True)
    nova.add_host_to_aggregate(NOTHING, "compute-2", nova.get_aggregate_list(NOTHING)[0])

    assert disabled
    assert not nova.is_service_disabled(NOTHING, "compute-1", "nova-compute")
    assert cloud.aggregates[0]["hosts"] == ["compute-1", "compute-2"]


def test_refusals_are_translated(nova):
    with pytest.raises(errors.CloudNotFound):
        nova.get_server(NOTHING, "no-such-server")
    with pytest.raises(errors.ComputeServiceNotFound):
        nova.find_compute_service(NOTHING, "nowhere")
