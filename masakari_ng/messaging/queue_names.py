"""Names of queues that belong to one process. Spec: rpc §3.3."""

import fcntl
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FOLDER = Path("/dev/shm")  # noqa: S108 - where upstream keeps its counters
_STARTED = 19  # place of the start time in /proc/PID/stat behind the program's name


def unique(options: Mapping[str, Any], folder: Path = _FOLDER) -> str:
    """The part of a queue's name that no other process uses.

    Args:
        options: `use_queue_manager`, `hostname`, `processname`.
        folder: where the counters are kept; they need not outlive the machine.
    """
    if not options["use_queue_manager"]:
        return uuid.uuid4().hex
    host, program = options["hostname"], options["processname"]
    return f"{host}:{program}:{_next(folder / f'{host}_{program}_qmanager')}"


def _next(counter: Path) -> int:
    """One more than the last of this service, and 1 once it was started anew."""
    group = os.getpgrp()
    with counter.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        present, last = (str(group), _started(group)), file.read().strip().split(":")
        known = len(last) == len(("group", "number", "start")) and (last[0], last[2]) == present
        number = int(last[1]) + 1 if known else 1
        file.seek(0)
        file.truncate()
        file.write(f"{present[0]}:{number}:{present[1]}\n")
    return number


def _started(process: int) -> str:
    """When a process was started; empty if its group outlives it."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return ""
    return text.rpartition(")")[2].split()[_STARTED]
