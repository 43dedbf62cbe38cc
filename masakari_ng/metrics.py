"""The only place for metrics: what is measured, and the port where Prometheus reads it.

The metrics are the package's one kind of global, so that a line anywhere can count. Until `begin`
they keep nothing, and prometheus-client is not even imported. docs/metrics.md has a row for each.
"""

import contextlib
import fcntl
import itertools
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_FILE_SIZE = 1 << 16  # in which prometheus-client begins a file
_FRESH = 10.0
_PATIENCE = 2.0
_MINUTES = (0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 3600)
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180)

ALL: list["Metric"] = []
"""Every metric there is."""


class Metric:
    """A metric with its labels; declared here and used anywhere.

    Args:
        name: as Prometheus shows it.
        help: one sentence.
        labels: names; few, and with few values.
    """

    kind = ""

    def __init__(self, name: str, help: str, *labels: str, **options: Any) -> None:
        self.name, self.help, self.labels = name, help, labels
        self._options = options
        self._kept: Any = None
        ALL.append(self)

    def begin(self, registry: Any) -> None:
        """Keep numbers from now on."""
        import prometheus_client  # noqa: PLC0415 - who measures nothing need not pay for it

        make = getattr(prometheus_client, self.kind)
        self._kept = make(self.name, self.help, self.labels, registry=registry, **self._options)

    def end(self) -> None:
        """Keep nothing any more."""
        self._kept = None

    @property
    def active(self) -> bool:
        """Whether numbers are kept."""
        return self._kept is not None

    def _keep(self, act: str, value: float, labels: Sequence[str]) -> None:
        if self._kept is None:
            return
        try:
            getattr(self._kept.labels(*labels), act)(value)
        except Exception:  # A full disk, for one; what is measured must go on.
            log.exception("%s is measured no longer", self.name)
            self.end()


class Counter(Metric):
    """Only grows."""

    kind = "Counter"

    def count(self, *labels: str) -> None:
        self._keep("inc", 1, labels)


class Histogram(Metric):
    """Seconds, in buckets."""

    kind = "Histogram"

    def observe(self, seconds: float, *labels: str) -> None:
        self._keep("observe", max(seconds, 0.0), labels)


class Gauge(Metric):
    """Goes up and down; of several processes the latest value counts."""

    kind = "Gauge"

    def set(self, value: float, *labels: str) -> None:
        self._keep("set", value, labels)

    @contextlib.contextmanager
    def during(self, *labels: str) -> Iterator[None]:
        """Higher by one meanwhile; not where there are several processes."""
        self._keep("inc", 1, labels)
        try:
            yield
        finally:
            self._keep("dec", 1, labels)


class Read(Metric):
    """A gauge that is read elsewhere when Prometheus asks."""

    def begin(self, registry: Any) -> None:
        """Nothing is kept."""


Sample = tuple[Read, float, tuple[str, ...]]
"""What was read, and the values of its labels."""

NOTIFICATIONS = Counter(
    "masakari_ng_notifications_total",
    "Notifications that got this status; new is counted by the API, the others by engines.",
    *("type", "status", "segment"),
)
REFUSED = Counter(
    "masakari_ng_reports_refused_total", "Reports of failures that were refused.", "type", "reason"
)
CASTS_FAILED = Counter(
    "masakari_ng_casts_failed_total",
    "Reports that were stored, but of which no engine could be told at once.",
    "type",
)
SINCE_REPORT = Histogram(
    "masakari_ng_since_report_seconds",
    "Time from the report until its recovery got so far.",
    *("type", "until"),
    buckets=_MINUTES,
)
RECOVERIES = Gauge(
    "masakari_ng_recoveries_running",
    "Recoveries that this engine carries out.",
    "type",
    multiprocess_mode="livesum",
)
RETRIES = Counter(
    "masakari_ng_retries_total",
    "Notifications that the periodic task took up, by the status in which it found them.",
    *("type", "status"),
)
TAKEN_OVER = Counter(
    "masakari_ng_claims_taken_over_total", "Claims of other engines that were taken.", "reason"
)
VMOVES = Counter("masakari_ng_vmoves_total", "Moves of instances that ended so.", "status")
CLOUD = Histogram(
    "masakari_ng_cloud_request_seconds",
    "Requests to Nova and Keystone, by operation and status of the answer.",
    *("operation", "answer"),
    buckets=_SECONDS,
)
CONNECTED = Gauge(
    "masakari_ng_connected",
    "Whether the database or the broker answered when it was last needed.",
    "to",
    multiprocess_mode="livemostrecent",
)
DATABASE_REPEATS = Counter(
    "masakari_ng_database_repeats_total", "Transactions that were begun again.", "reason"
)
EVENTS_DROPPED = Counter(
    "masakari_ng_events_dropped_total", "Versioned notifications that were not sent.", "reason"
)
UNFINISHED = Read(
    "masakari_ng_notifications_unfinished",
    "Notifications that are new, running or in error, of all engines.",
    *("type", "status", "segment"),
)
OLDEST = Read(
    "masakari_ng_oldest_notification_seconds",
    "Age of the oldest notification in this status.",
    "status",
)
CLAIMS = Read("masakari_ng_claims", "Claims of all engines.", "state")
SILENCE = Read(
    "masakari_ng_claim_silence_seconds",
    "Longest time since the engine of a claim gave a sign of life.",
)
SEGMENT_INFO = Read("masakari_ng_segment_info", "Names of the segments.", "segment", "name")


class Reading:
    """Reads gauges when Prometheus asks, in a thread of its own, so that no scrape hangs.

    Args:
        read: gives all samples; that it fails is no news, its metrics are missing then.
    """

    def __init__(self, read: Callable[[], Iterable[Sample]]) -> None:
        self._read = read
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="metrics")
        self._result: Future[list[Sample]] | None = None
        self._since = 0.0

    def collect(self) -> Iterator[Any]:
        """What prometheus-client asks for; at most ten seconds old."""
        from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - as above

        found = self._result
        if found is None or (found.done() and time.monotonic() - self._since > _FRESH):
            found = self._result = self._pool.submit(lambda: list(self._read()))
            self._since = time.monotonic()
        wait([found], _PATIENCE)
        families: dict[str, Any] = {}
        for metric, value, labels in found.result() if _succeeded(found) else ():
            new = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
            families.setdefault(metric.name, new).add_metric(labels, value)
        yield from families.values()

    def describe(self) -> Iterator[Any]:
        """Nothing is read before somebody asks."""
        return iter(())


def begin(folder: Path | None = None) -> Any:
    """Keep numbers from now on; gives what can be served.

    Args:
        folder: an empty one, where processes that are forked later put their numbers. None: only
            this process counts.
    """
    if folder:
        os.environ[_FOLDER] = str(folder)
    from prometheus_client import CollectorRegistry, multiprocess, values  # noqa: PLC0415 - as above

    several: Any = values.MultiProcessValue
    values.ValueClass = several(_Slots(folder)) if folder else values.MutexValue
    registry = CollectorRegistry()
    for metric in ALL:
        metric.begin(None if folder else registry)
    if folder:
        registry.register(_Living(folder))
        multiprocess.MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
    return registry


def end() -> None:
    """Keep nothing any more."""
    os.environ.pop(_FOLDER, None)
    for metric in ALL:
        metric.end()


def serve(registry: Any, host: str, port: int) -> Callable[[], None]:
    """Answer Prometheus in a thread; gives what ends it.

    Raises:
        OSError: the port cannot be opened.
    """
    from prometheus_client import start_http_server  # noqa: PLC0415 - as above

    server, thread = start_http_server(port, host, registry)
    # A worker that outlives this process must not keep the port.
    os.register_at_fork(after_in_child=server.socket.close)

    def close() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return close


class _Slots:
    """Gives each process a number that no other living one has.

    A lock that goes with its process keeps it. So a new worker goes on counting in the files of a
    dead one: nothing is lost, and the files are as many as there were workers at once.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process, self._number = os.getpid(), "parent"

    def __call__(self) -> str:
        if os.getpid() != self._process:
            self._number = next(
                number for number in map(str, itertools.count()) if self._has(number)
            )
            self._process = os.getpid()
        return self._number

    def _has(self, number: str) -> bool:
        """Take the lock and all the space of the files: a write into a hole may kill a process."""
        if not _locked(self._folder / f"{number}.lock"):
            return False
        for kind in ("counter", "histogram", "gauge_livemostrecent"):
            path = self._folder / f"{kind}_{number}.db"
            if not path.exists():
                path.write_bytes(bytes(_FILE_SIZE))
        return True


class _Living:
    """Drops what dead processes said of themselves, before each scrape."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterator[Any]:
        for path in self._folder.glob("*.lock"):
            lock = _locked(path)
            if lock:
                for left in self._folder.glob(f"gauge_live*_{path.stem}.db"):
                    left.unlink()
                os.close(lock)
        return iter(())

    describe = collect


def _locked(path: Path) -> int:
    """The descriptor of a file that is locked now; 0 if another process has it."""
    lock = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return 0
    return lock


def _succeeded(found: Future[list[Sample]]) -> bool:
    if not found.done():
        return False
    if error := found.exception():
        log.debug("The gauges could not be read: %s", error)
    return error is None
