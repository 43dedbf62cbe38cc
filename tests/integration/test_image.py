"""Protects the container image: what it runs as, how it is stopped, and that its health is true."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.daemons import Daemons
from tests.servers import eventually

ROOT = Path(__file__).parents[2]
HEALTH = ROOT / "etc" / "docker" / "masakari-ng-health"


def instructions() -> list[tuple[str, str]]:
    """Names and arguments of the Dockerfile's instructions."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    joined = re.sub(r"\\\n\s*", " ", text)
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


def last(name: str) -> str:
    return [rest for found, rest in instructions() if found == name][-1]


def test_hadolint_finds_nothing():
    program = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert program, "is in the extra `test`"

    done = subprocess.run(
        [program, "-"],
        input=(ROOT / "Dockerfile").read_text(),
        text=True,
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "")


def test_it_runs_as_somebody_else_and_hands_signals_on():
    user, _, group = last("USER").partition(":")

    assert int(user) == int(group) > 0
    assert last("CMD") == '["masakari-ng-api"]'  # no shell between the signals and the daemon
    assert last("HEALTHCHECK").endswith('CMD ["masakari-ng-health"]')


def test_what_it_is_made_of_is_pinned_and_there():
    stages = [rest.split(" AS ") for name, rest in instructions() if name == "FROM"]
    sources = [
        source
        for name, rest in instructions()
        if name == "COPY" and "--from=" not in rest
        for source in re.sub(r"--\S+ ", "", rest).split()[:-1]
    ]

    assert re.fullmatch(r"debian:\d+\.\d+-slim", stages[0][0])
    assert {base for base, *_ in stages[1:]} == {stages[0][1]}
    assert "-c constraints.txt" in " ".join(rest for name, rest in instructions() if name == "RUN")
    assert [source for source in sources if not (ROOT / source).exists()] == []


def healthy(process: int | str, **environment: str) -> bool:
    done = subprocess.run(
        [sys.executable, HEALTH, str(process)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert (done.returncode == 0) is (done.stderr == "")
    return done.returncode == 0


def test_health_of_the_engine(daemons: Daemons, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "alive"
    monkeypatch.setenv("MASAKARI_NG_ALIVE", str(file))

    engine = daemons.engine().process

    eventually(lambda: healthy(engine.pid))
    engine.signal(signal.SIGSTOP)  # it hangs
    os.utime(file, (time.time() - 31, time.time() - 31))
    assert not healthy(engine.pid)
    file.unlink()
    assert not healthy(engine.pid)


def test_health_of_the_api(daemons: Daemons):
    api = daemons.api()

    assert healthy(api.process.pid, MASAKARI_NG_HEALTH_URL=f"{api.url}/healthcheck")
    assert healthy(api.process.pid, MASAKARI_NG_HEALTH_URL=f"{api.url}/nothing")
    api.kill()
    # "self" stands for the process of a container that is there and answers nobody.
    assert not healthy("self", MASAKARI_NG_HEALTH_URL=f"{api.url}/healthcheck")
