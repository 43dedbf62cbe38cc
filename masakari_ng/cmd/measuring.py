"""Lets the services be measured, if `metrics_port` says so."""

import atexit
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from oslo_config import cfg
from sqlalchemy.orm import Session

from masakari_ng import errors, metrics
from masakari_ng.compute.nova import Nova
from masakari_ng.db import census, claims
from masakari_ng.db.session import Database
from masakari_ng.domain import Notification
from masakari_ng.engine import measures

_ONE_REPEAT = 0.001
_ANSWER_TIMEOUT = 5


def measure_workers(conf: cfg.ConfigOpts) -> None:
    """Serve what the processes count that are forked from this one.

    Raises:
        ConfigurationError: the port cannot be opened.
    """
    if conf.masakari_ng.metrics_port:
        folder = tempfile.mkdtemp(prefix="masakari-ng-metrics-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _serve(conf, metrics.begin(Path(folder)))


def measure_engine(conf: cfg.ConfigOpts) -> None:
    """Serve what this engine counts, and what waits in the database.

    Raises:
        ConfigurationError: the port cannot be opened.
    """
    if conf.masakari_ng.metrics_port:
        registry = metrics.begin()
        # Not the engine's, which waits long for a database that is away.
        database = Database.from_conf(conf, patience=_ONE_REPEAT, answer_timeout=_ANSWER_TIMEOUT)
        registry.register(metrics.Reading(lambda: database.read(samples)))
        _serve(conf, registry)


def first_request(nova: Nova, notification: Notification) -> Nova:
    """The same, with its first request measured."""
    return Nova(_Measured(nova.connect, notification)) if metrics.SINCE_REPORT.active else nova


class _Measured:
    def __init__(self, connect: Callable[[], Any], notification: Notification) -> None:
        self._connect = connect
        self._expected = [notification]

    def __call__(self) -> Any:
        while self._expected:
            measures.since_report(self._expected.pop(), "first_request")
        return self._connect()


def _serve(conf: cfg.ConfigOpts, registry: Any) -> None:
    host, port = conf.masakari_ng.metrics_listen, conf.masakari_ng.metrics_port
    try:
        metrics.serve(registry, host, port)
    except OSError as error:
        raise errors.ConfigurationError(f"Could not bind to {host}:{port}\n{error!r}") from error


def samples(session: Session) -> list[metrics.Sample]:
    """What waits in the database."""
    return [*_notifications(session), *_claims(session), *_segments(session)]


def _notifications(session: Session) -> Iterator[metrics.Sample]:
    oldest: dict[str, float] = {}
    for heap in census.unfinished(session):
        yield metrics.UNFINISHED, heap.count, (heap.type, heap.status, heap.segment)
        oldest[heap.status] = max(heap.oldest, oldest.get(heap.status, 0.0))
    for status, seconds in oldest.items():
        yield metrics.OLDEST, seconds, (status,)


def _claims(session: Session) -> Iterator[metrics.Sample]:
    held = claims.seen(session)
    states = Counter({"working": 0, "waiting": 0, "left": 0})
    states.update(_state(seen) for seen in held)
    for state, count in states.items():
        yield metrics.CLAIMS, count, (state,)
    silent = [seen.silence for seen in held if seen.claim.engine != claims.NOBODY]
    yield metrics.SILENCE, max(silent, default=0), ()


def _state(seen: claims.Seen) -> str:
    if seen.claim.engine == claims.NOBODY:
        return "left"
    return "working" if seen.claim.working else "waiting"


def _segments(session: Session) -> Iterator[metrics.Sample]:
    for uuid, name in census.segments(session):
        yield metrics.SEGMENT_INFO, 1, (uuid, name)
