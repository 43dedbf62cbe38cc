"""Protects the demo as a visitor runs it: a program whose output goes to a file."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from masakari_ng.cmd.demo import main
from masakari_ng.demo.scenes import SCENES

STUCK = "web-3"
PATIENCE = 120
OTHERS = (
    ("host-failure-auto-priority-fallback",),
    (
        "host-failure-reserved-host",
        "host-failure-no-reserved-host-then-periodic",
        "periodic-expired-notification",
    ),
    ("instance-failure", "process-failure", "periodic-retry-lost-new-notification"),
)
SAYS = {
    "host-failure-auto": ["8 of 8 instances of node-1 moved"],
    "host-failure-reserved-host": ["is finished.", "node-1 -> node-4", "2 of 2 instances"],
    "host-failure-no-reserved-host-then-periodic": ["is error.", "is failed.", "None of the"],
    "host-failure-auto-priority-fallback": [
        # It is `error` until the next look of a periodic task, too short a time to be sure to see.
        "Failed to evacuate instances 'web-1' from host 'node-1'",
        "is finished.",
        "node-1 -> node-4 failed, succeeded",
    ],
    "instance-failure": ["Instance started: 'web-1'", "not Ha_Enabled", "is ignored."],
    "process-failure": ["is finished.", "The API answers 409", "None of the instances"],
    "periodic-retry-lost-new-notification": ["is new.", "is finished.", "2 of 2 instances"],
    "periodic-expired-notification": ["is new.", "is failed.", "None of the instances"],
}


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
        "well": Demo(folder / "well"),
        "stuck": Demo(folder / "stuck", "--stuck", STUCK),
        "mixed": Demo(folder / "mixed", "--stuck=web-1", OTHERS[1][0], "process-failure"),
        "interrupted": Demo(folder / "interrupted"),
    }
    started |= {" ".join(names): Demo(folder / names[0], *names) for names in OTHERS}
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


@pytest.mark.parametrize("scene", SCENES)
def test_each_scene_comes_out_as_it_should_and_is_explained(demos, scene):
    demo = next((demos[run] for run in demos if scene in run.split()), demos["well"])

    assert demo.end() == 0, demo.text

    played = demo.text.split(" ".join(SCENES[scene].title.split()[:6]))[1]
    told = played.split("What the operator does next:")[0]
    for text in SAYS[scene]:
        assert text in told
    assert " ".join(SCENES[scene].meaning.split()) in " ".join(told.split())
    assert "Not as it should be" not in told
    assert list(demo.temporary.iterdir()) == []


def test_scenes_are_listed_by_name(capsys):
    with pytest.raises(SystemExit) as end:
        main(["demo", "--list"])

    assert end.value.code == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line[0] != " "] == list(SAYS)


def test_an_unknown_scene_is_refused(capsys):
    with pytest.raises(SystemExit) as end:
        main(["demo", "instance-failure", "host"])

    assert end.value.code == 2
    assert "there is no scene host" in capsys.readouterr().err


def test_one_failure_among_several_scenes_counts(demos):
    demo = demos["mixed"]

    assert demo.end() == 1, demo.text

    assert "1 of 2 scenes came out as they should." in demo.text


def test_only_what_moves_can_be_stuck(capsys):
    with pytest.raises(SystemExit) as end:
        main(["demo", "--stuck", "web-4"])

    assert end.value.code == 2
    assert "there is no web-4 that is to move" in capsys.readouterr().err


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
