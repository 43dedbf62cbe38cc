"""Protects that other WSGI servers serve the application, with options from a folder only."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.daemons import Daemons
from tests.servers import Process, free_port

SERVERS = {
    "uwsgi": [
        *("uwsgi", "--http-socket", "127.0.0.1:{port}", "--module", "masakari_ng.wsgi:application"),
        # One process: a second one may still be starting when the first is told to stop.
        *("--master", "--processes", "1", "--threads", "4", "--lazy-apps"),
        # Without it SIGTERM reloads.
        *("--die-on-term", "--need-app", "--virtualenv", sys.prefix),
    ],
    "gunicorn": [
        *("gunicorn", "--bind", "127.0.0.1:{port}", "--worker-class", "gthread"),
        *("--workers", "2", "--threads", "4", "masakari_ng.wsgi:application"),
    ],
}
SEGMENT = {"segment": {"name": "rack", "recovery_method": "auto", "service_type": "s"}}

Start = Callable[[str], tuple[Process, str]]


@pytest.fixture
def start(daemons: Daemons, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a server by its name; gives the process and the URL, once it answers."""
    daemons.write_conf("masakari")
    monkeypatch.setenv("OS_MASAKARI_CONFIG_DIR", str(tmp_path))
    started: list[Process] = []

    def starting(name: str) -> tuple[Process, str]:
        port = free_port()
        program, *words = [word.format(port=port) for word in SERVERS[name]]
        path = str(Path(sys.executable).parent / program)
        started.append(Process([path, *words], log=tmp_path / f"{name}.log"))
        url = f"http://127.0.0.1:{port}"
        started[-1].wait_ready(lambda: asked("GET", f"{url}/healthcheck") == 200)
        return started[-1], url

    yield starting
    for process in started:
        process.kill()


def asked(method: str, url: str, body: Any = None) -> int | None:
    """The status; None while nobody answers."""
    with requests.Session() as session:
        session.trust_env = False
        try:
            return session.request(method, url, json=body, timeout=30).status_code
        except requests.RequestException:
            return None


@pytest.mark.parametrize("name", SERVERS)
def test_it_serves_and_stops(start: Start, name: str):
    process, url = start(name)

    assert asked("POST", f"{url}/v1/segments", SEGMENT) == 201
    assert [asked("GET", f"{url}/v1/segments") for _ in range(8)] == [200] * 8
    assert asked("POST", f"{url}/v1/segments", SEGMENT) == 409
    assert asked("GET", f"{url}/v1/segments/nothing") == 404
    assert process.terminate(grace=60) == 0, process.tail()
