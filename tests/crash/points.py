"""Moments of a host's recovery, seen from Nova and from the database, and how to stop there.

At each the engine waits for an answer that is held back, so a signal meets it exactly there.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pymysql

from tests.servers import eventually

HELD = 3.0
"""Seconds for which an answer is held back."""
_UNTIL_HIT = 60.0


@dataclass(frozen=True)
class NovaPoint:
    """A request to Nova that is answered late.

    Attributes:
        match: as rules of the simulated cloud have it; `{plain}` and `{paused}` stand for servers.
        skip: such requests before it.
        lost: Nova never gets it.
    """

    name: str
    match: dict[str, str] = field(hash=False)
    skip: int = 0
    lost: bool = False

    @contextmanager
    def reached(self, site: Any) -> Iterator[None]:
        """On entry the point is armed; the caller waits with `site.wait_held`."""
        match = {key: value.format(**site.ids) for key, value in self.match.items()}
        do = {"delay": HELD, "drop": True} if self.lost else {"delay": HELD}
        site.cloud.arm_faults([{"match": match, "skip": self.skip, "times": 1, "do": do}])
        yield

    def wait(self, site: Any) -> None:
        """Until the engine is there."""
        match = {key: value.format(**site.ids) for key, value in self.match.items()}

        eventually(
            lambda: (
                sum(site.cloud.matches(match, frame) for frame in list(site.cloud.frames))
                > self.skip
            ),
            timeout=_UNTIL_HIT,
        )


@dataclass(frozen=True)
class RowPoint:
    """A statement that changes a row, and is not committed yet.

    Attributes:
        table: its name.
        event: `INSERT`, `UPDATE` or `DELETE`.
        condition: SQL on `OLD` and `NEW`.
    """

    name: str
    table: str
    event: str
    condition: str = "TRUE"

    def trigger(self, schema: str) -> str:
        """Sleeps where somebody holds the user lock of this point."""
        return (
            f"CREATE TRIGGER `crash {self.name}` BEFORE {self.event} ON {self.table} FOR EACH ROW"
            f" BEGIN IF ({self.condition}) AND IS_USED_LOCK('{schema} {self.name}') IS NOT NULL"
            f" THEN DO SLEEP({HELD}); END IF; END"
        )

    @contextmanager
    def reached(self, site: Any) -> Iterator[None]:
        """As `NovaPoint.reached`."""
        with closing(site.link()) as link, link.cursor() as cursor:
            cursor.execute("SELECT GET_LOCK(%s, 0)", [f"{site.schema} {self.name}"])
            yield

    def wait(self, site: Any) -> None:
        """As `NovaPoint.wait`."""
        query = (
            "SELECT 1 FROM information_schema.processlist WHERE db = %s AND state = 'User sleep'"
        )
        with closing(site.link()) as link, link.cursor() as cursor:
            eventually(lambda: bool(cursor.execute(query, [site.schema])), timeout=_UNTIL_HIT)


Point = NovaPoint | RowPoint


def _action(name: str, server: str, action: str, **more: Any) -> NovaPoint:
    return NovaPoint(name, {"action": action, "path": f"/servers/{{{server}}}/action$"}, **more)


def _look(name: str, server: str, skip: int) -> NovaPoint:
    return NovaPoint(name, {"method": "GET", "path": f"/servers/{{{server}}}$"}, skip=skip)


_DISABLE = {"method": "PUT", "path": "/os-services/{failed}"}
_ENABLE = {"method": "PUT", "path": "/os-services/{reserved}"}

NOVA_POINTS = [
    NovaPoint("service looked up", {"method": "GET", "path": "/os-services$"}),
    NovaPoint("service disabled", _DISABLE),
    NovaPoint("service not disabled", _DISABLE, lost=True),
    NovaPoint("servers listed", {"method": "GET", "path": "/servers/detail$"}),
    NovaPoint("reserved host enabled", _ENABLE),
    NovaPoint("reserved host not enabled", _ENABLE, lost=True),
    _look("first look", "paused", 0),
    _look("second look", "paused", 1),
    _action("locked", "plain", "lock"),
    _action("not locked", "plain", "lock", lost=True),
    _action("state reset", "paused", "os-resetState"),
    _action("state not reset", "paused", "os-resetState", lost=True),
    _look("look after reset", "paused", 2),
    _action("evacuated", "plain", "evacuate"),
    _action("not evacuated", "plain", "evacuate", lost=True),
    _action("evacuated after reset", "paused", "evacuate"),
    _look("first poll", "plain", 2),
    _action("stopped", "paused", "os-stop"),
    _action("not stopped", "paused", "os-stop", lost=True),
    _action("unlocked", "plain", "unlock"),
    _action("not unlocked", "plain", "unlock", lost=True),
    _action("unlocked after stop", "paused", "unlock"),
]

ROW_POINTS = [
    RowPoint("claimed", "notifications", "UPDATE", "NEW.status = 'running'"),
    RowPoint("on maintenance", "hosts", "UPDATE", "NEW.on_maintenance AND NOT OLD.on_maintenance"),
    RowPoint("reserved used", "hosts", "UPDATE", "OLD.reserved AND NOT NEW.on_maintenance"),
    RowPoint("planned", "masakari_ng_journal", "INSERT"),
    RowPoint("lock written", "masakari_ng_journal", "UPDATE", "NEW.locked AND NOT OLD.locked"),
    RowPoint("evacuation written", "vmoves", "UPDATE", "NEW.status = 'ongoing'"),
    RowPoint("arrival written", "vmoves", "UPDATE", "NEW.status = 'succeeded'"),
    RowPoint("move forgotten", "masakari_ng_journal", "DELETE"),
    RowPoint("outcome written", "notifications", "UPDATE", "NEW.status = 'finished'"),
]

SHORT = {
    "kill": [
        "service not disabled",
        "locked",
        "state reset",
        "not evacuated",
        "evacuated",
        "stopped",
        "not unlocked",
        "lock written",
        "evacuation written",
        "outcome written",
    ],
    "term": ["service disabled", "evacuated", "arrival written"],
    "stop": ["servers listed", "evacuated", "not evacuated", "evacuation written"],
}
"""The spread of points, by signal, that is tried in the short form."""


def connect(port: int, schema: str) -> Any:
    """A connection that sees what is not committed yet."""
    return pymysql.connect(
        host="127.0.0.1",
        port=port,
        user="root",
        database=schema,
        autocommit=True,
        init_command="SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
    )
