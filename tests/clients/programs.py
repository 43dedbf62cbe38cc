"""The real clients: programs in a virtual environment of their own, each started as a process.

Only what a test gives them is in their environment. What they print on standard error is part of
every failure.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

_HERE = Path(__file__).parent
_FOLDER = _HERE.parents[1] / ".tox" / "programs-of-clients"
_TIMEOUT = 120.0

Access = Mapping[str, str]
"""Where the service is and who asks: `OS_...` variables."""


class ClientFailed(Exception):
    """A client cannot be installed, or ended as the test does not expect."""


class Refused(Exception):
    """openstacksdk raised an exception.

    Attributes:
        kind: its class.
        status: of the answer, None without one.
    """

    def __init__(self, kind: str, status: int | None, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.status = status


def install() -> Path:
    """Make the virtual environment, unless it is there; gives the folder of its programs.

    It survives the run, and is made again when the requirements or the interpreter have changed.

    Raises:
        ClientFailed: pip does not succeed.
    """
    requirements = _HERE / "requirements.txt"
    made_from = f"{_FOLDER}\n{sys.version}\n{requirements.read_text()}"
    programs, stamp = _FOLDER / "bin", _FOLDER / "stamp"
    if stamp.exists() and stamp.read_text() == made_from:
        return programs
    shutil.rmtree(_FOLDER, ignore_errors=True)
    venv.create(_FOLDER, with_pip=True)
    # The constraints are those of the service; all other settings of pip hold here too.
    environment = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
    pip = [str(programs / "python"), "-m", "pip", "--disable-pip-version-check", "install", "-q"]
    done = subprocess.run(
        [*pip, "-r", str(requirements)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ClientFailed(f"pip install: {done.stdout}{done.stderr}")
    stamp.write_text(made_from)
    return programs


def environment(programs: Path, access: Access) -> dict[str, str]:
    """No proxy, no cloud and no configuration file of whoever runs the tests."""
    path = f"{programs}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(programs), "LANG": "C.UTF-8", **access}


class CommandLine:
    """The `openstack` command, a process for each call."""

    def __init__(self, programs: Path, access: Access) -> None:
        self._program = str(programs / "openstack")
        self._environment = environment(programs, access)

    def __call__(self, command: str, *words: str) -> Any:
        """What a command that succeeds prints as JSON.

        Args:
            command: its name, further words and options without spaces.
            words: arguments as they are.
        """
        done = self._run(command, *words, "-f", "json")
        if done.returncode or done.stderr:
            raise ClientFailed(f"openstack {command}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def output(self, command: str, *words: str) -> tuple[int, str]:
        """Exit status and all output, of a command that has no table to show."""
        done = self._run(command, *words)
        return done.returncode, (done.stdout + done.stderr).strip()

    def _run(self, command: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._program, *command.split(), *words],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT,
        )


class Sdk:
    """`Connection.instance_ha` of openstacksdk, in a process of its own.

    A method has the name and the arguments of the real one, and gives what the object, or each
    object of the list, has as `to_dict()`. It raises `Refused` for an exception of openstacksdk.

    Args:
        log: file for its standard error.
        options: keywords of `openstack.connect`.
    """

    def __init__(self, programs: Path, access: Access, *, log: Path, **options: Any) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [str(programs / "python"), str(_HERE / "sdk_calls.py"), json.dumps(options)],
                env=environment(programs, access),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def __getattr__(self, name: str) -> Any:
        return functools.partial(self._call, name)

    def _call(self, method: str, /, *arguments: Any, **keywords: Any) -> Any:
        asked, answered = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answered is not None
        asked.write(json.dumps([method, arguments, keywords]) + "\n")
        asked.flush()
        line = answered.readline()
        if not line:
            raise ClientFailed(f"openstacksdk {method}: {self._log.read_text()}")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(*answer["error"])
        return answer["result"]


if __name__ == "__main__":
    install()
