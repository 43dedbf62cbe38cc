"""Real `masakari-ng-api` and `masakari-ng-engine` processes with a generated masakari.conf."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import kombu
import requests

from tests.servers import Process, free_port

Settings = Mapping[str, Mapping[str, object]]
"""Options by group."""

_TOPIC = "ha_engine"


class Daemon:
    """A service that can be killed and started again with the same options."""

    def __init__(self, command: Sequence[str], log: Path, ready: Callable[[], bool]) -> None:
        self.log = log
        self._command = command
        self._ready = ready
        self.process = Process(command, log=log)

    def wait_ready(self) -> None:
        self.process.wait_ready(self._ready)

    def kill(self) -> None:
        """SIGKILL to the service and its workers."""
        self.process.kill()

    def terminate(self, *, grace: float = 70.0) -> int:
        """SIGTERM; gives the exit code, -9 if it took longer than `grace` seconds."""
        return self.process.terminate(grace=grace)

    def restart(self, *, wait: bool = True) -> None:
        """Start again after `kill` or `terminate`."""
        self.process = Process(self._command, log=self.log)
        if wait:
            self.wait_ready()


class Api(Daemon):
    """The API service; `call` asks it."""

    def __init__(self, command: Sequence[str], log: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        super().__init__(command, log, self._answers)

    def _answers(self) -> bool:
        try:
            return self.call("GET", "/v1/segments").status_code != 503
        except requests.RequestException:
            return False

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        version: str = "1.0",
        headers: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """One request as an administrator.

        Args:
            path: begins with `/v1`.
            version: microversion.
        """
        with requests.Session() as session:
            session.trust_env = False
            return session.request(
                method,
                self.url + path,
                json=body,
                timeout=30,
                headers={
                    "OpenStack-API-Version": f"instance-ha {version}",
                    "X-User-Id": "u1",
                    "X-Project-Id": "p1",
                    "X-Roles": "admin",
                    **(headers or {}),
                },
            )


class Daemons:
    """Starts services on one database, one vhost and one simulated cloud.

    Attributes:
        settings: options of all; `api` and `engine` take further ones.
    """

    def __init__(self, folder: Path, *, database: str, broker: str, cloud: str) -> None:
        self._folder = folder
        self._broker = broker
        self._started: list[Daemon] = []
        self.settings: dict[str, dict[str, object]] = {
            "DEFAULT": {
                "transport_url": broker,
                "auth_strategy": "noauth2",
                "masakari_api_listen": "127.0.0.1",
                "masakari_api_workers": 1,
                "rpc_response_timeout": 20,
                "os_privileged_user_name": "masakari",
                "os_privileged_user_password": "secret",
                "os_privileged_user_tenant": "service",
                "os_privileged_user_auth_url": f"{cloud}/identity/v3",
                "wait_period_after_service_update": 1,
                "wait_period_after_evacuation": 4,
                "wait_period_after_power_off": 4,
                "wait_period_after_power_on": 4,
                "verify_interval": 1,
                "periodic_fuzzy_delay": 0,
                "process_unfinished_notifications_interval": 3600,
                "check_expired_notifications_interval": 3600,
            },
            "database": {"connection": database},
            "taskflow": {"connection": database},
            "keystone_authtoken": {
                "auth_type": "password",
                "auth_url": f"{cloud}/identity",
                "www_authenticate_uri": f"{cloud}/identity",
                "username": "masakari",
                "password": "secret",
                "project_name": "service",
                "user_domain_name": "default",
                "project_domain_name": "default",
            },
        }

    def api(self, settings: Settings | None = None) -> Api:
        """Start an API on a free port and wait until it answers."""
        name, port = self._name("api"), free_port()
        own = {"DEFAULT": {"masakari_api_listen_port": port}}
        conf = self.write_conf(name, own, settings or {})
        api = Api(command("masakari-ng-api", conf), self._folder / f"{name}.log", port)
        self._started.append(api)
        api.wait_ready()
        return api

    def engine(
        self, settings: Settings | None = None, *, arguments: Sequence[str] = (), wait: bool = True
    ) -> Daemon:
        """Start an engine with a host name of its own and wait until it consumes.

        Args:
            arguments: further words of its command line.
            wait: False returns at once.
        """
        name = self._name("engine")
        conf = self.write_conf(name, {"DEFAULT": {"host": name}}, settings or {})
        engine = Daemon(
            [*command("masakari-ng-engine", conf), *arguments],
            self._folder / f"{name}.log",
            lambda: all(self.consumers(queue) for queue in (f"{_TOPIC}.{name}", _TOPIC)),
        )
        self._started.append(engine)
        if wait:
            engine.wait_ready()
        return engine

    def consumers(self, queue: str = _TOPIC) -> int:
        """How many read from the queue; 0 if there is no such queue."""
        with kombu.Connection(self._broker.replace("rabbit:", "amqp:", 1)) as link:
            try:
                declared = link.default_channel.queue_declare(queue, passive=True)
            except link.channel_errors:
                return 0
            return int(declared.consumer_count)

    def write_conf(self, name: str, *further: Settings) -> Path:
        """Write `NAME.conf`; later settings win."""
        merged: dict[str, dict[str, Any]] = {}
        for layer in (self.settings, *further):
            for group, options in layer.items():
                merged.setdefault(group, {}).update(options)
        path = self._folder / f"{name}.conf"
        path.write_text(
            "\n".join(
                f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in options.items())
                for group, options in merged.items()
            )
        )
        return path

    def logs(self) -> list[tuple[str, str]]:
        """Title and end of each log, for the report of a failure."""
        return [(f"log of {daemon.log.stem}", daemon.process.tail(200)) for daemon in self._started]

    def close(self) -> None:
        """Kill what still runs."""
        for daemon in self._started:
            daemon.kill()

    def _name(self, kind: str) -> str:
        return f"{kind}-{1 + sum(daemon.log.stem.startswith(kind) for daemon in self._started)}"


def command(program: str, conf: Path) -> list[str]:
    """The program beside the running interpreter, so that nothing else of this name is taken."""
    return [str(Path(sys.executable).parent / program), "--config-file", str(conf)]
