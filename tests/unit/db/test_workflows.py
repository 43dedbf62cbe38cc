"""Protects what is read of the progress that upstream's or our engine left in taskflow's tables."""

import json

import pytest
from sqlalchemy import text

from masakari_ng.db import workflows
from masakari_ng.domain import ProgressEntry, TaskDetails

_TIME = "2026-11-30 17:30:{}"


@pytest.fixture
def store(session):
    """Rows of one logbook; a flow is a list of (task name, seconds of its messages)."""

    def insert(logbook, flows):
        session.execute(text("INSERT INTO logbooks (uuid) VALUES (:uuid)"), {"uuid": logbook})
        for flow, tasks in flows.items():
            session.execute(
                text("INSERT INTO flowdetails (uuid, parent_uuid) VALUES (:uuid, :parent)"),
                {"uuid": flow, "parent": logbook},
            )
            for name, seconds in tasks:
                session.execute(
                    text(
                        "INSERT INTO atomdetails (uuid, parent_uuid, name, state, meta)"
                        " VALUES (:uuid, :flow, :name, 'SUCCESS', :meta)"
                    ),
                    {
                        "uuid": f"{flow}-{name}",
                        "flow": flow,
                        "name": name,
                        "meta": json.dumps(_meta(name, seconds)),
                    },
                )

    return insert


def _meta(name, seconds):
    if not seconds:
        return {}
    messages = [
        {"timestamp": _TIME.format(second), "progress": 0.5, "message": name} for second in seconds
    ]
    return {
        "progress": 1.0,
        "progress_details": {"at_progress": 1.0, "details": {"progress_details": messages}},
    }


def test_flows_and_tasks_come_by_their_first_message(session, store):
    store("other", {"f0": [("Other", ["00.5"])]})
    store(
        "notification",
        {
            "f1": [("Late", ["31.000002"]), ("Early", ["30.5", "40.1"])],
            "f2": [("Second", ["20.2"]), ("_TaskFlow_INJECTOR", []), ("First", ["20.1", "20.3"])],
            "f3": [("Pending", [])],
        },
    )

    found = workflows.details(session, "notification")

    assert [task.name for task in found] == ["First", "Second", "Early", "Late"]
    assert found[0] == TaskDetails(
        name="First",
        state="SUCCESS",
        progress=1.0,
        progress_details=(
            ProgressEntry(_TIME.format("20.1"), 0.5, "First"),
            ProgressEntry(_TIME.format("20.3"), 0.5, "First"),
        ),
    )


def test_without_a_logbook_there_is_nothing(session):
    assert workflows.details(session, "unknown") == []
