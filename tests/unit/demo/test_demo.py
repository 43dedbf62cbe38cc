"""Protects the demo as a visitor runs it: a program whose output goes to a file."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

STUCK = "web-3"
PATIENCE = 120


class Demo:
    """A running demo with a folder of its own for temporary files."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)
        self._output = folder / "output"
        environment = os.environ | {"TMPDIR": str(self.temporary), "FORCE_COLOR": "1"}
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "masakari_ng.cmd.demo", "demo", *options],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )

    @property
    def text(self) -> str:
        return self._output.read_text()

    def end(self) -> int:
        return self.process.wait(PATIENCE)

    def interrupt_in_the_middle(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while "Evacuation of instance started" not in self.text:
            assert self.process.poll() is None, self.text
            assert time.monotonic() < deadline, self.text
            time.sleep(0.05)
        self.process.send_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Demo]]:
    """All at once, as most of their time is waiting."""
    folder = tmp_path_factory.mktemp("demo")
    started = {
        "well": Demo(folder / "well", "host-failure"),
        "stuck": Demo(folder / "stuck", "--stuck", STUCK),
        "interrupted": Demo(folder / "interrupted"),
    }
    started["interrupted"].interrupt_in_the_middle()
    yield started
    for demo in started.values():
        demo.process.kill()
        demo.process.wait()


def test_all_instances_move_and_nothing_is_left(demos):
    demo = demos["well"]

    assert demo.end() == 0, demo.text

    assert "8 of 8 instances of node-1 moved" in demo.text
    assert "Evacuation process completed!" in demo.text
    assert "The notification is finished." in demo.text
    assert "openstack segment host update --on_maintenance False rack-1 node-1" in demo.text
    assert "\x1b" not in demo.text
    assert max(len(line) for line in demo.text.splitlines()) <= 80
    assert list(demo.temporary.iterdir()) == []


def test_an_instance_that_cannot_move_is_named_and_the_log_is_kept(demos):
    demo = demos["stuck"]

    assert demo.end() == 1, demo.text

    assert "7 of 8 instances of node-1 moved" in demo.text
    assert f"  - {STUCK} is still on node-1." in demo.text
    assert f"The move of {STUCK} is failed." in demo.text
    (folder,) = demo.temporary.iterdir()
    log = folder / "services.log"
    assert f"The services' log is in {log}" in demo.text
    assert log.stat().st_size > 0


def test_ctrl_c_in_the_middle_leaves_nothing(demos):
    demo = demos["interrupted"]
    assert demo.end() == 130, demo.text
    assert demo.text.endswith("\nInterrupted.\n")
    assert list(demo.temporary.iterdir()) == []
