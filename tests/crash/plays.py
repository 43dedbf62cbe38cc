"""Plays cases on several sites at once, and remembers in a file which have passed."""

import json
import queue
import random
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from tests.crash.site import Site

Case = Callable[[Site, random.Random], None]
"""What happens at a site; raises if anything is wrong afterwards."""


class Failed(Exception):
    """A case has failed; the text has what it takes to play it again."""


class Results:
    """The cases that have passed, one JSON line each, so that a second run goes on.

    Args:
        path: None forgets.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        lines = path.read_text().splitlines() if path and path.exists() else []
        self._passed = {json.loads(line)["case"] for line in lines}

    def has(self, name: str) -> bool:
        return name in self._passed

    def add(self, name: str, seed: int) -> None:
        if self._path is not None:
            with self._lock, self._path.open("a") as file:
                file.write(json.dumps({"case": name, "seed": seed}) + "\n")


class Plays:
    """Begins each case as soon as a site is free.

    Args:
        make_site: builds the site of this number; called in the threads.
        number: of sites.
        seed: of all chance.
        results: told what has passed.
    """

    def __init__(
        self, make_site: Callable[[int], Site], number: int, seed: int, results: Results
    ) -> None:
        self._seed = seed
        self._results = results
        self._pool = ThreadPoolExecutor(number)
        self._free: queue.Queue[Site] = queue.Queue()
        self._sites = list(self._pool.map(make_site, range(number)))
        for site in self._sites:
            self._free.put(site)

    def begin(self, cases: Iterable[tuple[str, Case]]) -> dict[str, Future[None]]:
        """Play cases, in order; gives their results by name."""
        return {name: self._pool.submit(self._play, name, case) for name, case in cases}

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        for site in self._sites:
            site.close()

    def _play(self, name: str, case: Case) -> None:
        site = self._free.get()
        try:
            site.wait_ready()
            case(site, random.Random(f"{self._seed} {name}"))
        except Exception as error:
            logs = "\n".join(f"--- {title}\n{text}" for title, text in site.daemons.logs())
            raise Failed(f"{logs}\n--- {name}, --seed {self._seed}: {error!r}") from error
        else:
            self._results.add(name, self._seed)
        finally:
            site.cloud.arm_faults([])
            for proxy in site.proxies.values():
                proxy.mend()
            self._free.put(site)
