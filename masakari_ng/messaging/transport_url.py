"""The only reader of `transport_url`. Spec: rpc §2.1."""

import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field

from masakari_ng import errors

DEFAULT_PORT = 5672

_SHAPE = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<hosts>[^/?]*)(?:/(?P<path>[^?]*))?(?:\?(?P<query>.*))?",
    re.DOTALL,
)
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[\w.-]*)(?::(?P<port>[0-9]{1,5})?)?", re.ASCII)
_SCHEMES = {"rabbit": "pyamqp", "kombu": "pyamqp", "memory": "memory"}
_GUEST = "guest"


@dataclass(frozen=True, slots=True)
class Address:
    """One broker and who we are to it."""

    host: str
    port: int
    user: str = _GUEST
    password: str = field(default=_GUEST, repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class TransportURL:
    """What the option says.

    Attributes:
        transport: kombu's name of it: `pyamqp`, or `memory` within one process.
        addresses: at least one.
        options: values for `[oslo_messaging_rabbit]`, as text.
    """

    transport: str
    addresses: tuple[Address, ...]
    virtual_host: str
    options: Mapping[str, str]


def parse(text: str) -> TransportURL:
    """Take a URL apart by hand: the standard library repeats the password in its errors.

    Raises:
        ConfigurationError: not a URL, or of a transport that there is not; without the URL.
    """
    shape = _SHAPE.fullmatch(text.strip())
    if shape is None:
        raise errors.ConfigurationError("transport_url is not of the form rabbit://host/path")
    if shape["scheme"] not in _SCHEMES:
        raise errors.ConfigurationError(
            f"transport_url: there is no transport {shape['scheme']}, only {', '.join(_SCHEMES)}"
        )
    path, query = shape["path"] or "", shape["query"] or ""
    if "@" in query or ("@" in path and "@" not in shape["hosts"].rpartition(",")[2]):
        raise errors.ConfigurationError("transport_url: in a password, / is %2F and ? is %3F")
    hosts = [_address(host) for host in shape["hosts"].split(",") if host]
    return TransportURL(
        transport=_SCHEMES[shape["scheme"]],
        addresses=tuple(hosts) or (Address("localhost", DEFAULT_PORT),),
        virtual_host=urllib.parse.unquote(path) or "/",
        options=dict(urllib.parse.parse_qsl(query, keep_blank_values=True)),
    )


def _address(text: str) -> Address:
    credentials, _, place = text.rpartition("@")
    host = _HOST.fullmatch(place)
    port = int(host["port"] or DEFAULT_PORT) if host else 0
    if host is None or not 0 < port < 65536:  # noqa: PLR2004 - TCP
        raise errors.ConfigurationError("transport_url: a broker is not given as host[:port]")
    user, _, password = (urllib.parse.unquote(part) for part in credentials.partition(":"))
    return Address(
        host=host["name"].strip("[]") or "localhost",
        port=port,
        user=user or _GUEST,
        password=password or (_GUEST if not user else ""),
    )
