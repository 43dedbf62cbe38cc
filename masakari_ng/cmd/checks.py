"""What `masakari-ng doctor` looks at: one function for each check, which only reads."""

import functools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from oslo_config import cfg

from masakari_ng import conf as options
from masakari_ng import errors
from masakari_ng.cmd import engine_parts, paste
from masakari_ng.compute.nova import Cloud, ComputeService, Nova
from masakari_ng.conf import without_effect
from masakari_ng.db import claims, diagnosis, hosts, migrate, notifications, segments
from masakari_ng.db.paging import Page
from masakari_ng.db.session import Database
from masakari_ng.domain import UNFINISHED, Host, Notification, NotificationStatus
from masakari_ng.messaging import presence
from masakari_ng.messaging.connection import Broker

_SKEW_SEEN, _SKEW_HARMFUL = 2.0, 60.0
"""Seconds; masakari-ng bears one minute between the clocks of an engine and of the database."""

_LOOKS = 2
_RUNNING = timedelta(hours=1)
_RECENT = timedelta(days=7)
_MOST_INSTANCES = 50


class Result(StrEnum):
    """How a check ended."""

    OK = "OK"
    WARNING = "warning"
    FAILURE = "failure"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check has found.

    Attributes:
        found: one sentence.
        subjects: names or uuids of what is not as it should be.
    """

    result: Result
    found: str
    subjects: tuple[str, ...] = ()


class Site:
    """What the checks look at; it is asked at the first use and remembered.

    Args:
        conf: options; those for Nova's timeouts are changed.
        patience: seconds that each answer may take.
    """

    def __init__(self, conf: cfg.ConfigOpts, patience: int) -> None:
        conf.set_override("timeout", patience)
        self.conf = conf
        self.patience = patience
        self.close = (parts := ExitStack()).close
        self._parts = parts

    @functools.cached_property
    def database(self) -> Database:
        return self._opened(self.conf.database.connection)

    @functools.cached_property
    def workflows(self) -> Database:
        return self._opened(self.conf.taskflow.connection)

    @functools.cached_property
    def cloud(self) -> Cloud:
        return Cloud(self.conf)

    @property
    def nova(self) -> Nova:
        return self.cloud.nova("")

    @functools.cached_property
    def services(self) -> dict[str, ComputeService]:
        """Nova's compute services by host."""
        return {service.host: service for service in self.nova.services(None)}

    @functools.cached_property
    def hosts(self) -> list[Host]:
        """The hosts of all segments."""
        return self.database.read(
            lambda session: [
                host
                for segment in segments.listed(session, Page())
                for host in hosts.listed(session, Page(), segment)
            ]
        )

    def _opened(self, connection: str) -> Database:
        chosen = dict(self.conf.database) | {"max_retries": 1}
        database = Database(connection, chosen, answer_timeout=self.patience)
        self._parts.callback(database.close)
        return database


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the table.

    Attributes:
        advice: what to do unless all is well.
        needs: checks without whose success this one says nothing.
    """

    name: str
    run: Callable[[Site], Finding]
    advice: str
    needs: tuple[str, ...] = ()


def _configuration(site: Site) -> Finding:
    """Every option has a value that can be used."""
    for group, known in options.list_opts():
        for option in known:
            _ = site.conf[option.dest] if group is None else site.conf[group][option.dest]
    engine_parts.check(site.conf)
    ignored = (*without_effect.given(site.conf), *paste.without_effect(site.conf))
    files = ", ".join(site.conf.config_file or []) or "no file, defaults only"
    return Finding(Result.OK, f"Read: {files}." + _told(" Without effect: ", ignored))


def _database(site: Site) -> Finding:
    file = site.conf.database.connection.partition("sqlite:///")[2]
    if file and not Path(file).exists():  # a look would make it
        return Finding(Result.FAILURE, f"There is no file {file}.")
    site.database.read(diagnosis.seconds_ahead)
    return Finding(Result.OK, "The database answers.")


def _schema(site: Site) -> Finding:
    old = [
        f"{chain}: {present or 'no tables'}, needed: {newest}"
        for chain, (present, newest) in migrate.revisions(site.database).items()
        if present != newest
    ]
    named = site.conf.taskflow.connection
    if not named or not site.workflows.read(diagnosis.has_workflows):
        old.append("taskflow: no tables")
    return _judged(old, Result.FAILURE, "Not at this program's revision", "All tables are there.")


def _clock(site: Site) -> Finding:
    ahead = site.database.read(diagnosis.seconds_ahead)
    found = f"The clock of the database is {abs(ahead):.1f} s {'ahead' if ahead > 0 else 'behind'}."
    if abs(ahead) < _SKEW_SEEN:
        return Finding(Result.OK, found)
    return Finding(Result.FAILURE if abs(ahead) >= _SKEW_HARMFUL else Result.WARNING, found)


def _broker(site: Site) -> Finding:
    presence.engines(Broker(site.conf), site.patience)
    return Finding(Result.OK, "RabbitMQ takes us in.")


def _engines(site: Site) -> Finding:
    engines, waiting = presence.engines(Broker(site.conf), site.patience)
    found = (
        f"Engines that read {site.conf.masakari_topic}: {engines}; requests that wait: {waiting}."
    )
    return Finding(Result.OK if engines else Result.FAILURE, found)


def _keystone(site: Site) -> Finding:
    site.cloud.log_in()
    return Finding(Result.OK, "Keystone gives a token.")


def _nova(site: Site) -> Finding:
    return Finding(Result.OK, f"Compute services that Nova shows: {len(site.services)}.")


def _known_hosts(site: Site) -> Finding:
    unknown = [host.name for host in site.hosts if host.name not in site.services]
    good = f"Nova knows all {len(site.hosts)} hosts of the segments."
    return _judged(unknown, Result.FAILURE, "Nova has no compute service on", good)


def _maintenance(site: Site) -> Finding:
    resting = [host.name for host in site.hosts if host.on_maintenance]
    good = "No host is on maintenance."
    return _judged(resting, Result.WARNING, "Failures of these hosts are refused (409)", good)


def _reserved_hosts(site: Site) -> Finding:
    unfit = [
        f"{host.name} ({service.state}, {service.status})"
        for host in site.hosts
        if host.reserved and not host.on_maintenance and (service := site.services.get(host.name))
        if service.state != "up" or service.status != "disabled"
    ]
    good = "Each reserved host is up and disabled."
    return _judged(unfit, Result.WARNING, "Reserved, and not both up and disabled", good)


def _notifications(site: Site) -> Finding:
    # Claims after the rows: whatever was begun in between is not stuck.
    rows = site.database.read(lambda session: notifications.unfinished(session, UNFINISHED))
    claimed = {seen.claim.notification_uuid for seen in site.database.read(claims.seen)}
    stuck = [
        f"{row.notification_uuid} ({row.status})"
        for row in rows
        if row.notification_uuid not in claimed and _old(row, site.conf)
    ]
    good = f"Notifications not finished: {len(rows)}, none for too long."
    return _judged(stuck, Result.FAILURE, "Nobody works on", good)


def _claims(site: Site) -> Finding:
    own = site.conf.masakari_ng
    limit = own.claim_timeout + _LOOKS * own.claim_heartbeat
    seen = site.database.read(claims.seen)
    stale = [found.claim.notification_uuid for found in seen if found.silence > limit]
    good = f"Recoveries claimed: {len(seen)}, all by engines that live."
    return _judged(stale, Result.FAILURE, "Claimed by dead engines, and not taken over", good)


def _locks(site: Site) -> Finding:
    since = _now() - _RECENT
    found = site.database.read(
        lambda session: diagnosis.locks_left(session) + diagnosis.moved_in_vain(session, since)
    )
    suspects = list(dict.fromkeys(found))[:_MOST_INSTANCES]
    locked = [uuid for uuid in suspects if _is_locked(site.nova, uuid)]
    good = f"No instance of a failed recovery is locked (looked at: {len(suspects)})."
    return _judged(locked, Result.WARNING, "Locked since a recovery, or by their users", good)


def _old(row: Notification, conf: cfg.ConfigOpts) -> bool:
    """Whether an engine must have done something about it by now."""
    limit = _RUNNING  # engines of Masakari have no claims, and may take long
    if row.status is not NotificationStatus.RUNNING:
        pause = max(0, conf.process_unfinished_notifications_interval)
        limit = timedelta(seconds=conf.retry_notification_new_status_interval + _LOOKS * pause)
    return (row.updated_at or row.created_at or row.generated_time) < _now() - limit


def _is_locked(nova: Nova, uuid: str) -> bool:
    try:
        return nova.server(uuid).locked
    except errors.CloudNotFound:  # deleted meanwhile
        return False


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def _judged(subjects: Sequence[str], bad: Result, problem: str, good: str) -> Finding:
    if not subjects:
        return Finding(Result.OK, good)
    return Finding(bad, _told(f"{problem}: ", subjects), tuple(subjects))


def _told(title: str, subjects: Sequence[str], most: int = 5) -> str:
    """The first of them as text; nothing if there is none."""
    more = f" and {len(subjects) - most} more" if len(subjects) > most else ""
    return f"{title}{', '.join(subjects[:most])}{more}." if subjects else ""


CHECKS = (
    Check("configuration", _configuration, "Correct the option that is named, in masakari.conf."),
    Check(
        "database",
        _database,
        "See that MariaDB runs, and that [database] connection has the right host and password.",
    ),
    Check("schema", _schema, "Run: masakari-ng-manage db sync", ("database",)),
    Check("clock", _clock, "Let NTP set the clocks of this machine and of MariaDB.", ("database",)),
    Check("broker", _broker, "See that RabbitMQ runs, and that transport_url is right."),
    Check(
        "engines",
        _engines,
        "Start one: systemctl start masakari-ng-engine; its log says why it ended.",
        ("broker",),
    ),
    Check("keystone", _keystone, "Correct os_privileged_user_... in [DEFAULT] of masakari.conf."),
    Check(
        "nova",
        _nova,
        "Give os_privileged_user_name the role admin, and see nova_catalog_admin_info.",
        ("keystone",),
    ),
    Check(
        "hosts in nova",
        _known_hosts,
        "Name the host as in: openstack compute service list --service nova-compute",
        ("schema", "nova"),
    ),
    Check(
        "maintenance",
        _maintenance,
        "Once repaired: openstack segment host update --on_maintenance False SEGMENT HOST",
        ("schema",),
    ),
    Check(
        "reserved hosts",
        _reserved_hosts,
        "Start nova-compute there, or: openstack compute service set --disable HOST nova-compute",
        ("schema", "nova"),
    ),
    Check(
        "notifications",
        _notifications,
        "See that an engine runs with periodic_enable; then docs/operate.md, by status.",
        ("schema",),
    ),
    Check(
        "claims",
        _claims,
        "Start an engine; to see them: masakari-ng-manage recovery list",
        ("schema",),
    ),
    Check(
        "locks",
        _locks,
        "Unless its user locked it: openstack server unlock INSTANCE",
        ("schema", "nova"),
    ),
)
