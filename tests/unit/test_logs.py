"""Protects that log lines say what they are about, in the fields where operators look for it."""

import contextvars
import io
import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from oslo_log import formatters

from masakari_ng import logs


@pytest.fixture
def lines(conf) -> Iterator[Callable[[], list[str]]]:
    """Writes through `log`; gives what oslo.log's formatter of text made of it."""
    yield from written(formatters.ContextFormatter(config=conf))


@pytest.fixture
def records() -> Iterator[Callable[[], list[str]]]:
    """The same in JSON."""
    yield from written(formatters.JSONFormatter())


log = logging.getLogger("masakari_ng.test")


def written(formatter: logging.Formatter) -> Iterator[Callable[[], list[str]]]:
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    handler.setFormatter(formatter)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    logs.begin()
    yield lambda: output.getvalue().splitlines()
    log.removeHandler(handler)


def test_facts_stand_where_upstream_has_request_and_instance(lines):
    with logs.about(request_id="req-1", user="u1", notification_uuid="n1"):
        logs.note(host="compute-1", instance_uuid=None)
        with logs.about(instance_uuid="i1"):
            log.info("inside")
        log.info("after")
    log.info("outside")

    assert [line.partition("masakari_ng.test ")[2] for line in lines()] == [
        "[None req-1 u1 - - - - -] [notification: n1] [host: compute-1] [instance: i1] inside",
        "[None req-1 u1 - - - - -] [notification: n1] [host: compute-1] after",
        "[-] outside",
    ]


def test_facts_are_fields_in_json(records):
    with logs.about(request_id="req-1", notification_uuid="n1"):
        log.info("inside")

    [record] = map(json.loads, records())
    assert record["context"]["request_id"] == "req-1"
    assert record["extra"] == {"notification_uuid": "n1"}


def test_what_a_plug_in_says_itself_has_priority(lines):
    with logs.about(request_id="req-1", notification_uuid="n1"):
        log.info("inside", extra={"context": {"request_id": "req-2"}, "instance": {"uuid": "i1"}})

    [line] = lines()
    assert " req-2 " in line
    assert line.endswith("[instance: i1] inside")


def test_facts_belong_to_their_thread_and_its_context(lines):
    logs.note(notification_uuid="nobody's")
    with logs.about(notification_uuid="n1"), ThreadPoolExecutor(1) as pool:
        pool.submit(log.info, "own").result()
        pool.submit(contextvars.copy_context().run, log.info, "copied").result()

    assert [line.partition("masakari_ng.test ")[2] for line in lines()] == [
        "[-] own",
        "[-] [notification: n1] copied",
    ]
