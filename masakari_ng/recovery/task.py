"""What every task of a recovery has: its tools, its name on the wire, its progress."""

import functools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from oslo_config import cfg
from sqlalchemy.orm import Session
from taskflow import task

from masakari_ng import errors
from masakari_ng.clock import Clock, wait_until
from masakari_ng.compute.nova import Nova
from masakari_ng.db import claims
from masakari_ng.db.session import Database
from masakari_ng.domain import Claim, Correction, Host, Notification, ProgressEntry
from masakari_ng.recovery.progress import ProgressLog
from masakari_ng.recovery.reserved_host import HostLocks

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class RecoveryContext:
    """The tools of one recovery, and the right to it.

    Attributes:
        nova: asks under the request id of the notification.
        claim: without it nothing may be written.
        locks: on reserved hosts, the same for all recoveries of a process.
        resumed: the claim was taken over from an engine that died in the middle.
        host_changed: told of a host with its new flags.
        corrections: mistakes of upstream's that are not to be made.
        turn: held by the one thread that writes.
    """

    conf: cfg.ConfigOpts
    nova: Nova
    clock: Clock
    database: Database
    claim: Claim
    notification: Notification
    locks: HostLocks
    resumed: bool = False
    host_changed: Callable[[Host], None] = lambda _host: None
    corrections: frozenset[Correction] = frozenset()
    turn: threading.Lock = field(default_factory=threading.Lock, compare=False)

    def write(self, work: Callable[[Session], T]) -> T:
        """Run `work` in one transaction that begins by making sure of the claim.

        `work` may run twice where the first commit was not noticed.

        Raises:
            ClaimLost: another engine has taken over; nothing was written.
            DatabaseUnavailable: as `Database.write`.
        """
        # The row of the claim lets in one after the other anyway: the others need no connection.
        return self.database.write(functools.partial(self._fenced, work), turn=self.turn)

    def verify(self) -> None:
        """Make sure of the claim; to be called before whatever Nova is asked to change.

        An engine may have been frozen for so long that another one has taken over.

        Raises:
            ClaimLost, DatabaseUnavailable: as `write`.
        """
        self.write(lambda _session: None)

    def _fenced(self, work: Callable[[Session], T], session: Session) -> T:
        claims.verify(session, self.claim)
        return work(session)


class RecoveryTask(task.Task):
    """A task of ours; a subclass writes `execute`, whose arguments come from the flow's store.

    Attributes:
        wire_name: name under which the task is stored and shown to clients.
    """

    wire_name: ClassVar[str]

    def __init__(self, context: RecoveryContext) -> None:
        super().__init__(name=self.wire_name)
        self.context = context
        self.conf = context.conf
        self.nova = context.nova
        self.clock = context.clock
        self._progress = ProgressLog()

    def report(self, message: str, progress: float = 0.0, *, repeated: bool = False) -> None:
        """Let operators and clients see how far the task is.

        Args:
            message: what they read.
            progress: fraction from 0.0 to 1.0.
            repeated: one like it is written for each instance; `show` lets clients see them.
        """
        log.info("%s", message)
        now = self.clock.utcnow().strftime("%Y-%m-%d %H:%M:%S.%f")
        self._progress.add(ProgressEntry(now, progress, message), repeated=repeated)
        if not repeated:
            self.show(progress)

    def show(self, progress: float) -> None:
        """Store everything that has been reported, which is long for a host of many instances."""
        self.notifier.notify(
            task.EVENT_UPDATE_PROGRESS,
            {"progress": progress, "progress_details": self._progress.stored()},
        )

    def wait(
        self, condition: Callable[[], bool], timeout: float, failure: errors.RecoveryFailure
    ) -> None:
        """Wait for Nova; when time is up, report `failure` and raise it.

        Args:
            condition: looks at Nova.
            timeout: limit in seconds; 0 means none.
            failure: says what has not happened.
        """
        interval = self.conf.verify_interval
        try:
            wait_until(condition, interval=interval, timeout=timeout, clock=self.clock)
        except errors.WaitTimeout as error:
            self.report(str(failure), 1.0)
            raise failure from error
