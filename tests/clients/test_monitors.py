"""Protects that masakari-monitors reports failures unchanged, and that no outage loses a report."""

import json
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.programs import Access, environment
from tests.servers import Process, eventually


@pytest.fixture
def configuration(access: Access, tmp_path: Path) -> Path:
    """Where the monitors find the service; they have the names of the other clients' options."""
    options = (f"{name.removeprefix('OS_').lower()} = {value}" for name, value in access.items())
    file = tmp_path / "masakarimonitors.conf"
    file.write_text("\n".join(["[api]", *options, ""]))
    return file


@pytest.fixture
def start(programs: Path, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Starts a program from the virtual environment of the clients."""
    started: list[Process] = []

    def begin(program: str, *arguments: object) -> Process:
        command = [str(programs / program), *map(str, arguments)]
        log = tmp_path / f"{len(started)}.log"
        started.append(Process(command, log=log, env=environment(programs, {})))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        sys.stdout.write(process.tail(200))  # seen when the test has failed


@pytest.fixture
def send(start: Callable[..., Process], configuration: Path) -> Callable[..., Process]:
    """Starts the sender of all monitors on one report; it ends when it has got rid of it."""

    def begin(report: dict[str, Any]) -> Process:
        script = Path(__file__).with_name("send_notification.py")
        event = json.dumps({"notification": report})
        return start("python", script, configuration, 60, 1, event)

    return begin


def ended(process: Process) -> str:
    """Wait for the end; gives what the process has logged."""
    eventually(lambda: not process.alive, timeout=90)
    assert process.exit_code == 0
    return process.log.read_text()


def test_process_monitor_reports_a_process_that_does_not_start_again(
    configuration, start, tmp_path, make_host, sdk
):
    host = make_host(name=socket.gethostname())
    gone = {
        "process_name": "/usr/sbin/gone-daemon",
        "start_command": "true",
        "pre_start_command": "",
        "post_start_command": "",
        "restart_command": "false",
        "pre_restart_command": "",
        "post_restart_command": "",
        "run_as_root": False,
    }
    processes = tmp_path / "process_list.yaml"
    processes.write_text(json.dumps([gone, gone]))  # JSON is YAML; the second is a duplicate
    with configuration.open("a") as section:
        section.write(
            "[process]\ncheck_interval = 1\nrestart_retries = 0\nrestart_interval = 0\n"
            f"process_list_path = {processes}\n"
        )

    monitor = start("masakari-processmonitor", "--config-file", configuration)
    eventually(lambda: "ConflictException: 409" in monitor.log.read_text(), timeout=60)

    assert monitor.tail().count("Response: ") == 1
    assert "Retry" not in monitor.tail()
    stored = sdk.notifications(source_host_uuid=host.uuid)
    assert [(found["type"], found["payload"]) for found in stored] == [
        ("PROCESS", {"event": "STOPPED", "process_name": "gone-daemon"})
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "of type VM is duplicate."),
        ({"hostname": "nowhere"}, "Host with name nowhere could not be found."),
        ({"payload": {"event": "LIFECYCLE"}}, "'instance_uuid' is a required property"),
    ],
    ids=["duplicate", "unknown-host", "payload"],
)
def test_what_cannot_succeed_is_not_sent_again(send, sdk, make_host, change, message):
    host = make_host()
    report = host.instance_failed()
    sdk.create_notification(**report)

    log = ended(send(report | change))

    assert message in log
    assert "Retry" not in log
    assert len(sdk.notifications(source_host_uuid=host.uuid)) == 1


@pytest.mark.parametrize("server", ["api", "mariadb"])
def test_report_outlives_an_outage(request, send, sdk, make_host, server):
    stopped = request.getfixturevalue(server)
    host = make_host()
    report = host.instance_failed()

    stopped.kill()
    sender = send(report)
    eventually(lambda: "Retry sending a notification" in sender.log.read_text(), timeout=60)
    (stopped.restart if server == "api" else stopped.start)()

    assert "Response: " in ended(sender)
    (stored,) = sdk.notifications(source_host_uuid=host.uuid)
    assert stored["generated_time"][:19] == report["generated_time"][:19]
