"""Mixed load for minutes, over a reload and a killed worker: does anything fail or grow?"""

import functools
import itertools
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil

from tests.http_load import load

_CLIENTS = 32
_TITLES = ("minute", "answers", "5xx", "no answer", "MiB", "connections", "threads", "event")


def soak(service: Any, site: Any, requests: list[Callable[[], bytes]], minutes: float) -> None:
    """Print a row each minute.

    Args:
        service: a `Contender`.
        site: its `Site`.
        requests: asked in turn.
        minutes: how long; SIGHUP after a third, a worker killed after two thirds.
    """
    following = functools.partial(_next, itertools.cycle(requests))
    begin, minute = time.monotonic(), 0
    events = {minutes / 3: "SIGHUP", 2 * minutes / 3: "kill"}
    print(*(f"{title:>11}" for title in _TITLES))
    with load(service.port, _CLIENTS, following) as seen:
        while (passed := (time.monotonic() - begin) / 60) < minutes:
            due = [when for when in events if when <= passed]
            done = [_happen(service, events.pop(when)) for when in due]
            if done or passed >= minute + 1:
                minute = int(passed)
                wrong = sum(count for status, count in seen.statuses.items() if status >= 500)
                row = [f"{passed:.1f}", len(seen.seconds), wrong, seen.failures.total()]
                row += [*_size(service, site), " ".join(done)]
                print(*(f"{cell:>11}" for cell in row), flush=True)
                site.forget_reports()
            time.sleep(0.5)
    print(dict(seen.statuses), dict(seen.failures))


def _next(turn: Iterator[Callable[[], bytes]]) -> bytes:
    return next(turn)()


def _happen(service: Any, event: str) -> str:
    if event == "SIGHUP":
        service.process.signal(signal.SIGHUP)
    else:
        service.processes()[-1].kill()
    return event


def _size(service: Any, site: Any) -> list[object]:
    """Memory of the largest worker, connections to the database, threads of all workers."""
    threads = 0
    for process in service.processes()[1:]:
        try:
            threads += process.num_threads()
        except psutil.NoSuchProcess:  # it was just replaced
            continue
    query = "SELECT COUNT(*) AS found FROM information_schema.processlist WHERE db IS NOT NULL"
    return [f"{service.memory():.0f}", site.mariadb.sql(None, query)[0]["found"], threads]
