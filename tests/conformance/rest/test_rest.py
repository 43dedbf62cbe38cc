"""Protects the promise that clients of upstream's API notice no difference.

The folder of a recording is the `auth_strategy` that it was made with.
"""

import contextlib
import functools
import http.client
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import webob

from masakari_ng import conf as options
from masakari_ng.cmd import compose
from masakari_ng.demo.cloud import SimulatedCloud
from tests.conformance.rest import replay
from tests.conformance.rest.replay import Answer, Values
from tests.daemons import Daemons, Settings
from tests.servers import MariaDB

_FOLDER = Path(__file__).parent / "recordings"
_RECORDINGS = sorted(_FOLDER.glob("*/*.json"))
# The stub of the recordings gave its answers no id, so novaclient did not name it.
_REQUEST_ID = re.compile(rb" \(Request-ID: req-[0-9a-f-]+\)")
_FAILING = re.compile(r'"name": "fail-(\d+)"')
_CLOUD = {
    "services": [{"host": f"compute-{number:02d}"} for number in [*range(1, 36), 95]],
    "tokens": {"admin-token": "admin", "reader-token": "reader"},
}

Send = Callable[[str, str, Mapping[str, str], bytes | None], Answer]


class Stage:
    """What the recordings were made on: some compute services, two tokens, an empty database."""

    def __init__(self, nova: SimulatedCloud, mariadb: MariaDB, url: str) -> None:
        nova.reset(_CLOUD)
        self.nova = nova
        self.url = url
        self._sql = functools.partial(mariadb.sql, mariadb.schema_of(url))

    def problems(self, recording: Path, send: Send, base: str) -> Iterator[str]:
        """Where the answers to a recording's requests differ.

        Args:
            recording: its file.
            send: asks the service.
            base: root URL in the links of the answers.
        """
        values = Values(base=base, cloud=self.nova.url)
        for exchange in json.loads(recording.read_text())["exchanges"]:
            if "sql" in exchange:
                self._sql("\n".join(values.fill(exchange["sql"])))
                continue
            answer = self._answer(exchange, send, values)
            for problem in replay.differences(exchange["response"], answer, values):
                yield f"{exchange['name']}: {problem}"

    def _answer(self, exchange: Mapping[str, Any], send: Send, values: Values) -> Answer:
        request = exchange["request"]
        if exchange.get("target") == "cloud":
            return self._calls(request["method"])
        self._arm(request)
        path, headers = values.fill(request["path"]), values.fill(request["headers"])
        return send(request["method"], path, headers, replay.body(request, values))

    def _calls(self, method: str) -> Answer:
        """What the stub of the recordings answers at `/calls`: GET lists, DELETE forgets."""
        calls = [
            {
                "method": frame["method"],
                "path": "?".join(filter(None, (frame["path"], frame["raw_query"]))),
                "headers": frame["headers"],
                "body": frame["body"],
            }
            for frame in self.nova.frames
        ]
        if method == "GET":
            return Answer(200, {}, json.dumps(calls).encode())
        self.nova.frames.clear()
        return Answer(204, {}, b"")

    def _arm(self, request: Mapping[str, Any]) -> None:
        """For a host called fail-CODE, Nova answers with that status."""
        found = _FAILING.search(json.dumps(request.get("body")))
        fault = {
            "match": {"path": "/os-services$"},
            "do": {
                "status": int(found[1]) if found else 0,
                "body": {"fault": {"message": "failure asked for"}},
            },
        }
        self.nova.arm_faults([fault] if found else [])


@pytest.fixture
def stage(cloud: SimulatedCloud, mariadb: MariaDB, synced_url: str) -> Stage:
    return Stage(cloud, mariadb, synced_url)


@pytest.mark.parametrize("recording", _RECORDINGS, ids=lambda path: path.stem)
def test_answers_as_recorded(recording: Path, stage: Stage, tmp_path: Path):
    daemons = Daemons(tmp_path, database=stage.url, broker="memory://", cloud=stage.nova.url)
    file = daemons.write_conf("masakari", _settings(recording, stage))
    app = compose.build_api(options.load([], program=compose.API, files=[str(file)]))
    with contextlib.closing(app):
        send = functools.partial(_ask_application, app)

        problems = list(stage.problems(recording, send, "http://localhost"))

    assert problems == []


@pytest.mark.parametrize(
    "name", ["noauth2/05-bodies", "noauth2/10-segments-crud", "keystone/60-keystone"]
)
def test_the_service_answers_as_recorded(name: str, stage: Stage, daemons: Daemons):
    recording = _FOLDER / f"{name}.json"
    url = daemons.api(_settings(recording, stage)).url
    send = functools.partial(_ask_server, urlsplit(url).netloc)

    problems = list(stage.problems(recording, send, url))

    assert problems == []


def _settings(recording: Path, stage: Stage) -> Settings:
    own = {
        "auth_strategy": recording.parent.name,
        "os_privileged_user_auth_url": f"{stage.nova.url}/identity",
    }
    return {"DEFAULT": own}


def _ask_application(
    app: Any, method: str, path: str, headers: Mapping[str, str], body: bytes | None
) -> Answer:
    request = webob.Request.blank(path, method=method, headers=headers)
    if body is not None:
        request.body = body
    response = request.get_response(app)
    return _answer(response.status_int, response.headerlist, response.body)


def _ask_server(
    server: str, method: str, path: str, headers: Mapping[str, str], body: bytes | None
) -> Answer:
    connection = http.client.HTTPConnection(server, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        return _answer(response.status, response.getheaders(), response.read())


def _answer(status: int, headers: Iterable[tuple[str, str]], body: bytes) -> Answer:
    return Answer(
        status, {name.lower(): value for name, value in headers}, _REQUEST_ID.sub(b"", body)
    )
