"""Requests that nobody should send: how they are made up, and how they go over the wire."""

import contextlib
import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

Draw = Any

_MEGABYTES = 10 * 1024 * 1024
_TIMEOUT = 30.0

_ROUTES = [
    ("GET", "", None),
    ("GET", "/segments", None),
    ("GET", "/segments/<odd>", None),
    ("GET", "/segments/<segment>/hosts", None),
    ("GET", "/segments/<odd>/hosts", None),
    ("GET", "/segments/<odd>/hosts/<host>", None),
    ("GET", "/segments/<segment>/hosts/<odd>", None),
    ("GET", "/notifications", None),
    ("GET", "/notifications/<odd>", None),
    ("GET", "/notifications/<notification>", None),
    ("GET", "/notifications/<notification>/vmoves", None),
    ("GET", "/notifications/<odd>/vmoves", None),
    ("GET", "/notifications/<odd>/vmoves/<vmove>", None),
    ("GET", "/notifications/<notification>/vmoves/<odd>", None),
    ("GET", "/extensions", None),
    ("GET", "/extensions/<odd>", None),
    ("GET", "/versions/<odd>", None),
    ("POST", "/segments", "segment"),
    ("POST", "/segments/<segment>/hosts", "host"),
    ("POST", "/segments/<odd>/hosts", "host"),
    ("POST", "/notifications", "notification"),
    ("PUT", "/segments/<segment>", "segment"),
    ("PUT", "/segments/<odd>", "segment"),
    ("PUT", "/segments/<segment>/hosts/<host>", "host"),
    ("PUT", "/segments/<segment>/hosts/<odd>", "host"),
    ("DELETE", "/segments/<segment>", None),
    ("DELETE", "/segments/<odd>", None),
    ("DELETE", "/segments/<segment>/hosts/<host>", None),
    ("DELETE", "/segments/<segment>/hosts/<odd>", None),
]
"""Method, path below the version, and what the body describes."""
_BODILY = [route for route in _ROUTES if route[2]]
_METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "get", "BREW"]
_ROOTS = ["", "/v1", "/v1/0123456789abcdef", "//v1/", "/v2", "/%761", "/healthcheck", "/v1/<odd>"]
_ENDS = ["", "", "/", ".json", ".xml", "/new", "/edit", "/action", "%ff"]
_VALID: dict[str, dict[str, Any]] = {
    "segment": {"name": "n", "recovery_method": "auto", "service_type": "s", "description": "d"},
    "host": {"name": "compute-1", "type": "T", "control_attributes": "c", "reserved": True},
    "notification": {
        "type": "COMPUTE_HOST",
        "hostname": "compute-0",
        "generated_time": "2026-03-01T10:00:00",
        "payload": {"event": "STOPPED", "host_status": "NORMAL"},
    },
}
_PAYLOADS = [
    {"event": "STARTED"},
    {"event": "STOPPED", "process_name": "nova-compute"},
    {"event": "E", "vir_domain_event": "V", "instance_uuid": "b16d3f2a6f0c4c3b9f270c1de9a4b7f3"},
]
_PROPERTIES = sorted({name for fields in _VALID.values() for name in fields} | {"enabled"})
_PARAMETERS = [
    "limit",
    "page_size",
    "marker",
    "sort_key",
    "sort_dir",
    "type",
    "status",
    "enabled",
    "reserved",
    "on_maintenance",
    "service_type",
    "recovery_method",
    "source_host_uuid",
    "generated-since",
]
_HEADERS = [
    "Accept",
    "Access-Control-Request-Method",
    "Authorization",
    "Content-Encoding",
    "Content-Type",
    "Expect",
    "Forwarded",
    "Host",
    "If-Match",
    "OpenStack-API-Version",
    "Origin",
    "Range",
    "X-Auth-Token",
    "X-Forwarded-For",
    "X-Is-Admin-Project",
    "X-OpenStack-Request-ID",
    "X-Project-Id",
    "X-Roles",
    "X-Service-Catalog",
    "X-User-Id",
]
_HEADER_VALUES = [
    "application/json",
    "application/json;version=1",
    "application/vnd.openstack.masakari+json;q=0.5, */*",
    "text/html",
    "instance-ha 1.3",
    "instance-ha 1.2, instance-ha latest",
    f"instance-ha 1.{'1' * 5000}",
    "0123456789abcdef",
    "GET",
    '[{"type": "compute"}]',
    "[" * 9000,
    "[5]",
    "req-11111111-2222-4333-8444-555555555555",
]
_LONG = [
    "a" * 255,
    "a" * 256,
    "\u00e9" * 32767 + "a",
    "\u00e9" * 32768,
    "a" * 65535,
    "a" * 65536,
    "\u65e5" * 21845,
    "\u65e5" * 30000,
]
_TIMES = [
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999",
    "0001-01-01T00:00:00+14:00",
    "2026-03-01T10:00:00+99:99",
    "2026-02-30",
]
_PLAIN = [None, None, True, 0, "", "x", [], {}, *_LONG, *_TIMES]
_WORDS = ["", "0", "-1", "1", "asc", "desc", "id", "name", "failover_segment", "true", "no", "new"]

_TEXTS = st.text(st.characters(), max_size=20)
_NUMBERS = st.integers() | st.floats() | st.integers(10**400, 10**401)
_SCALARS = (
    st.none() | st.booleans() | _NUMBERS | _TEXTS | st.sampled_from([*_LONG, *_TIMES, *_WORDS])
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=5,
)


@dataclass(frozen=True)
class Odd:
    """One request; `<name>` in target and body stands for an id that exists.

    Attributes:
        chunked: the body has no length.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    chunked: bool

    def wire(self, ids: Mapping[str, str]) -> bytes:
        """The bytes to send."""
        target, body = self.target, self.body
        for name, id in ids.items():
            target = target.replace(f"<{name}>", id)
            body = body.replace(f"<{name}>".encode(), id.encode())
        headers = [("Host", "api.example.org"), *self.headers]
        if self.chunked:
            headers.append(("Transfer-Encoding", "chunked"))
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
        else:
            headers.append(("Content-Length", str(len(body))))
        lines = [f"{self.method} {target} HTTP/1.1", *(": ".join(pair) for pair in headers)]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body

    def document(self) -> Any:
        """The body as JSON; None where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


def ask(address: tuple[str, int], request: bytes) -> tuple[int, bytes]:
    """Send bytes, whatever they are; gives the status and the body of the answer."""
    with socket.create_connection(address, timeout=_TIMEOUT) as link:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            link.sendall(request)  # an answer may come before the end of a long body
        answer = http.client.HTTPResponse(link, method=request.partition(b" ")[0].decode("latin-1"))
        with contextlib.closing(answer):
            answer.begin()
            return answer.status, answer.read()


@st.composite
def odd_requests(draw: Draw) -> Odd:
    """Requests over all routes, from hardly to entirely wrong."""
    method, path, about = draw(st.sampled_from(_ROUTES + 2 * _BODILY))
    root = end = ""
    if draw(st.integers(0, 4)) == 0:
        method, end = draw(st.sampled_from(_METHODS)), draw(st.sampled_from(_ENDS))
        root = draw(st.sampled_from(_ROOTS))
    odd = quote(draw(_TEXTS), safe="", errors="surrogatepass")
    query = draw(_queries()) if method == "GET" else ""
    return Odd(
        method=method,
        target=f"{root or '/v1'}{path}{end}".replace("<odd>", odd) + (f"?{query}" if query else ""),
        headers=tuple(draw(st.lists(_headers(), max_size=2))),
        body=draw(_bodies(about)) if about else draw(st.sampled_from([b"", b"", b"x"])),
        chunked=draw(st.integers(0, 19)) == 0,
    )


@st.composite
def _queries(draw: Draw) -> str:
    names = st.sampled_from(_PARAMETERS)
    values = st.sampled_from([*_WORDS, *_TIMES]) | _TEXTS | st.integers().map(str)
    pairs = [
        f"{draw(names)}={quote(draw(values), errors='surrogatepass')}"
        for _ in range(draw(st.integers(0, 3)))
    ]
    pairs += draw(
        st.sampled_from([[]] * 10 + [["limit=%ff"], ["%"], ["marker=1", *["sort_key=id"] * 600]])
    )
    return str(draw(st.sampled_from(["&", ";"]))).join(pairs)


@st.composite
def _headers(draw: Draw) -> tuple[str, str]:
    latin = st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f")
    visible = st.text(latin, max_size=20)
    return draw(st.sampled_from(_HEADERS)), draw(st.sampled_from(_HEADER_VALUES) | visible)


@st.composite
def _documents(draw: Draw, key: str) -> Any:
    """A valid document with some properties spoilt."""
    fields = dict(_VALID[key])
    if key == "segment" and draw(st.booleans()):
        fields["name"] = f"n{draw(st.integers())}"
    if key == "notification":
        fields["type"] = draw(st.sampled_from(["COMPUTE_HOST", "PROCESS", "VM"]))
        fields["payload"] = dict(draw(st.sampled_from(_PAYLOADS)))
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2, 3]))):
        spoilt = fields["payload"] if "payload" in fields and draw(st.booleans()) else fields
        name = draw(st.sampled_from([*spoilt, *spoilt, *_PROPERTIES]) | _TEXTS)
        if draw(st.integers(0, 4)) == 0:
            spoilt.pop(name, None)
        else:
            spoilt[name] = draw(st.sampled_from(_PLAIN) | _TEXTS | _VALUES)
        if not isinstance(fields.get("payload", {}), dict):
            break
    return draw(st.sampled_from([{key: fields}] * 8 + [fields, [fields], {key: [fields]}]))


@st.composite
def _bodies(draw: Draw, about: str) -> bytes:
    kind = draw(st.integers(0, 15))
    document = draw(_documents(about))
    text = json.dumps(document, ensure_ascii=kind % 2 == 0)
    if kind <= 9:
        return text.encode(errors="surrogatepass")
    if kind <= 11:
        encoding = draw(st.sampled_from(["utf-16", "utf-8-sig", "utf-32", "utf-7"]))
        return text.encode(encoding, errors="replace")
    if kind == 12:
        return draw(st.binary(max_size=50))
    if kind == 13:
        depth = draw(st.integers(1, 1200) | st.just(40_000))
        return b'{"segment": {"name": %s%s}}' % (b"[" * depth, b"]" * depth)
    if kind == 14:
        members = text[1:-1]
        return f"{{{members}, {members}}}".encode(errors="surrogatepass")
    whole = text.encode(errors="surrogatepass")
    return draw(st.sampled_from([whole[:-1], whole + b"x", b" ", b"NaN", b"{" * _MEGABYTES]))
