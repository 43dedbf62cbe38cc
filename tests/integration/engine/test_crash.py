"""Protects the first promise: an engine may die at any moment, and every instance moves once."""

import signal
from collections import Counter

import pytest

from tests.servers import eventually

MOVES = {"evacuate": {"seconds": 1}}
INSTANCES = 5


def finished(region):
    return set(region.statuses().values()) == {"finished"}


def assert_recovered(region, *hosts, to="spare"):
    names = [f"{host}-vm-{number}" for host in hosts for number in range(INSTANCES)]
    once = Counter(names)
    assert region.evacuations(accepted=True) == once
    assert region.vmoves() == Counter((name, "succeeded") for name in names)
    assert {server.host for server in region.cloud.servers.values()} == {to}
    assert not any(server.locked for server in region.cloud.servers.values())
    assert region.leftovers() == []


@pytest.mark.parametrize("arguments", [[], ["--threads"]], ids=["green", "native"])
@pytest.mark.parametrize("threads", [1, 3])
def test_engine_that_was_killed_goes_on_where_it_was(region, arguments, threads):
    host = region.add_host("compute-1", INSTANCES, **MOVES)
    engine = region.daemons.engine(
        {"DEFAULT": {"host_failure_recovery_threads": threads}}, arguments=arguments
    )
    region.report(host)

    eventually(lambda: region.evacuations().total() >= 2)
    engine.kill()
    assert "running" in region.statuses().values()
    engine.restart()

    eventually(lambda: finished(region), timeout=60)
    assert_recovered(region, "compute-1")
    assert region.evacuations() == region.evacuations(accepted=True)


PERIODIC = {
    "process_unfinished_notifications_interval": 3,
    "retry_notification_new_status_interval": 2,
}


@pytest.mark.parametrize(
    ("to", "refusals", "end"),
    [("spare", 3, "finished"), ("reserved", 1, "finished"), ("reserved", 3, "failed")],
)
def test_nova_refuses_the_engine_that_goes_on(region, to, refusals, end):
    """However it ends, no instance is moved twice, and none is left locked or half done."""
    if to == "reserved":
        region.reserve(to)
    host = region.add_host("compute-1", INSTANCES, evacuate={"seconds": 3})
    settings = PERIODIC | {"host_failure_recovery_threads": 2}
    engine = region.daemons.engine({"DEFAULT": settings})
    region.report(host)

    eventually(lambda: region.evacuations().total() >= 2)
    engine.kill()
    look = {"method": "GET", "path": "os-services"}
    region.cloud.arm_faults([{"match": look, "do": {"status": 503}, "times": refusals}])
    engine.restart()

    eventually(lambda: set(region.statuses().values()) == {end}, timeout=60)
    if end == "finished":
        assert_recovered(region, "compute-1", to=to)
    assert set(region.evacuations(accepted=True).values()) == {1}
    assert not any(server.locked for server in region.cloud.servers.values())
    assert {status for _, status in region.vmoves()} <= {"succeeded", "failed"}
    assert region.leftovers() == []


def test_engine_that_was_killed_goes_on_with_the_same_reserved_host(region):
    region.reserve("reserved")
    host = region.add_host("compute-1", INSTANCES, **MOVES)
    engine = region.daemons.engine({"DEFAULT": {"host_failure_recovery_threads": 1}})
    region.report(host)

    eventually(lambda: region.evacuations().total() >= 2)
    engine.kill()
    engine.restart()

    eventually(lambda: finished(region), timeout=60)
    assert_recovered(region, "compute-1", to="reserved")


@pytest.mark.parametrize("arguments", [[], ["--threads"]], ids=["green", "native"])
def test_sigterm_in_mid_flow_leaves_the_rest_to_the_next_engine(region, arguments):
    # Nobody would take over from a dead engine in this test.
    region.daemons.settings["masakari_ng"] |= {"claim_timeout": 600}
    host = region.add_host("compute-1", INSTANCES, **MOVES)
    settings = {"DEFAULT": {"graceful_shutdown_timeout": 1, "host_failure_recovery_threads": 1}}
    engine = region.daemons.engine(settings, arguments=arguments)
    region.report(host)

    eventually(lambda: region.evacuations().total() >= 2)
    assert engine.terminate(grace=20) == 0
    assert "running" in region.statuses().values()
    region.daemons.engine(arguments=arguments)

    eventually(lambda: finished(region), timeout=60)
    assert_recovered(region, "compute-1")


def test_sigterm_waits_for_a_recovery_that_ends_in_time(region):
    host = region.add_host("compute-1", INSTANCES, **MOVES)
    engine = region.daemons.engine()
    region.report(host)

    eventually(lambda: region.evacuations().total() >= 1)
    assert engine.terminate(grace=60) == 0

    assert finished(region)
    assert_recovered(region, "compute-1")


def test_other_engine_takes_over(region):
    host = region.add_host("compute-1", INSTANCES, **MOVES)
    settings = {"DEFAULT": {"host_failure_recovery_threads": 1}}
    engines = [region.daemons.engine(settings), region.daemons.engine(settings)]
    region.report(host)

    eventually(lambda: region.evacuations().total() >= 2)
    engines.sort(key=lambda engine: "Evacuation of instance" in engine.log.read_text())
    other, worker = engines
    worker.kill()

    eventually(lambda: finished(region), timeout=60)
    assert_recovered(region, "compute-1")
    assert "taken over from engine" in other.log.read_text()


def test_engine_that_was_frozen_meanwhile_does_nothing_more(region):
    host = region.add_host("compute-1", INSTANCES, **MOVES)
    settings = {"DEFAULT": {"host_failure_recovery_threads": 1}}
    engines = [region.daemons.engine(settings), region.daemons.engine(settings)]
    region.report(host)

    eventually(lambda: region.evacuations().total() >= 2)
    engines.sort(key=lambda engine: "Evacuation of instance" in engine.log.read_text())
    other, worker = engines
    worker.process.signal(signal.SIGSTOP)
    eventually(lambda: "taken over from engine" in other.log.read_text())
    worker.process.signal(signal.SIGCONT)

    eventually(lambda: finished(region), timeout=60)
    eventually(lambda: "taken over by another engine" in worker.log.read_text())
    assert_recovered(region, "compute-1")
