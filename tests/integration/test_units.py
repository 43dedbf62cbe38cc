"""Protects the units of systemd, and that the services tell systemd the truth about themselves."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from oslo_config.cfg import ConfigOpts

from masakari_ng.engine.service import BEYOND_GRACE
from tests.daemons import Daemons
from tests.http_load import load, request
from tests.servers import RabbitMQ, eventually
from tests.service_manager import Manager

ETC = Path(__file__).parents[2] / "etc"
UNITS = ["masakari-ng-api.service", "masakari-ng-engine.service"]
NATIVE = pytest.mark.parametrize("arguments", [[], ["--threads"]], ids=["green", "native"])
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs the Debian package systemd"
)
HANG = """
import signal

def hang(_number, _frame):
    while True:
        signal.sigwait({signal.SIGUSR2})

signal.signal(signal.SIGUSR1, hang)
"""


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@needs_systemd
@pytest.mark.parametrize("unit", UNITS)
def test_units_are_correct(unit: str, tmp_path: Path):
    text = (ETC / "systemd" / unit).read_text()
    program = unit.removesuffix(".service")
    (tmp_path / unit).write_text(text.replace(f"ExecStart={program}", "ExecStart=/bin/true"))

    assert text.count(f"\nExecStart={program}\n") == 1
    assert run("systemd-analyze", "verify", "--man=no", tmp_path / unit) == ""


@needs_systemd
@pytest.mark.parametrize("unit", UNITS)
def test_units_give_away_little(unit: str):
    """At most 2.0 of the 10 that stand for a service that may do everything."""
    run(
        "systemd-analyze",
        "security",
        "--offline=true",
        "--no-pager",
        "--threshold=20",
        ETC / "systemd" / unit,
    )


@pytest.mark.parametrize("unit", UNITS)
def test_units_give_a_stop_its_time(unit: str, conf: ConfigOpts):
    [seconds] = re.findall(
        r"^TimeoutStopSec=(\d+)$", (ETC / "systemd" / unit).read_text(), re.MULTILINE
    )

    assert int(seconds) > conf.graceful_shutdown_timeout + BEYOND_GRACE


@needs_systemd
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give folders to another user")
def test_user_and_folders_are_made(tmp_path: Path):
    root = f"--root={tmp_path}"
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "group").write_text("adm:x:4:\n")

    run("systemd-sysusers", root, ETC / "sysusers.d" / "masakari-ng.conf")
    run("systemd-tmpfiles", root, "--create", ETC / "tmpfiles.d" / "masakari-ng.conf")

    [uid] = re.findall(
        r"^masakari:x:(\d+):\d+:.*:/var/lib/masakari:", (tmp_path / "etc/passwd").read_text()
    )
    for folder in ("var/lib/masakari", "var/log/masakari", "run/lock/masakari"):
        found = (tmp_path / folder).stat()
        assert (found.st_uid, found.st_mode & 0o777) == (int(uid), 0o750)


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    with closing(Manager(tmp_path / "notify")) as listening:
        yield listening


@NATIVE
def test_the_engine_is_ready_when_it_reads_the_queue(
    daemons: Daemons, manager: Manager, rabbitmq: RabbitMQ, arguments: list[str]
):
    rabbitmq.pause()
    try:
        engine = daemons.engine(arguments=arguments, wait=False)
        assert manager.next() == "STATUS=Waiting for the message broker"
        assert [manager.next() for _ in range(4)] == ["WATCHDOG=1"] * 4
    finally:
        rabbitmq.resume()

    assert manager.after("WATCHDOG=1").startswith("READY=1\n")
    assert daemons.consumers() == 1
    engine.process.signal(signal.SIGHUP)
    assert manager.after("WATCHDOG=1").startswith("RELOADING=1\nMONOTONIC_USEC=")
    assert manager.after("WATCHDOG=1") == "READY=1"
    engine.process.signal(signal.SIGTERM)
    assert manager.after("WATCHDOG=1") == "STOPPING=1"
    assert engine.terminate() == 0


@NATIVE
def test_a_hanging_main_loop_is_noticed(
    daemons: Daemons,
    manager: Manager,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
):
    (tmp_path / "sitecustomize.py").write_text(HANG)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    engine = daemons.engine(arguments=arguments)
    assert manager.after("WATCHDOG=1").startswith("STATUS=")
    assert manager.after("WATCHDOG=1").startswith("READY=1\n")
    assert [manager.next() for _ in range(3)] == ["WATCHDOG=1"] * 3

    engine.process.signal(signal.SIGUSR1)

    assert len(manager.rest(silence=5.0)) <= 3, "the pings go on"
    assert engine.process.alive
    if arguments:
        assert daemons.consumers() == 1, "other threads go on"


def test_sighup_changes_the_log_level_and_loses_no_request(daemons: Daemons, manager: Manager):
    api = daemons.api()
    assert manager.next() == "READY=1"
    port = int(api.url.rpartition(":")[2])
    asked = {"segment": {"name": "rack", "recovery_method": "auto", "service_type": "s"}}
    assert " DEBUG " not in api.log.read_text()

    with load(port, 2, lambda: request("POST", "/v1/segments", asked), fresh=True) as seen:
        eventually(lambda: len(seen.seconds) > 5)
        daemons.write_conf("api-1", {"DEFAULT": {"masakari_api_listen_port": port, "debug": True}})
        api.process.signal(signal.SIGHUP)
        assert manager.next().startswith("RELOADING=1\n")
        assert manager.next() == "READY=1"
        eventually(lambda: " DEBUG " in api.log.read_text(), timeout=60)

    assert not seen.failures
    assert set(seen.statuses) == {201, 409}
