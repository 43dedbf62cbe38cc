"""`masakari-ng`: shows what masakari-ng does, without a cloud."""

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
from masakari_ng.demo import stage
from masakari_ng.demo.scenes import SCENES
from masakari_ng.demo.screen import Screen, console_of

_PROGRAM = "masakari-ng"
_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
_INTERRUPTED = 128


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Args:
        arguments: command line without the program; None takes the process' own.

    Returns:
        The exit code: 0 if the scene came out well, 1 if not, 130 or 143 if it was interrupted.
    """
    given = _parser().parse_args(arguments)
    for name in _PROXIES:  # the parts talk to each other on loopback only
        os.environ.pop(name, None)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also when started in the background
    signal.signal(signal.SIGTERM, _end)
    try:
        return _demo(given.scene, frozenset(given.stuck))
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return _INTERRUPTED + signal.SIGINT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_PROGRAM, description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    scenes = "; ".join(f"{name}: {scene.title}" for name, scene in SCENES.items())
    demo = commands.add_parser(
        "demo",
        help="play a scene with the real services on a simulated cloud",
        description="Plays a scene with the real services on a simulated cloud, in one process.",
    )
    demo.add_argument("scene", nargs="?", choices=SCENES, default=next(iter(SCENES)), help=scenes)
    demo.add_argument(
        "--stuck",
        action="append",
        default=[],
        metavar="INSTANCE",
        help="let this instance not move, to see what a failure looks like; may be repeated",
    )
    return parser


def _demo(name: str, stuck: frozenset[str]) -> int:
    folder = Path(tempfile.mkdtemp(prefix="masakari-ng-demo-"))
    kept = True
    try:
        with stage.opened(folder) as ready, Screen(console_of(sys.stdout)) as screen:
            scene = SCENES[name](ready, SystemClock(), stuck)
            screen.say(scene.title, style="bold")
            summary = scene.play(screen)
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
