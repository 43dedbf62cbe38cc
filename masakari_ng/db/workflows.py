"""What the tasks of a recovery have reported, read from taskflow's tables.

Neither taskflow nor the tasks' classes are needed, so rows of upstream's engine are read as well.
"""

import json
from typing import Any

from sqlalchemy import column, select, table
from sqlalchemy.orm import Session

from masakari_ng.domain import ProgressEntry, TaskDetails

_FLOWS = table("flowdetails", column("uuid"), column("parent_uuid"))
_ATOMS = table(
    "atomdetails", column("parent_uuid"), column("name"), column("state"), column("meta")
)


def details(session: Session, notification_uuid: str) -> list[TaskDetails]:
    """Tasks with messages: flows by their first message, tasks of a flow likewise.

    Args:
        session: open transaction in the database with taskflow's tables.
        notification_uuid: also the uuid of the notification's logbook.

    Spec: recovery §10.3
    """
    atoms = session.execute(
        select(_ATOMS)
        .join(_FLOWS, _FLOWS.c.uuid == _ATOMS.c.parent_uuid)
        .where(_FLOWS.c.parent_uuid == notification_uuid)
    )
    flows: dict[str, list[TaskDetails]] = {}
    for atom in atoms:
        task = _task(atom)
        if task.progress_details:
            flows.setdefault(atom.parent_uuid, []).append(task)
    inside = [sorted(tasks, key=_begin) for tasks in flows.values()]
    return [task for tasks in sorted(inside, key=lambda tasks: _begin(tasks[0])) for task in tasks]


def _task(atom: Any) -> TaskDetails:
    meta = json.loads(atom.meta or "{}")
    reported = (meta.get("progress_details") or {}).get("details") or {}
    return TaskDetails(
        name=atom.name,
        state=atom.state,
        progress=meta.get("progress", 0.0),
        progress_details=tuple(
            ProgressEntry(entry["timestamp"], entry["progress"], entry["message"])
            for entry in reported.get("progress_details", ())
        ),
    )


def _begin(task: TaskDetails) -> str:
    return task.progress_details[0].timestamp
