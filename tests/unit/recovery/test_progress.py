"""Protects taskflow's column from the progress of big hosts, and small hosts from any loss."""

import json
from uuid import UUID

import pytest

from masakari_ng.domain import ProgressEntry
from masakari_ng.recovery.progress import ProgressLog

COLUMN = 65_535
TIME = "2026-11-30 17:30:15.919315"


def evacuation(instances: int) -> tuple[ProgressLog, list[str]]:
    """What the evacuation task reports, and the log of it."""
    uuids = [str(UUID(int=number)) for number in range(instances)]
    everything = ",".join(uuids)
    log = ProgressLog()
    before = (
        f"Start evacuation of instances from failed host 'c', instance uuids are: '{everything}'"
    )
    started = [f"Evacuation of instance started: '{uuid}'" for uuid in uuids]
    after = [
        f"Successfully evacuate instances '{everything}' from host 'c'",
        "Evacuation process completed!",
    ]
    log.add(ProgressEntry(TIME, 0.0, before))
    for number, message in enumerate(started):
        log.add(ProgressEntry(TIME, 0.5, message), repeated=True)
        assert number % 100 or stored_size(log) < COLUMN
    for message in after:
        log.add(ProgressEntry(TIME, 0.7, message))
    return log, [before, *started, *after]


def stored_size(log: ProgressLog) -> int:
    details = {"at_progress": 1.0, "details": {"progress_details": log.stored()}}
    return len(json.dumps({"progress": 1.0, "progress_details": details}))


def test_nothing_is_lost_while_it_fits():
    log, reported = evacuation(200)

    assert [entry["message"] for entry in log.stored()] == reported


@pytest.mark.parametrize("instances", [400, 1000, 5000])
def test_big_hosts_keep_the_first_and_the_last_messages(instances):
    log, reported = evacuation(instances)

    messages = [entry["message"] for entry in log.stored()]
    assert 30_000 < stored_size(log) < COLUMN
    started = [message for message in messages if "started" in message]
    assert [started[0], started[-1]] == [reported[1], reported[instances]]
    assert len(started) < instances
    assert messages[-1] == "Evacuation process completed!"
    assert messages[-2].endswith(" from host 'c'")
    assert messages[0].endswith("'")


def test_cut_lists_say_so():
    log, reported = evacuation(1000)

    first, *_, last, _ = [str(entry["message"]) for entry in log.stored()]
    assert first.endswith(",...'")
    assert reported[0].startswith(first.removesuffix("...'"))
    assert ",...'" in last or last == reported[-2]


def test_stored_form():
    log = ProgressLog()
    log.add(ProgressEntry(TIME, 0.3, "Total"))

    assert log.stored() == [{"timestamp": TIME, "progress": 0.3, "message": "Total"}]
