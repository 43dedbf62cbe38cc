"""Protects that what the demo shows can be read: in 80 columns, in a file, and on a terminal."""

import io

import pytest
from rich.console import Console

from masakari_ng.demo.picture import InstanceView, Picture, Summary
from masakari_ng.demo.screen import Screen

WIDEST = InstanceView(
    name="batch-1",
    ha_enabled=True,
    before="active/pausing",
    now="active/powering-off",
    source="node-1",
    host="node-3",
    move="succeeded",
    reason="",
    lock="user",
)
MESSAGE = "Start evacuation of instances from failed host 'node-1', instance uuids are: 'a-1, a-2'"
PICTURES = (
    Picture(0.5, "new", (), ()),
    Picture(1.0, "running", (WIDEST,), (MESSAGE,)),
    Picture(1.5, "running", (WIDEST,), (MESSAGE, MESSAGE * 3)),
)
SUMMARY = Summary(
    "1 of 1 moved.", "Well.", (WIDEST,), ("web-1 is still on node-1.",), (MESSAGE,), ("Go.",)
)


@pytest.mark.parametrize("terminal", [False, True], ids=["file", "terminal"])
def test_tells_each_thing_once_and_cuts_nothing(terminal):
    written = io.StringIO()
    console = Console(file=written, force_terminal=terminal, width=80, _environ={"TERM": "xterm"})

    with Screen(console) as screen:
        for picture in PICTURES:
            screen.show(picture)
        screen.conclude(SUMMARY)

    text = written.getvalue()
    assert ("\x1b" in text) == terminal
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert text.count("   1.0 s  Start evacuation of instances") == 1
    assert text.count("The notification is running.") == 1
    assert "batch-1: move from node-1 to node-3, active/powering-off: succeeded" in text
    assert "  - web-1 is still on node-1." in text
    row = "batch-1  HA active/pausing active/powering-off node-1 -> node-3 succeeded user"
    assert (row in text) != terminal
    if not terminal:
        assert max(len(line) for line in text.splitlines()) <= 80
