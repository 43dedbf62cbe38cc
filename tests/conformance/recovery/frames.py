"""Turns what was recorded into lines that are equal from run to run."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_MASKS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "req-*"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:*"),
        (r"port=\d+", "port=*"),
        (r"0x[0-9a-f]{6,}", "0x*"),
        (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?", "<time>"),
        (r"after \d+\.\d+ seconds", "after * seconds"),
    )
]
_NOVA = "/compute/v2.1"
_HEADERS = ("User-Agent", "X-OpenStack-Nova-API-Version", "OpenStack-API-Version", "Accept")
_MANY = 4


def masked(text: str, names: Mapping[str, str]) -> str:
    """Names instead of uuids, stars instead of request ids, ports and times."""
    for value, name in names.items():
        text = text.replace(value, name)
    for pattern, replacement in _MASKS:
        text = pattern.sub(replacement, text)
    return text


def masked_json(value: Any, names: Mapping[str, str]) -> Any:
    """The same for all texts in a JSON value."""
    return json.loads(masked(json.dumps(value), names))


class Frames:
    """The requests that Nova saw.

    Args:
        frames: as the simulated cloud recorded them.
        servers: names of the instances by id.
        names: what else to write for an id.
    """

    def __init__(
        self,
        frames: Sequence[dict[str, Any]],
        servers: Mapping[str, str],
        names: Mapping[str, str],
    ) -> None:
        self._nova = [frame for frame in frames if frame["path"].startswith(f"{_NOVA}/")]
        self._servers = servers
        self._names = names

    def result(self, *, ordered: bool, racing: bool, parallel: bool) -> dict[str, Any]:
        """Requests without an instance, and those of each instance, in order.

        Args:
            ordered: the whole sequence too.
            racing: several threads work on one instance, so only its set of actions is comparable.
            parallel: several notifications at once, so requests without an instance have no order.
        """
        host: list[str] = []
        instances: dict[str, list[str]] = {}
        for frame in self._nova:
            name = self._instance(frame)
            if name:
                instances.setdefault(name, []).append(self._line(frame))
                if host[-1:] != ["... instances ..."]:
                    host.append("... instances ...")
            else:
                host.append(self._line(frame))
        if racing:
            for name, lines in instances.items():
                instances[name] = sorted(line for line in lines if not line.startswith("GET"))
        if parallel:
            host = sorted(line for line in host if not line.startswith("..."))
        result: dict[str, Any] = {
            "host": _collapsed(host),
            "instances": {name: _collapsed(lines) for name, lines in instances.items()},
        }
        if ordered:
            result["sequence"] = _collapsed([self._line(frame) for frame in self._nova])
        return result

    def headers(self, posts: Mapping[str | None, str]) -> dict[str, list[str]]:
        """Which values the interesting headers had.

        Args:
            posts: name of the notification by request id of its POST.
        """
        seen = {
            name: sorted({_without_version(str(frame["headers"][name])) for frame in self._nova})
            for name in _HEADERS
        }
        ids = {frame["headers"]["X-OpenStack-Request-ID"] for frame in self._nova}
        seen["X-OpenStack-Request-ID"] = sorted(
            f"request id of the POST of {posts[id]}"
            if id in posts
            else "another request id"
            if id
            else "none"
            for id in ids
        )
        return seen

    def _line(self, frame: Mapping[str, Any]) -> str:
        text = f"{frame['method']} {frame['path'].removeprefix(_NOVA)}"
        if frame["query"]:
            text += "?" + "&".join(f"{key}={value}" for key, value in sorted(frame["query"]))
        if frame["body"] is not None:
            text += f" {json.dumps(frame['body'], sort_keys=True)}"
        return f"{masked(text, self._names)} -> {frame['status']}"

    def _instance(self, frame: Mapping[str, Any]) -> str | None:
        found = re.search("/servers/([^/]+)", frame["path"])
        return self._servers.get(found[1]) if found else None


def _collapsed(lines: Sequence[str]) -> list[str]:
    """Runs of four and more equal lines depend on timing: one of them, marked."""
    result: list[str] = []
    index = 0
    while index < len(lines):
        end = index
        while end < len(lines) and lines[end] == lines[index]:
            end += 1
        run = list(lines[index:end])
        result += run if len(run) < _MANY else [f"{run[0]}  (4 or more times)"]
        index = end
    return result


def _without_version(agent: str) -> str:
    return re.sub(r"/[0-9][^ ]*", "/*", agent)
