"""`masakari-ng`: looks after a site, or shows what masakari-ng does without a cloud."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from masakari_ng import errors
from masakari_ng.clock import SystemClock
from masakari_ng.cmd import doctor
from masakari_ng.demo import stage
from masakari_ng.demo.play import Play
from masakari_ng.demo.scenes import SCENES
from masakari_ng.demo.screen import Screen, console_of

_PROGRAM = "masakari-ng"
_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
_INTERRUPTED = 128
_FIRST = next(iter(SCENES))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Args:
        arguments: command line without the program; None takes the process' own.

    Returns:
        The exit code: 0 if all scenes came out well, 1 if not, 130 or 143 if it was interrupted;
        those of `doctor` are its own.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["doctor"]:
        return doctor.main(words[1:])
    parser = _parser()
    given = parser.parse_args(words)
    scenes, stuck = given.scenes or [_FIRST], frozenset(given.stuck)
    unknown = stuck.difference(*([actor.name for actor in SCENES[it].moving] for it in scenes))
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))} that is to move")
    for name in _PROXIES:  # the parts talk to each other on loopback only
        os.environ.pop(name, None)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also when started in the background
    signal.signal(signal.SIGTERM, _end)
    try:
        return _demos(scenes, stuck)
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return _INTERRUPTED + signal.SIGINT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_PROGRAM, description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("doctor", help="is everything in order, and what is to be done?")
    demo = commands.add_parser(
        "demo",
        help="play scenes with the real services on a simulated cloud",
        description="Plays scenes with the real services on a simulated cloud, in one process.",
    )
    demo.add_argument(
        "scenes",
        nargs="*",
        type=_scene,
        metavar="NAME",
        help=f"scenes, one after the other; without any: {_FIRST}",
    )
    demo.add_argument("--list", action=_List, nargs=0, help="name the scenes, and end")
    demo.add_argument(
        "--stuck",
        action="append",
        default=[],
        metavar="INSTANCE",
        help="let this instance not move, to see what a failure looks like; may be repeated",
    )
    return parser


class _List(argparse.Action):
    """Prints name and title of every scene."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        for name, scene in SCENES.items():
            print(f"{name}\n    {scene.title}")
        parser.exit()


def _scene(name: str) -> str:
    if name not in SCENES:
        raise argparse.ArgumentTypeError(f"there is no scene {name}; --list names them")
    return name


def _demos(names: Sequence[str], stuck: frozenset[str]) -> int:
    """One after the other, also after one that came out badly."""
    failed = [name for name in names if _demo(name, stuck)]
    if len(names) > 1:
        print(f"\n{len(names) - len(failed)} of {len(names)} scenes came out as they should.")
    else:
        print("\nThere are other scenes, with failures of all kinds: --list names them.")
    return int(bool(failed))


def _demo(name: str, stuck: frozenset[str]) -> int:
    folder = Path(tempfile.mkdtemp(prefix="masakari-ng-demo-"))
    kept = True
    try:
        scene = SCENES[name].with_stuck(stuck)
        with (
            stage.opened(folder, scene.options, broker_away=scene.broker_away) as ready,
            Screen(console_of(sys.stdout)) as screen,
        ):
            summary = Play(ready, scene, SystemClock(), screen).run()
            screen.conclude(summary)
        kept = bool(summary.faults)
    except errors.MasakariError as error:
        print(f"The demo failed: {error}", file=sys.stderr)
    except (KeyboardInterrupt, SystemExit):
        kept = False
        raise
    finally:
        if kept:
            print(f"\nThe services' log is in {folder / stage.LOG_FILE}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return int(kept)


def _end(number: int, frame: Any) -> NoReturn:
    """Leave as after Ctrl-C: every block is closed, nothing stays behind."""
    raise SystemExit(_INTERRUPTED + number)


if __name__ == "__main__":
    sys.exit(main())
