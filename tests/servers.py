"""Private servers of one test run: MariaDB and RabbitMQ in temporary folders on free ports.

Every process has its own process group. They are stopped by the fixtures, and by the reaper when
the test run itself dies, however it dies.
"""

import atexit
import contextlib
import functools
import os
import random
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kombu
import pymysql
from pymysql.constants import CLIENT

from masakari_ng import errors
from masakari_ng.clock import SystemClock, wait_until

_START_TIMEOUT = 60.0
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
_REAPER = """
trap '' HUP INT TERM
left=
while read -r what group; do
    rest=
    for other in $left; do [ "$other" = "$group" ] || rest="$rest $other"; done
    left=$rest
    [ "$what" = end ] || left="$left $group"
done
for group in $left; do kill -s KILL -- "-$group"; done
"""


class ServerFailed(Exception):
    """A server is not installed, does not start or has ended; the text has the end of its log."""


def free_port() -> int:
    """A port that nobody listens on, below those that the kernel gives to outgoing connections.

    A client that knocks at the port of a killed server could else connect to itself.
    """
    while True:
        port = random.randrange(15000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def eventually(condition: Callable[[], bool], *, timeout: float = 20.0) -> None:
    """Wait in real time, looking every 50 ms.

    Raises:
        WaitTimeout: not true after `timeout` seconds.
    """
    wait_until(condition, interval=0.05, timeout=timeout, clock=SystemClock())


@functools.cache
def _reaper() -> subprocess.Popen[bytes]:
    """A shell that kills the groups it was told of once our end of its input is closed."""
    reaper = subprocess.Popen(
        ["/bin/sh", "-c", _REAPER],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    atexit.register(reaper.communicate)
    return reaper


def _tell_reaper(what: str, group: int) -> None:
    pipe = _reaper().stdin
    assert pipe is not None
    os.write(pipe.fileno(), f"{what} {group}\n".encode())


class Process:
    """A command in its own process group, its output in a file."""

    def __init__(
        self, command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if env is None else dict(env),
                start_new_session=True,
            )
        self.pid = self._popen.pid
        _tell_reaper("start", self.pid)

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    @property
    def exit_code(self) -> int | None:
        return self._popen.poll()

    def signal(self, number: signal.Signals) -> None:
        """To the process alone, as a service manager does."""
        os.kill(self.pid, number)

    def terminate(self, *, grace: float = 10.0) -> int:
        """SIGTERM, and SIGKILL for whatever is left after `grace` seconds; gives the exit code."""
        if self.alive:
            self.signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(grace)
        return self.kill()

    def kill(self) -> int:
        """SIGKILL to the whole group; gives the exit code."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        code = self._popen.wait()
        _tell_reaper("end", self.pid)
        return code

    def tail(self, lines: int = 40) -> str:
        """The end of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def wait_ready(self, ready: Callable[[], bool], *, timeout: float = _START_TIMEOUT) -> None:
        """Wait until it serves.

        Raises:
            ServerFailed: it has ended or takes longer than `timeout` seconds.
        """
        try:
            eventually(lambda: not self.alive or ready(), timeout=timeout)
        except errors.WaitTimeout as error:
            raise ServerFailed(f"{self.log.name}: does not answer\n{self.tail()}") from error
        if not self.alive:
            raise ServerFailed(f"{self.log.name}: exit code {self.exit_code}\n{self.tail()}")


def _program(name: str, package: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:{_SBIN}:/usr/lib/rabbitmq/bin")
    if found is None:
        raise ServerFailed(f"{name} is not installed (Debian package {package})")
    return found


def _as_root() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []


class MariaDB:
    """A server that can be killed and started again on the same port and data.

    Commits survive SIGKILL (they are written at once) though not a crash of the machine.
    """

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._schemas = 0
        self._process: Process | None = None
        self._install()

    def _install(self) -> None:
        done = subprocess.run(
            [
                _program("mariadb-install-db", "mariadb-server"),
                "--no-defaults",
                *_as_root(),
                f"--datadir={self._folder / 'data'}",
                f"--tmpdir={self._folder}",  # each start empties it of temporary tables
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ServerFailed(f"mariadb-install-db: {done.stdout}{done.stderr}")

    def start(self) -> None:
        self._process = Process(
            [
                _program("mariadbd", "mariadb-server"),
                "--no-defaults",
                *_as_root(),
                f"--datadir={self._folder / 'data'}",
                f"--tmpdir={self._folder}",
                "--socket=mariadb.sock",
                f"--port={self.port}",
                "--bind-address=127.0.0.1",
                "--character-set-server=utf8mb4",
                "--skip-log-bin",
                "--skip-innodb-doublewrite",
                "--innodb-flush-log-at-trx-commit=2",
                "--innodb-log-file-size=16M",
                "--innodb-buffer-pool-size=64M",
                "--max-connections=500",
                "--max-connect-errors=1000000",
            ],
            log=self._folder / "mariadb.log",
        )
        self._process.wait_ready(self._answers)

    def _answers(self) -> bool:
        try:
            self._connect(None).close()
        except pymysql.err.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """SIGKILL; `start` brings it back."""
        if self._process is not None:
            self._process.kill()

    def pause(self) -> None:
        """Freeze it: connections stay open and nothing answers."""
        assert self._process is not None
        self._process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.signal(signal.SIGCONT)

    def url(self, schema: str) -> str:
        return f"mysql+pymysql://root@127.0.0.1:{self.port}/{schema}?charset=utf8"

    def schema_of(self, url: str) -> str:
        return urlsplit(url).path.lstrip("/")

    def create_schema(self) -> str:
        """Make an empty schema; gives its URL."""
        self._schemas += 1
        schema = f"masakari_{self._schemas}"
        self.sql(None, f"CREATE DATABASE {schema} CHARACTER SET utf8")
        return self.url(schema)

    def sql(self, schema: str | None, text: str, *values: object) -> list[dict[str, Any]]:
        """Run statements, each committed at once; gives the rows of the last."""
        with self._connect(schema) as link, link.cursor() as cursor:
            cursor.execute(text, values or None)
            rows = cursor.fetchall()
            while cursor.nextset():
                rows = cursor.fetchall()
        return list(rows)

    def copy_schema(self, source: str, target: str) -> None:
        """Tables with keys and rows of one schema into an empty one."""
        statements = ["SET FOREIGN_KEY_CHECKS=0"]
        for found in self.sql(source, "SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'"):
            table = found[f"Tables_in_{source}"]
            shown = self.sql(source, f"SHOW CREATE TABLE `{table}`")
            statements += [
                shown[0]["Create Table"],
                f"INSERT INTO `{table}` SELECT * FROM `{source}`.`{table}`",
            ]
        self.sql(target, ";\n".join(statements))

    def _connect(self, schema: str | None) -> Any:
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user="root",
            database=schema,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=5,
            client_flag=CLIENT.MULTI_STATEMENTS,
            cursorclass=pymysql.cursors.DictCursor,
        )


class RabbitMQ:
    """A broker that can be killed and started again on the same port and data."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._vhosts = 0
        self._process: Process | None = None
        (folder / "rabbitmq.conf").touch()
        (folder / "environment.conf").touch()
        (folder / "plugins").write_text("[].\n")
        epmd_port = str(free_port())
        self._environment = {
            "PATH": f"{os.environ['PATH']}:{_SBIN}",
            "LANG": "C.UTF-8",
            "HOME": str(folder),
            "ERL_EPMD_PORT": epmd_port,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"test-{self.port}@localhost",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "environment.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        }
        # Not left to the node, which would start it as a daemon outside our process groups.
        self._epmd = Process(
            [_program("epmd", "rabbitmq-server"), "-port", epmd_port],
            log=folder / "epmd.log",
            env=self._environment,
        )

    def start(self) -> None:
        # The program of this name under sbin changes the user.
        self._process = Process(
            ["/usr/lib/rabbitmq/bin/rabbitmq-server"],
            log=self._folder / "rabbitmq.log",
            env=self._environment,
        )
        self._process.wait_ready(self._answers)

    def _answers(self) -> bool:
        url = self.url("/").replace("rabbit:", "amqp:")
        with kombu.Connection(url, connect_timeout=5) as link:
            try:
                link.connect()
            except link.connection_errors:
                return False
        return True

    def kill(self) -> None:
        """SIGKILL; `start` brings it back."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        self.kill()
        self._epmd.kill()

    def pause(self) -> None:
        """Freeze it: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, number)

    def url(self, vhost: str) -> str:
        """As `transport_url` of oslo.messaging has it."""
        path = vhost.replace("/", "%2F")
        return f"rabbit://guest:guest@127.0.0.1:{self.port}/{path}"

    def new_vhost(self) -> str:
        """Make an empty vhost; gives its name."""
        self._vhosts += 1
        name = f"test{self._vhosts}"
        self.control(
            "eval",
            f'rabbit_vhost:add(<<"{name}">>, <<"test">>), '
            f'rabbit_auth_backend_internal:set_permissions(<<"guest">>, <<"{name}">>, '
            '<<".*">>, <<".*">>, <<".*">>, <<"test">>).',
        )
        return name

    def control(self, *arguments: str) -> str:
        """Run rabbitmqctl; gives its output."""
        done = subprocess.run(
            ["/usr/lib/rabbitmq/bin/rabbitmqctl", "--quiet", *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ServerFailed(f"rabbitmqctl {arguments[0]}: {done.stdout}{done.stderr}")
        return done.stdout
