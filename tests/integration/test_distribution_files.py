"""Protects that the configuration files that deployers write for Masakari serve unchanged.

The files under distributions/ are in the style of each deployer; only addresses and credentials are
those of the private servers. The folder of a service stands for /etc/masakari: it is named on the
command line, by OS_MASAKARI_CONFIG_DIR, or found in a home folder.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Daemon
from tests.servers import free_port

FILES = Path(__file__).parent / "distributions"
GENERATOR = Path(__file__).parents[2] / "etc" / "masakari" / "masakari-config-generator.conf"
PROGRAMS = Path(sys.executable).parent
BEHIND_WSGI = "granian --interface wsgi --port @PORT@ masakari_ng.wsgi:application"
DISTRIBUTIONS = sorted(path.name for path in FILES.iterdir())
READER_MAY = {"kolla-ansible"}  # by its policy.yaml


@dataclass(frozen=True)
class Service:
    """A command line, and the files and lines in which the service then logs."""

    command: str
    process: str = ""
    log_option: str = ""
    log_file: str = ""
    logs: str = ""


API = {
    "kolla-ansible": Service(
        BEHIND_WSGI,
        process="masakari-api",
        log_option="log_file = @FOLDER@/masakari-api.log",
        log_file="masakari-api.log",
        logs="without effect: [oslo_messaging_notifications] topics",
    ),
    "openstack-helm": Service("masakari-ng-api --config-file @FOLDER@/masakari.conf"),
    "debian": Service("masakari-ng-api"),
    "devstack": Service(BEHIND_WSGI),
}
ENGINE = {
    "kolla-ansible": Service(
        "masakari-ng-engine --config-file @FOLDER@/masakari.conf",
        process="masakari-engine",
        log_option="log_dir = @FOLDER@",
        log_file="masakari-ng-engine.log",
        logs="Starting ha_engine",
    ),
    "openstack-helm": Service("masakari-ng-engine --config-file @FOLDER@/masakari.conf"),
    "debian": Service(
        "masakari-ng-engine --config-file=@FOLDER@/masakari.conf"
        " --log-file=@FOLDER@/masakari-engine.log",
        log_file="masakari-engine.log",
        logs="Starting ha_engine",
    ),
    "devstack": Service(
        "masakari-ng-engine --config-file=@FOLDER@/masakari.conf --config-dir=@FOLDER@/engine.d"
        " --debug",
        logs=" = devstack-1 ",
    ),
}


class Host:
    """Where a deployer has put its files for one service."""

    def __init__(self, home: Path, service: Service, values: Mapping[str, str]) -> None:
        self.folder = home / ".masakari"
        self.log = home / "output.log"
        self._service = service
        self._environment = [f"HOME={home}", f"OS_MASAKARI_CONFIG_DIR={self.folder}"]
        self._values = {
            "PROCESS": service.process,
            "LOG": service.log_option,
            "FOLDER": str(self.folder),
            **values,
        }

    def install(self, distribution: str) -> None:
        source = FILES / distribution
        for file in (path for path in source.rglob("*") if path.is_file()):
            target = self.folder / file.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self._filled(file.read_text()))

    def command(self, line: str) -> list[str]:
        program, *arguments = self._filled(line).split()
        return ["/usr/bin/env", *self._environment, str(PROGRAMS / program), *arguments]

    def start(self, ready: Callable[[], bool]) -> Daemon:
        return Daemon(self.command(self._service.command), self.log, ready)

    def has_logged(self) -> bool:
        file = self.folder / self._service.log_file if self._service.log_file else self.log
        return self._service.logs in file.read_text()

    def _filled(self, text: str) -> str:
        for name, value in self._values.items():
            text = text.replace(f"@{name}@", value)
        return text


@pytest.fixture
def started() -> Iterator[list[Daemon]]:
    running: list[Daemon] = []
    yield running
    for daemon in running:
        daemon.kill()


@pytest.fixture
def values(cloud: SimulatedCloud, synced_url: str, rabbit_url: str) -> dict[str, str]:
    """What stands in the files for addresses of the private servers."""
    cloud.reset({"tokens": {"admin": "admin", "reader": "reader"}})
    return {
        "DATABASE": synced_url,
        "BROKER": rabbit_url,
        "CLOUD": cloud.url,
        "PORT": str(free_port()),
    }


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_both_services_start_and_serve(distribution, values, daemons, started, tmp_path):
    url = f"http://127.0.0.1:{values['PORT']}"
    api = Host(tmp_path / "api", API[distribution], values)
    engine = Host(tmp_path / "engine", ENGINE[distribution], values)
    for host in (api, engine):
        host.install(distribution)

    started.append(api.start(lambda: answers(url)))
    started.append(engine.start(lambda: daemons.consumers() > 0))
    for daemon in started:
        daemon.wait_ready()

    assert requests.get(f"{url}/healthcheck", timeout=20).text == "OK"
    assert segments(url, "admin") == 200
    assert segments(url, "reader") == (200 if distribution in READER_MAY else 403)
    assert api.has_logged()
    assert engine.has_logged()


def test_the_check_of_kolla_ansible_finds_only_what_upstream_does_not_know_either(tmp_path):
    values = dict.fromkeys(("PORT", "DATABASE", "BROKER", "CLOUD"), "1")
    host = Host(tmp_path, ENGINE["kolla-ansible"], values)
    host.install("kolla-ansible")
    files = f"--config-file {GENERATOR} --input-file @FOLDER@/masakari.conf"

    done = subprocess.run(
        host.command(f"oslo-config-validator {files}"),
        check=False,
        capture_output=True,
        text=True,
    )

    assert re.findall(r"(\w+/\w+) is not part of the sample config", done.stderr) == [
        "DEFAULT/enabled_apis",
        "oslo_messaging_rabbit/heartbeat_in_pthread",
        "oslo_concurrency/lock_path",
    ]


def segments(url: str, token: str) -> int:
    return requests.get(
        f"{url}/v1/segments", headers={"X-Auth-Token": token}, timeout=20
    ).status_code


def answers(url: str) -> bool:
    """Whether a load balancer takes the service for good."""
    try:
        return requests.get(url, timeout=20).status_code == 200
    except requests.ConnectionError:
        return False
