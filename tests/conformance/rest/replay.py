"""Recorded REST exchanges: fills placeholders, compares answers.

In recorded texts `{{name}}` stands for a value seen earlier, `{{name:type}}` checks the type and
remembers the value under this name, `{{:type}}` only checks, `{{repeat:TEXT:N}}` is TEXT N times.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_TYPES = {
    "uuid": _UUID,
    "int": r"-?\d+",
    "reqid": f"req-{_UUID}",
    "any": ".*",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000000",
}
_PLACEHOLDER = re.compile(r"\{\{(repeat:[^{}]*?:\d+|\w*:\w+|\w+)\}\}")


@dataclass(frozen=True)
class Answer:
    """What the service said; names of headers in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def body(request: Mapping[str, Any], values: "Values") -> bytes | None:
    """The bytes that a recorded request sends; None for no body."""
    if "body" in request:
        return json.dumps(values.fill(request["body"])).encode()
    if "body_text" in request:
        return str(values.fill(request["body_text"])).encode()
    if "body_base64" in request:
        return base64.b64decode(request["body_base64"])
    return None


def differences(expected: Mapping[str, Any], got: Answer, values: "Values") -> Iterator[str]:
    """Every way in which an answer is not the recorded one."""
    yield from values.compare(expected["status"], got.status, "status")
    for name, value in expected.get("headers", {}).items():
        yield from values.compare(value, got.headers.get(name.lower()), f"header {name}")
    if "body" in expected:
        yield from values.compare(
            expected["body"], json.loads(got.body), "body", subset=expected.get("subset", False)
        )
    elif "body_text" in expected:
        yield from values.compare(expected["body_text"], got.body.decode(), "body")


class Values:
    """What the exchanges of one recording have shown so far."""

    def __init__(self, **known: str) -> None:
        self._known: dict[str, Any] = dict(known)

    def fill(self, template: Any) -> Any:
        """The template with its placeholders replaced by values."""
        if isinstance(template, dict):
            return {self.fill(key): self.fill(value) for key, value in template.items()}
        if isinstance(template, list):
            return [self.fill(value) for value in template]
        if not isinstance(template, str):
            return template
        whole = _PLACEHOLDER.fullmatch(template)
        if whole and whole[1] in self._known:
            return self._known[whole[1]]
        return _PLACEHOLDER.sub(lambda found: self._text(found[1]), template)

    def compare(
        self, expected: Any, got: Any, where: str, *, subset: bool = False
    ) -> Iterator[str]:
        """Say where `got` is not what `expected` describes, and remember what it names.

        Args:
            expected: recorded value with placeholders.
            got: value of the service.
            where: begins each sentence.
            subset: objects may have further keys.
        """
        if isinstance(expected, dict) and isinstance(got, dict):
            yield from self._compare_objects(expected, got, where, subset=subset)
        elif isinstance(expected, list) and isinstance(got, list):
            yield from self._compare_lists(expected, got, where, subset=subset)
        elif not self._is(expected, got):
            yield f"{where}: {expected!r}, got {got!r}"

    def _compare_objects(
        self, expected: dict[str, Any], got: dict[str, Any], where: str, *, subset: bool
    ) -> Iterator[str]:
        if set(expected) - set(got) or (not subset and set(expected) != set(got)):
            yield f"{where}: keys {sorted(expected)}, got {sorted(got)}"
            return
        for key, value in expected.items():
            yield from self.compare(value, got[key], f"{where}.{key}", subset=subset)

    def _compare_lists(
        self, expected: list[Any], got: list[Any], where: str, *, subset: bool
    ) -> Iterator[str]:
        if len(expected) != len(got):
            yield f"{where}: {len(expected)} items, got {len(got)}"
            return
        for number, (one, other) in enumerate(zip(expected, got, strict=True)):
            yield from self.compare(one, other, f"{where}[{number}]", subset=subset)

    def _is(self, expected: Any, got: Any) -> bool:
        if isinstance(expected, str) and _PLACEHOLDER.search(expected):
            return self._matches(expected, got)
        return type(expected) is type(got) and bool(expected == got)

    def _text(self, placeholder: str) -> str:
        if placeholder.startswith("repeat:"):
            _, text, count = placeholder.split(":")
            return text * int(count)
        return str(self._known[placeholder])

    def _matches(self, expected: str, got: Any) -> bool:
        whole = _PLACEHOLDER.fullmatch(expected)
        if whole and whole[1] == ":any":
            return True
        number = bool(whole and (whole[1].endswith(":int") or self._is_number(whole[1])))
        captured: dict[str, str] = {}
        result = None
        if type(got) is (int if number else str):
            result = re.fullmatch(self._pattern(expected, captured), str(got), re.DOTALL)
        if result is None:
            return False
        for name in captured:
            self._known[name] = int(result[name]) if number else result[name]
        return True

    def _is_number(self, name: str) -> bool:
        return isinstance(self._known.get(name), int)

    def _pattern(self, expected: str, captured: dict[str, str]) -> str:
        pattern, last = "", 0
        for found in _PLACEHOLDER.finditer(expected):
            pattern += re.escape(expected[last : found.start()]) + self._part(found[1], captured)
            last = found.end()
        return pattern + re.escape(expected[last:])

    def _part(self, placeholder: str, captured: dict[str, str]) -> str:
        name, _, kind = placeholder.partition(":")
        if placeholder.startswith("repeat:") or not kind:
            return re.escape(self._text(placeholder))
        if name in self._known:
            return re.escape(str(self._known[name]))
        if not name or name in captured:
            return _TYPES[kind]
        captured[name] = kind
        return f"(?P<{name}>{_TYPES[kind]})"
