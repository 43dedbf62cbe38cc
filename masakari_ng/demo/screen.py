"""What the demo shows: lines as things happen and, on a terminal, a table that follows them."""

import textwrap
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from masakari_ng.demo.picture import InstanceView, Picture, Summary
from masakari_ng.domain import NotificationStatus

_INDENT = 10
_FILE_WIDTH = 80
_NOTHING = Picture(0.0, "", (), ())
_UNDER_WAY = frozenset({NotificationStatus.NEW, NotificationStatus.RUNNING})
_STYLES = {
    "new": "yellow",
    "running": "yellow",
    "pending": "dim",
    "ongoing": "yellow",
    "finished": "green",
    "succeeded": "green",
    "error": "red",
    "failed": "red",
}


def console_of(stream: TextIO) -> Console:
    """What a terminal can do is used there only: a file gets plain lines of 80 columns."""
    if stream.isatty():
        return Console(file=stream)
    return Console(file=stream, force_terminal=False, width=_FILE_WIDTH)


class Screen:
    """Shows one scene; use it as a block.

    Lines are printed as they come, so a file or a pipe gets a readable story. On a terminal a table
    stays below them and follows what happens.

    Args:
        console: where to; its width holds for the lines.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = _NOTHING
        self._live: Live | None = None
        if console.is_terminal and not console.is_dumb_terminal:
            self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def say(self, text: str, seconds: float | None = None, style: str = "") -> None:
        """Print one line, or a paragraph.

        Args:
            text: plain text.
            seconds: moment that is put in front.
            style: of rich; nothing where the console has no colours.
        """
        moment = "" if seconds is None else f"{seconds:6.1f} s"
        indent = "" if seconds is None else " " * _INDENT
        lines = textwrap.wrap(
            text, width=self._console.width - 1, initial_indent=indent, subsequent_indent=indent
        )
        for number, line in enumerate(lines or [""]):
            front = moment if number == 0 else ""
            self._console.print(Text(front + line[len(front) :], style), soft_wrap=True)

    def begin(self) -> None:
        """Another notification follows."""
        self.say("")
        self._last = _NOTHING

    def show(self, picture: Picture) -> None:
        """Print what is new since the last picture, and bring the table up to date."""
        for text, style in _news(self._last, picture):
            self.say(text, picture.seconds, style)
        self._last = picture
        if self._live:
            self._live.update(Group(Text(""), _standing(picture)), refresh=True)

    def conclude(self, summary: Summary) -> None:
        """Print how it ended."""
        if self._live:
            self._live.stop()
        self.say("")
        self.say(summary.headline, style="bold red" if summary.faults else "bold green")
        if summary.meaning:
            self.say(summary.meaning)
        self.say("")
        self._console.print(_table(summary.instances))
        self._paragraphs("Not as it should be:", summary.faults)
        self._paragraphs("Worth knowing:", summary.remarks)
        self._paragraphs("What the operator does next:", summary.steps)

    def _paragraphs(self, title: str, texts: Sequence[str]) -> None:
        if not texts:
            return
        self.say("")
        self.say(title, style="bold")
        for text in texts:
            self._console.print(
                textwrap.fill(
                    text,
                    width=self._console.width - 1,
                    initial_indent="  - ",
                    subsequent_indent="    ",
                    break_on_hyphens=False,
                ),
                soft_wrap=True,
                markup=False,
                highlight=False,
            )


def _news(before: Picture, now: Picture) -> list[tuple[str, str]]:
    """What has changed: text and style of each line."""
    news = [(text, "") for text in now.messages[len(before.messages) :]]
    moves = {instance.name: instance.move for instance in before.instances}
    for instance in now.instances:
        if instance.move not in ("", "pending", moves.get(instance.name)):
            place = f"from {instance.source}"
            if instance.host != instance.source:
                place += f" to {instance.host}, {instance.now}"
            style = _style(instance.move)
            news.append((f"{instance.name}: move {place}: {instance.move}", style))
    if now.status != before.status:
        line = (f"The notification is {now.status}.", _STYLES.get(now.status, ""))
        news.insert(0 if now.status in _UNDER_WAY else len(news), line)
    return news


def _style(moves: str) -> str:
    """Of the last of these statuses."""
    return _STYLES.get(moves.rpartition(" ")[2], "")


def _standing(picture: Picture) -> Table:
    """The table that follows what happens."""
    table = _table(picture.instances)
    table.title = f"notification: {picture.status}, {picture.seconds:.0f} s"
    table.title_justify = "left"
    table.title_style = _STYLES.get(picture.status, "")
    return table


def _way(instance: InstanceView) -> str:
    if instance.host == instance.source:
        return instance.host
    return f"{instance.source} -> {instance.host}"


_COLUMNS: tuple[tuple[str, Callable[[InstanceView], str]], ...] = (
    ("instance", lambda instance: instance.name),
    ("HA", lambda instance: "HA" if instance.ha_enabled else ""),
    ("before", lambda instance: instance.before),
    ("now", lambda instance: instance.now),
    ("host", _way),
    ("move", lambda instance: instance.move),
    ("lock", lambda instance: instance.lock),
)


def _table(instances: Sequence[InstanceView]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for title, _ in _COLUMNS:
        table.add_column(title, no_wrap=True)
    for instance in instances:
        cells = [Text(cell(instance)) for _, cell in _COLUMNS]
        cells[5].stylize(_style(instance.move))
        table.add_row(*cells)
    return table
