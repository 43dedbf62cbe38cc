"""Peers that speak through oslo.messaging, each a process of its own."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from tests.servers import Process, eventually

_PEER = Path(__file__).parent / "peer.py"


class Peer:
    """What it has told so far, line by line."""

    def __init__(self, process: Process) -> None:
        self.process = process

    @property
    def told(self) -> list[dict[str, Any]]:
        lines = self.process.log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def wait(self, count: int = 1) -> list[dict[str, Any]]:
        """Wait until it has told so much, and give that."""
        eventually(lambda: len(self.told) >= count or not self.process.alive, timeout=60)
        assert len(self.told) >= count, self.process.tail()
        return self.told


MakePeer = Callable[..., Peer]


@pytest.fixture
def conf(conf: cfg.ConfigOpts, rabbit_url: str) -> cfg.ConfigOpts:
    conf.set_override("transport_url", rabbit_url)
    conf.set_override("host", "engine-host-1")
    return conf


@pytest.fixture
def make_peer(rabbit_url: str, tmp_path: Path) -> Iterator[MakePeer]:
    """Starts a peer with the words of its command line; one that stays is waited for."""
    made: list[Peer] = []

    def make(action: str, job: object = None) -> Peer:
        words = [] if job is None else [json.dumps(job)]
        command = [sys.executable, str(_PEER), rabbit_url, action, *words]
        made.append(Peer(Process(command, log=tmp_path / f"peer-{len(made)}.log")))
        if job is None:
            made[-1].wait()
        return made[-1]

    yield make
    for peer in made:
        peer.process.kill()
