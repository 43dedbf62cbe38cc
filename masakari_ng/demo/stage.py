"""Starts and stops what a scene needs: the simulated cloud and the real services, in one process.

The services are those of production, built from a real `masakari.conf` in a temporary folder; only
the waits are shortened, the database is a file, and the bus is kombu's memory transport.
"""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from masakari_ng import conf as configuration
from masakari_ng.clock import SystemClock
from masakari_ng.cmd import compose, engine_parts
from masakari_ng.db import migrate
from masakari_ng.demo.cloud import SimulatedCloud
from masakari_ng.demo.listener import ClosableServer
from masakari_ng.demo.rest import Rest

log = logging.getLogger(__name__)

LOG_FILE = "services.log"

_CONFIGURATION = """\
[DEFAULT]
host = demo
transport_url = memory://
auth_strategy = noauth2
os_privileged_user_name = masakari
os_privileged_user_password = secret
os_privileged_user_tenant = service
os_privileged_user_auth_url = {cloud}/identity/v3
wait_period_after_service_update = 3
wait_period_after_evacuation = 6
wait_period_after_power_off = 6
wait_period_after_power_on = 6
periodic_fuzzy_delay = 0
graceful_shutdown_timeout = 1
{options}

[keystone_authtoken]
auth_type = password

[database]
connection = sqlite:///{folder}/masakari.sqlite
sqlite_synchronous = false

[taskflow]
connection = sqlite:///{folder}/masakari.sqlite
"""


_NO_BROKER = """\
[DEFAULT]
transport_url = rabbit://nobody:nothing@127.0.0.1:1/
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """What a scene plays on."""

    cloud: SimulatedCloud
    rest: Rest


class _ApiListener(ClosableServer, WSGIServer):
    """Serves the API on a free port of loopback."""


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        log.info(format, *arguments)


@contextlib.contextmanager
def opened(
    folder: Path, options: Mapping[str, object] | None = None, *, broker_away: bool = False
) -> Iterator[Stage]:
    """Everything runs inside the block and nothing after it.

    Args:
        folder: for configuration, database and log; it exists.
        options: of `[DEFAULT]`; without `periodic_enable` nothing is retried.
        broker_away: the API finds no broker.

    Raises:
        MasakariError: a part does not start.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_logged(folder / LOG_FILE))
        cloud = SimulatedCloud(realistic=True).start()
        stack.callback(cloud.stop)
        file = folder / "masakari.conf"
        given = {"periodic_enable": False} | dict(options or {})
        lines = "\n".join(f"{name} = {value}" for name, value in given.items())
        file.write_text(_CONFIGURATION.format(cloud=cloud.url, folder=folder, options=lines))
        away = folder / "no-broker.conf"
        away.write_text(_NO_BROKER if broker_away else "")
        conf = configuration.load([], program="masakari-ng", files=[str(file)])
        of_api = configuration.load([], program="masakari-ng", files=[str(file), str(away)])
        migrate.upgrade(conf.database.connection)
        app = stack.enter_context(contextlib.closing(compose.build_api(of_api)))
        api = _ApiListener(("127.0.0.1", 0), _Handler)
        stack.callback(api.end)
        api.set_app(app)
        api.begin("demo-api")
        engine = engine_parts.build_engine(conf, SystemClock())
        stack.callback(engine.stop)
        engine.start()
        yield Stage(cloud, Rest(f"http://127.0.0.1:{api.server_port}"))


@contextlib.contextmanager
def _logged(file: Path) -> Iterator[None]:
    """Everything that is logged, and every warning, goes to the file and nowhere else."""
    handler = logging.FileHandler(file)
    form = "%(asctime)s %(levelname)s %(name)s [%(threadName)s] %(message)s"
    handler.setFormatter(logging.Formatter(form))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.setLevel(level)
        root.removeHandler(handler)
        handler.close()
