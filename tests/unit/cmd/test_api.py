"""Protects that the program says why it cannot start, and the module for other servers."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from masakari_ng.cmd import api
from tests.servers import free_port

# Said by oslo.log where the suite runs on green threads.
pytestmark = pytest.mark.filterwarnings("ignore:Eventlet support is deprecated")


def start(tmp_path: Path, capsys: pytest.CaptureFixture[str], *lines: str) -> str:
    path = tmp_path / "masakari.conf"
    path.write_text("\n".join(["[DEFAULT]", f"masakari_api_listen_port = {free_port()}", *lines]))

    code = api.main(["--config-file", str(path)])

    assert code == 1
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "masakari_api_workers = -1",
            "masakari_api_workers value of -1 is invalid, must be greater than 0",
        ),
        ("auth_strategy = nobody", "Value for option auth_strategy"),
        ("transport_url = carrier://x", "carrier"),
        ("[osapi_v1]\nproject_id_regex = (", "[osapi_v1] project_id_regex: missing )"),
        ("[coordination]\nbackend_url = carrier://x", "[coordination] backend_url: No 'tooz"),
        ("use_ssl = true", "you must specify both a cert_file and key_file"),
        (
            "use_ssl = true\n[wsgi]\nssl_cert_file = /nowhere\nssl_key_file = /nowhere",
            "/nowhere cannot be read",
        ),
    ],
)
def test_options_that_cannot_be_used(tmp_path: Path, capsys, line: str, message: str):
    assert message in start(tmp_path, capsys, line)


def test_a_port_that_is_taken(tmp_path: Path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        said = start(
            tmp_path,
            capsys,
            "masakari_api_listen = 127.0.0.1",
            f"masakari_api_listen_port = {port}",
        )

    assert f"Could not bind to 127.0.0.1:{port}" in said
    assert "Address already in use" in said


def test_a_missing_configuration_file(capsys):
    assert api.main(["--config-file", "/nowhere.conf"]) == 1
    assert "Failed to find some config files: /nowhere.conf" in capsys.readouterr().err


def test_other_servers_import_the_application(tmp_path: Path):
    (tmp_path / "masakari.conf").write_text(
        "[DEFAULT]\nauth_strategy = noauth2\ntransport_url = memory://\n"
    )
    asks = (
        "import webob\n"
        "from masakari_ng.wsgi import application\n"
        "print(webob.Request.blank('/healthcheck').get_response(application).text)\n"
    )

    done = subprocess.run(
        # The server's own arguments must not be read.
        [sys.executable, "-W", "ignore", "-c", asks, "--config-file", "/nowhere.conf"],
        env={"OS_MASAKARI_CONFIG_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines()[-1:] == ["OK"], done.stderr
