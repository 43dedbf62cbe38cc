"""`masakari-ng-manage recovery`: who works on what, how far it is, and how to free it."""

import dataclasses
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from oslo_config import cfg
from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db import claims, hosts, journal, notifications, vmoves
from masakari_ng.db.claims import Seen
from masakari_ng.db.session import Database
from masakari_ng.domain import JournalEntry, VMove, VMoveStatus

_LOST = "none; it is taken by the next engine that looks"
_ENDED = frozenset({VMoveStatus.SUCCEEDED, VMoveStatus.FAILED, VMoveStatus.IGNORED})


def add_actions(categories: Any) -> None:
    """Make the category known to the command line."""
    actions = categories.add_parser("recovery").add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="Recoveries that an engine has claimed")
    listing.set_defaults(run=_list)
    showing = actions.add_parser("show", help="One recovery and its instances")
    showing.set_defaults(run=_show)
    for action in (listing, showing):
        action.add_argument("--json", dest="as_json", action="store_true", help="For programs")
    releasing = actions.add_parser(
        "release", help="Let another engine go on with the recovery of a dead one"
    )
    releasing.add_argument(
        "--force", action="store_true", help="Even if the engine has shown signs of life lately"
    )
    releasing.set_defaults(run=_release)
    for action in (showing, releasing):
        action.add_argument("notification", help="UUID of the notification")


def _list(conf: cfg.ConfigOpts) -> int:
    found = Database.from_conf(conf).read(
        lambda session: [_overview(session, seen) for seen in claims.seen(session)]
    )
    if conf.category.as_json:
        print(json.dumps(found, indent=2))
    elif found:
        _print_table([_row(conf, recovery) for recovery in found])
    else:
        print("No recovery is claimed.")
    return 0


def _show(conf: cfg.ConfigOpts) -> int:
    uuid = conf.category.notification
    found = Database.from_conf(conf).read(lambda session: _details(session, uuid))
    if conf.category.as_json:
        print(json.dumps(found, indent=2))
        return 0
    for title, value in _row(conf, found).items():
        print(f"{title.replace('_', ' ').capitalize():19}{value}")
    if found["instances"]:
        print()
        _print_table([_instance_row(instance) for instance in found["instances"]])
    return 0


def _release(conf: cfg.ConfigOpts) -> int:
    uuid, limit = conf.category.notification, conf.masakari_ng.claim_timeout
    database = Database.from_conf(conf)
    seen = next(iter(database.read(lambda session: claims.seen(session, uuid))), None)
    if seen is None:
        print(f"No engine has a claim on notification {uuid}. Nothing was changed.")
        return 1
    if seen.claim.engine == claims.NOBODY:
        print(f"Notification {uuid} is released already; the next engine that looks takes it.")
        return 0
    if seen.silence < limit and not conf.category.force:
        print(
            f"Refused: engine {_engine(seen.claim.engine)} gave a sign of life {seen.silence} s"
            f" ago, so it may be at work. Nothing was changed.\nAfter {limit} s without one"
            " (claim_timeout) other engines take over by themselves. If it is dead for certain,"
            " say --force."
        )
        return 1
    if not database.write(lambda session: claims.hand_over(session, seen.claim)):
        print("Another engine has taken over at this moment. Nothing was changed.")
        return 1
    print(
        f"Notification {uuid} is released. The next engine goes on with it, within"
        f" {conf.masakari_ng.claim_heartbeat} s (claim_heartbeat) if one runs and is not busy."
    )
    return 0


def _overview(session: Session, seen: Seen) -> dict[str, Any]:
    return _described(session, seen.claim.notification_uuid, seen)


def _details(session: Session, uuid: str) -> dict[str, Any]:
    seen = next(iter(claims.seen(session, uuid)), None)
    entries = {entry.vmove_uuid: entry for entry in journal.of_notification(session, uuid)}
    moves = vmoves.of_notification(session, uuid)[::-1]
    instances = [_instance(vmove, entries.get(vmove.uuid)) for vmove in moves]
    return _described(session, uuid, seen) | {"instances": instances}


def _described(session: Session, uuid: str, seen: Seen | None) -> dict[str, Any]:
    found = notifications.by_uuid(session, uuid)
    try:
        host = hosts.by_uuid(session, found.source_host_uuid).name
    except errors.HostNotFound:
        host = found.source_host_uuid
    moves = Counter(str(vmove.status) for vmove in vmoves.of_notification(session, uuid))
    claim: dict[str, Any] | None = None
    if seen is not None:
        claim = dataclasses.asdict(seen.claim) | {"age": seen.age, "silence": seen.silence}
    return {
        "notification_uuid": uuid,
        "type": found.type,
        "host": host,
        "status": found.status,
        "claim": claim,
        "vmoves": dict(moves),
    }


def _instance(vmove: VMove, entry: JournalEntry | None) -> dict[str, Any]:
    return {
        "instance_uuid": vmove.instance_uuid,
        "instance_name": vmove.instance_name,
        "status": vmove.status,
        "step": _step(vmove, entry),
        "locked_by_us": bool(entry and entry.locked),
        "target": vmove.dest_host or (entry and entry.target),
        "message": vmove.message,
    }


def _step(vmove: VMove, entry: JournalEntry | None) -> str:
    """How far the journal says that a move is."""
    if entry is None:
        return "over"
    if vmove.status in _ENDED:
        return "to be unlocked" if entry.locked else "over"
    if entry.evacuate_sent:
        return "evacuation sent"
    return "not begun" if entry.vm_state is None else "prepared"


def _row(conf: cfg.ConfigOpts, recovery: dict[str, Any]) -> dict[str, str]:
    claim = recovery["claim"]
    row = {key: str(recovery[key]) for key in ("notification_uuid", "type", "host", "status")}
    row |= {"engine": "none", "work": "-", "claimed": "-", "last sign of life": "-"}
    if claim is not None:
        row["work"] = "working" if claim["working"] else "waiting"
        row["claimed"] = f"{_duration(claim['age'])} ago"
        row["engine"] = _engine(claim["engine"])
        if claim["engine"] != claims.NOBODY:
            late = claim["silence"] >= conf.masakari_ng.claim_timeout
            row["last sign of life"] = f"{_duration(claim['silence'])} ago" + " DEAD?" * late
    moves = [f"{count} {status}" for status, count in sorted(recovery["vmoves"].items())]
    return row | {"instances": ", ".join(moves) or "-"}


def _instance_row(instance: dict[str, Any]) -> dict[str, str]:
    row = {key: str(instance[key] or "-") for key in instance}
    return row | {"locked_by_us": "yes" if instance["locked_by_us"] else "no"}


def _engine(identity: str) -> str:
    """Host and process, which is what an operator can look for."""
    if identity == claims.NOBODY:
        return _LOST
    host, _, rest = identity.partition(":")
    return f"{host} (process {rest.partition(':')[0]})" if rest else identity


def _duration(seconds: int) -> str:
    if seconds < 2 * 60:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 2 * 3600 else f"{seconds // 3600} h"


def _print_table(rows: Sequence[dict[str, str]]) -> None:
    titles = {key: key.replace("_", " ").upper() for key in rows[0]}
    widths = {key: max(len(row[key]) for row in (titles, *rows)) for key in titles}
    for row in (titles, *rows):
        print("  ".join(row[key].ljust(widths[key]) for key in titles).rstrip())
