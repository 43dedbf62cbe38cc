"""Protects what TLS is for: the broker is who it says, or nothing is sent to it."""

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from masakari_ng import errors
from tests.integration.messaging.bus import Recorder, Wire
from tests.integration.messaging.conftest import Cast, CastWithin, MakeServer
from tests.servers import RabbitMQ, eventually

_GROUP = "oslo_messaging_rabbit"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for `localhost` that is its own authority, with its key in the same file."""
    path = tmp_path_factory.mktemp("tls") / "broker.pem"
    made = f"-keyout {path} -out {path.with_suffix('.crt')} -days 2 -newkey rsa:2048 -nodes"
    name = "-subj /CN=localhost -addext subjectAltName=DNS:localhost"
    command = f"openssl req -x509 {made} {name}"
    subprocess.run(command.split(), check=True, capture_output=True)
    path.write_text(path.read_text() + path.with_suffix(".crt").read_text())
    return path


@pytest.fixture(autouse=True)
def tls(rabbitmq: RabbitMQ, conf: cfg.ConfigOpts, certificate: Path) -> Iterator[None]:
    """A broker that speaks TLS as `localhost`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    wire = Wire(rabbitmq.port, tls=context)
    virtual_host = conf.transport_url.rsplit("/", 1)[1]
    conf.set_override("transport_url", f"rabbit://localhost:{wire.port}/{virtual_host}")
    conf.set_override("ssl", True, _GROUP)
    conf.set_override("ssl_ca_file", str(certificate), _GROUP)
    yield
    wire.close()


def test_requests_go_through_tls(make_server: MakeServer, cast: Cast):
    handler = Recorder()
    make_server(handler)

    cast()

    eventually(lambda: len(handler.calls) == 1)


def test_an_unknown_authority_is_refused(conf: cfg.ConfigOpts, cast_within: CastWithin):
    conf.set_override("ssl_ca_file", "", _GROUP)

    with pytest.raises(errors.BrokerUnavailable, match="certificate verify failed"):
        cast_within(10)()


def test_another_name_is_refused_unless_names_do_not_matter(
    conf: cfg.ConfigOpts, cast_within: CastWithin
):
    conf.set_override("transport_url", conf.transport_url.replace("localhost", "127.0.0.1"))

    with pytest.raises(errors.BrokerUnavailable, match="certificate is not valid for"):
        cast_within(10)()
    conf.set_override("ssl_enforce_hostname_verification", False, _GROUP)
    cast_within(10)()
