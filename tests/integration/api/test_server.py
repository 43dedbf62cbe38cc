"""Protects that the service loses no request and says how it does, whatever happens to its workers.

Stops, reloads, dead workers, TLS, limits of connections, access log, readiness.
"""

import contextlib
import itertools
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from masakari_ng.demo.cloud import SimulatedCloud
from tests.daemons import Api, Daemons, command
from tests.http_load import Connection, load, request
from tests.servers import Process, ServerFailed, eventually, free_port
from tests.service_manager import Manager

TWO_WORKERS = {"DEFAULT": {"masakari_api_workers": 2}}
REPLACED = 40.0
SLOW = 3.0


def port_of(api: Api) -> int:
    return urlsplit(api.url).port or 0


def workers(api: Api) -> set[int]:
    return {child.pid for child in psutil.Process(api.process.pid).children()}


def segment(name: str) -> dict[str, object]:
    return {"segment": {"name": name, "recovery_method": "auto", "service_type": "s"}}


def slow_request(daemons: Daemons, cloud: SimulatedCloud, api: Api) -> tuple[str, object]:
    """Path and body of a request that takes some seconds, because Nova does."""
    cloud.reset({"services": [{"host": "compute-1"}]})
    cloud.arm_faults([{"match": {"path": "/os-services$"}, "do": {"delay": SLOW}}])
    uuid = api.call("POST", "/v1/segments", segment("rack")).json()["segment"]["uuid"]
    host = {"name": "compute-1", "type": "T", "control_attributes": "c"}
    return f"/v1/segments/{uuid}/hosts", {"host": host}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_under_way_is_finished(
    daemons: Daemons, cloud: SimulatedCloud, number: signal.Signals
):
    api = daemons.api()
    path, body = slow_request(daemons, cloud, api)
    old = workers(api)

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(api.call, "POST", path, body)
        eventually(lambda: any("os-services" in frame["path"] for frame in cloud.frames))
        api.process.signal(number)

    assert answer.result().status_code == 201
    if number == signal.SIGTERM:
        assert api.terminate() == 0
    else:
        eventually(lambda: not workers(api) & old, timeout=REPLACED)


def test_load_over_a_killed_worker_and_a_reload(daemons: Daemons):
    api = daemons.api(TWO_WORKERS)
    numbers = itertools.count()

    with load(
        port_of(api),
        8,
        lambda: request("POST", "/v1/segments", segment(f"s{next(numbers)}")),
        fresh=True,
    ) as seen:
        eventually(lambda: len(seen.seconds) > 50)
        old = workers(api)
        victim = min(old)
        psutil.Process(victim).kill()
        eventually(lambda: victim not in workers(api) and len(workers(api)) == 2)
        # What the victim was answering is lost with it; each client has one request under way.
        lost = seen.failures.copy()
        old = workers(api)
        api.process.signal(signal.SIGHUP)
        eventually(lambda: not workers(api) & old, timeout=REPLACED)
        before = len(seen.seconds)
        eventually(lambda: len(seen.seconds) > before + 50)

    assert set(seen.statuses) == {201}
    assert lost.total() <= 8
    assert seen.failures == lost, "the reload lost requests"
    stored = api.call("GET", "/v1/segments?limit=1000").json()["segments"]
    assert len(stored) >= min(seen.statuses[201], 1000)


def test_a_reload_takes_new_options_over_and_refuses_bad_ones(daemons: Daemons, tmp_path: Path):
    api = daemons.api()
    conf = tmp_path / "api-1.conf"
    old, text = workers(api), conf.read_text()

    conf.write_text(f"{text}\n[wsgi]\nwsgi_log_format = %(nothing)s\n")
    api.process.signal(signal.SIGHUP)
    eventually(lambda: "the new options cannot be used" in api.log.read_text())
    assert workers(api) == old
    assert api.call("GET", "/v1/segments").status_code == 200

    conf.write_text(f"{text}\n[DEFAULT]\nosapi_masakari_link_prefix = https://ha.example.org\n")
    api.process.signal(signal.SIGHUP)
    eventually(lambda: not workers(api) & old, timeout=REPLACED)
    assert "https://ha.example.org/v1/" in api.call("GET", "/").text


def test_each_request_has_a_line_in_the_wanted_form(daemons: Daemons):
    form = "%(client_ip)s|%(request_line)s|%(status_code)s|%(body_length)s|%(wall_seconds).3f"
    api = daemons.api({"wsgi": {"wsgi_log_format": form}})

    answer = api.call("GET", "/v1/segments/x%0Ay?a=%0A", headers={"X-Forwarded-For": "192.0.2.1"})

    asked = "GET /v1/segments/x%0Ay?a=%0A HTTP/1.1"
    line = f"192.0.2.1,127.0.0.1|{asked}|404|{len(answer.content)}|"
    eventually(lambda: line in api.log.read_text())


def test_an_idle_connection_is_closed_when_its_time_is_over(daemons: Daemons):
    api = daemons.api({"wsgi": {"client_socket_timeout": 2}})

    with socket.create_connection(("127.0.0.1", port_of(api)), timeout=20) as link:
        link.sendall(request("GET", "/healthcheck"))
        assert link.recv(10_000).endswith(b"OK")
        begin = time.monotonic()
        assert link.recv(1) == b""

    assert 1 < time.monotonic() - begin < 15


def test_a_large_token_is_taken_and_connections_stay_open(daemons: Daemons):
    api = daemons.api({"wsgi": {"max_header_line": 600_000}})

    with contextlib.closing(Connection(port_of(api))) as connection:
        asked = request("GET", "/v1/segments", X_Auth_Token="t" * 500_000)
        statuses = [connection.ask(asked)[0] for _ in range(2)]

    assert statuses == [200, 200]


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    path = tmp_path / "notify"
    monkeypatch.setenv("NOTIFY_SOCKET", str(path))
    with contextlib.closing(Manager(path)) as listening:
        yield listening


def test_the_service_manager_is_told(daemons: Daemons, manager: Manager):
    api = daemons.api()

    assert manager.next() == "READY=1"
    assert '"GET /healthcheck HTTP/1.1" status: 200' in api.log.read_text()
    api.process.signal(signal.SIGHUP)
    assert manager.next().startswith("RELOADING=1\nMONOTONIC_USEC=")
    assert manager.next() == "READY=1"
    assert api.terminate() == 0
    assert manager.next() == "STOPPING=1"


def certificate(folder: Path, name: str, authority: str | None = None) -> tuple[Path, Path]:
    """A certificate and its key, signed by an earlier one or by itself."""
    files = folder / f"{name}.crt", folder / f"{name}.key"
    signed = ["-CA", f"{authority}.crt", "-CAkey", f"{authority}.key"] if authority else []
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *signed),
            *("-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost"),
            *("-addext", f"basicConstraints=critical,CA:{'FALSE' if authority else 'TRUE'}"),
            *("-out", str(files[0]), "-keyout", str(files[1])),
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return files


@pytest.mark.parametrize("clients_have_certificates", [False, True])
def test_tls(
    daemons: Daemons, manager: Manager, tmp_path: Path, *, clients_have_certificates: bool
):
    cert, key = certificate(tmp_path, "service")
    authority, _ = certificate(tmp_path, "authority")
    settings = {"ssl_cert_file": cert, "ssl_key_file": key}
    if clients_have_certificates:
        settings["ssl_ca_file"] = authority
    port = free_port()
    own = {"use_ssl": True, "masakari_api_listen_port": port}
    conf = daemons.write_conf("tls", {"DEFAULT": own, "wsgi": settings})
    process = Process(command("masakari-ng-api", conf), log=tmp_path / "tls.log")
    trusting = ssl.create_default_context(cafile=str(cert))

    try:
        assert manager.next() == "READY=1", process.tail()
        if clients_have_certificates:
            with pytest.raises(OSError, match=r"certificate|reset"):
                ask_tls(port, trusting)
            trusting.load_cert_chain(*certificate(tmp_path, "client", "authority"))
        assert ask_tls(port, trusting) == b'{"segments": []}'
    finally:
        assert process.terminate() == 0


def ask_tls(port: int, context: ssl.SSLContext) -> bytes:
    with contextlib.closing(HTTPSConnection("localhost", port, context=context)) as connection:
        connection.request("GET", "/v1/segments")
        return connection.getresponse().read()


def test_a_certificate_that_is_none(daemons: Daemons, tmp_path: Path):
    nothing = tmp_path / "nothing"
    nothing.touch()
    tls = {"ssl_cert_file": nothing, "ssl_key_file": nothing}

    with pytest.raises(ServerFailed, match=r"exit code 1\n.*nothing"):
        daemons.api({"DEFAULT": {"use_ssl": True}, "wsgi": tls})
