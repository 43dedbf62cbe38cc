"""Protects that several engines share the work, and that a lost message is found again."""

import signal
from collections import Counter

import pytest

from tests.servers import eventually

MOVES = {"evacuate": {"seconds": 0.3}}


def test_two_engines_recover_each_of_many_notifications_once(region):
    hosts = [region.add_host(f"compute-{number}", 1, **MOVES) for number in range(10)]
    engines = [region.daemons.engine(), region.daemons.engine()]

    reports = [region.report(host, casts=2) for _ in range(3) for host in hosts]

    eventually(lambda: set(region.statuses().values()) == {"finished"}, timeout=90)
    names = [f"compute-{number}-vm-0" for number in range(10)]
    assert region.evacuations() == Counter(names)
    assert region.vmoves() == Counter((name, "succeeded") for name in names)
    assert region.leftovers() == []
    logs = "".join(engine.log.read_text() for engine in engines)
    ended = [uuid for uuid in reports if logs.count(f"Notification {uuid} exits with") == 1]
    assert ended == reports
    assert all("exits with" in engine.log.read_text() for engine in engines)


def test_lost_cast_is_found_by_the_periodic_task(region):
    host = region.add_host("compute-1", 1, **MOVES)
    region.daemons.engine(
        {
            "DEFAULT": {
                "process_unfinished_notifications_interval": 2,
                "retry_notification_new_status_interval": 3,
            }
        }
    )

    region.report(host, casts=0)

    eventually(lambda: set(region.statuses().values()) == {"finished"})
    assert region.evacuations() == Counter(["compute-1-vm-0"])


def test_crash_and_short_outage_of_nova_move_each_instance_once(region):
    """The recovery that is taken up fails at once, and is retried: still nothing is forgotten."""
    region.reserve("reserved")
    host = region.add_host("compute-1", 4, evacuate={"seconds": 2})
    engine = region.daemons.engine(
        {
            "DEFAULT": {
                "host_failure_recovery_threads": 2,
                "process_unfinished_notifications_interval": 2,
            }
        }
    )
    region.report(host)
    eventually(lambda: region.evacuations().total() >= 2)

    engine.kill()
    region.cloud.arm_faults(
        [{"match": {"method": "GET", "path": "os-services"}, "do": {"status": 503}, "times": 1}]
    )
    engine.restart()

    eventually(lambda: set(region.statuses().values()) == {"finished"}, timeout=60)
    assert "exits with status: error" in engine.log.read_text()
    names = [f"compute-1-vm-{number}" for number in range(4)]
    assert region.evacuations(accepted=True) == Counter(names)
    assert region.vmoves() == Counter((name, "succeeded") for name in names)
    assert not any(server.locked for server in region.cloud.servers.values())
    assert region.leftovers() == []


def test_database_may_be_away_for_a_while(region, mariadb):
    host = region.add_host("compute-1", 3, **MOVES)
    engine = region.daemons.engine({"DEFAULT": {"host_failure_recovery_threads": 1}})
    region.report(host)
    eventually(lambda: region.evacuations().total() == 1)

    mariadb.kill()
    eventually(lambda: "Database not available" in engine.log.read_text())
    mariadb.start()

    eventually(lambda: set(region.statuses().values()) == {"finished"}, timeout=60)
    assert set(region.evacuations(accepted=True).values()) == {1}
    assert {status for _, status in region.vmoves()} == {"succeeded"}
    assert region.leftovers() == []


@pytest.mark.parametrize("arguments", [[], ["--threads"]], ids=["green", "native"])
def test_signals(region, arguments):
    engine = region.daemons.engine(arguments=arguments)
    conf = region.daemons.write_conf(
        engine.log.stem,
        {"DEFAULT": {"host": engine.log.stem, "retry_notification_new_status_interval": 7}},
    )
    assert conf.exists()

    engine.process.signal(signal.SIGHUP)
    eventually(lambda: "retry_notification_new_status_interval changed" in engine.log.read_text())
    region.report(region.add_host("compute-1", 1, **MOVES))
    eventually(lambda: set(region.statuses().values()) == {"finished"})

    engine.process.signal(signal.SIGINT)
    eventually(lambda: not engine.process.alive)
    assert engine.process.exit_code == 1
    assert "Caught SIGINT signal, instantaneous exiting" in engine.log.read_text()


@pytest.mark.parametrize("arguments", [[], ["--threads"]], ids=["green", "native"])
def test_sigterm_works_without_broker_and_database(region, arguments):
    settings = {
        "DEFAULT": {"transport_url": "rabbit://guest:guest@127.0.0.1:1/"},
        "database": {"connection": "mysql+pymysql://root@127.0.0.1:1/none"},
    }
    engine = region.daemons.engine(settings, arguments=arguments, wait=False)
    eventually(lambda: "Database not available" in engine.log.read_text())

    assert engine.terminate(grace=15) == 0


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"taskflow": {"connection": ""}}, "[taskflow] connection should be configured"),
        ({"DEFAULT": {"tempdir": "/no/such/folder"}}, "Temporary directory is invalid: "),
    ],
    ids=["no taskflow", "tempdir"],
)
def test_engine_that_cannot_start_says_why(region, settings, line):
    engine = region.daemons.engine(settings, wait=False)

    eventually(lambda: not engine.process.alive)

    assert engine.process.exit_code == 1
    assert line in engine.log.read_text()
