"""Protects that the service manager hears of the engine's health what is true, and nothing else."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from masakari_ng.cmd.readiness import Report
from tests.service_manager import Manager


class Engine:
    consuming = False
    alive = True


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def alive_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MASAKARI_NG_ALIVE", str(tmp_path / "alive"))
    return tmp_path / "alive"


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    with closing(Manager(tmp_path / "notify")) as listening:
        yield listening


@pytest.fixture
def report(engine: Engine, alive_file: Path, manager: Manager) -> Report:
    made = Report(engine)
    assert manager.next().startswith("STATUS=Waiting")
    return made


def test_ready_is_said_once_and_when_the_queues_are_read(engine, report, manager, alive_file):
    report.tick(stopping=False)
    assert manager.next() == "WATCHDOG=1"
    assert not alive_file.exists()

    engine.consuming = True
    report.tick(stopping=False)
    assert manager.next().startswith("READY=1\n")
    assert manager.next() == "WATCHDOG=1"
    assert alive_file.exists()

    engine.consuming = False  # the broker is away for a moment
    report.tick(stopping=False)
    engine.consuming = True
    report.tick(stopping=False)
    assert [manager.next(), manager.next()] == ["WATCHDOG=1"] * 2


@pytest.mark.parametrize("stopping", [False, True])
def test_without_its_threads_only_a_stopping_engine_is_alive(
    engine, report, manager, alive_file, stopping
):
    engine.consuming = True
    report.tick(stopping=False)
    manager.rest()
    alive_file.unlink()
    engine.alive = False

    report.tick(stopping=stopping)

    assert manager.rest() == ["WATCHDOG=1"] * stopping
    assert alive_file.exists() is stopping


@pytest.mark.parametrize("ready", [False, True])
def test_a_reload_does_not_make_it_ready(engine, report, manager, ready):
    engine.consuming = ready
    report.tick(stopping=False)
    manager.rest()

    with report.reloading():
        begun = manager.rest()

    assert [text.split("=")[0] for text in begun] == ["RELOADING"] * ready
    assert manager.rest() == ["READY=1"] * ready
