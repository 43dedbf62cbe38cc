"""Protects the reading of `transport_url`, and the password in it."""

import pytest

from masakari_ng import errors
from masakari_ng.messaging.transport_url import Address, parse

_GUEST = ("guest", "guest")


@pytest.mark.parametrize(
    ("text", "addresses", "virtual_host"),
    [
        ("rabbit://", [("localhost", 5672, *_GUEST)], "/"),
        ("rabbit:///", [("localhost", 5672, *_GUEST)], "/"),
        ("rabbit:///vhost", [("localhost", 5672, *_GUEST)], "vhost"),
        ("kombu://host", [("host", 5672, *_GUEST)], "/"),
        ("rabbit://u:p@host:5673/", [("host", 5673, "u", "p")], "/"),
        ("rabbit://u:p@host:5672//", [("host", 5672, "u", "p")], "/"),
        ("rabbit://u:p@host//name", [("host", 5672, "u", "p")], "/name"),
        ("rabbit://u:p@host/%2F", [("host", 5672, "u", "p")], "/"),
        ("rabbit://u:p@host/a%2Fb%20c", [("host", 5672, "u", "p")], "a/b c"),
        ("rabbit://u:p@host/a/b", [("host", 5672, "u", "p")], "a/b"),
        ("rabbit://u%40d:p%3A%2F%40%2C%25@host/", [("host", 5672, "u@d", "p:/@,%")], "/"),
        ("rabbit://u:p:q@host/", [("host", 5672, "u", "p:q")], "/"),
        ("rabbit://u:p@q@host/", [("host", 5672, "u", "p@q")], "/"),
        ("rabbit://u:p#q@host/", [("host", 5672, "u", "p#q")], "/"),
        ("rabbit://u@host/", [("host", 5672, "u", "")], "/"),
        ("rabbit://u:p@/", [("localhost", 5672, "u", "p")], "/"),
        ("rabbit://u:p@host:/", [("host", 5672, "u", "p")], "/"),
        ("rabbit://u:p@[::1]:5673/v", [("::1", 5673, "u", "p")], "v"),
        ("rabbit://[fe80::1]", [("fe80::1", 5672, *_GUEST)], "/"),
        (
            "rabbit://u:p@one:1,v:q@two,three:3/v",
            [("one", 1, "u", "p"), ("two", 5672, "v", "q"), ("three", 3, *_GUEST)],
            "v",
        ),
        ("rabbit://one,,two,/", [("one", 5672, *_GUEST), ("two", 5672, *_GUEST)], "/"),
        ("rabbit://u:p@host/v@w", [("host", 5672, "u", "p")], "v@w"),
        (" rabbit://host/v\n", [("host", 5672, *_GUEST)], "v"),
    ],
    ids=str,
)
def test_reads(text: str, addresses: list[tuple[str, int, str, str]], virtual_host: str):
    url = parse(text)

    assert url.addresses == tuple(Address(*address) for address in addresses)
    assert url.virtual_host == virtual_host
    assert url.transport == "pyamqp"


def test_reads_options():
    url = parse("rabbit://host/v?ssl=1&ssl_ca_file=%2Fetc%2Fca.pem&rabbit_interval_max=")

    assert url.virtual_host == "v"
    assert url.options == {"ssl": "1", "ssl_ca_file": "/etc/ca.pem", "rabbit_interval_max": ""}


def test_memory_is_passed_on():
    assert parse("memory://").transport == "memory"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rabbit",
        "rabbit:host",
        "amqp://u:secret@host/",
        "http://u:secret@host/",
        "os.system://u:secret@host/",
        "rabbit://u:secret@host:port/",
        "rabbit://u:secret@host:0/",
        "rabbit://u:secret@host:65536/",
        "rabbit://u:secret@[::1/",
        "rabbit://u:secret@a b/",
        "rabbit://u:secret@host;other/",
        "rabbit://u:secret@h\u2100st/",
        "rabbit://u:secret/x@host/",
        "rabbit://u:12/secret@host/",
        "rabbit://u:12?secret@host/",
        "rabbit://u:12?ssl=secret@host/",
        "rabbit://u:p@one,v:12?secret@two/",
        "rabbit://u:p@one,v:12/secret@two/",
    ],
    ids=repr,
)
def test_refuses_without_telling_the_password(text: str):
    with pytest.raises(errors.ConfigurationError) as refusal:
        parse(text)

    assert "secret" not in str(refusal.value)
    assert refusal.value.__context__ is None


def test_the_password_is_not_shown():
    assert "secret" not in repr(parse("rabbit://u:secret@host/"))
