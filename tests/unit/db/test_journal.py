"""Protects what an engine leaves behind for the one that goes on with its recovery."""

import pytest

from masakari_ng import errors
from masakari_ng.db import journal, vmoves
from masakari_ng.domain import JournalEntry


@pytest.fixture
def plan(database):
    """Plan the move of an instance within a notification."""

    def planned(notification, instance):
        def work(session):
            vmove = vmoves.create(
                session,
                notification_uuid=notification,
                instance_uuid=instance,
                instance_name=instance,
                source_host="compute-1",
            )
            journal.plan(session, vmove)
            return vmove

        return database.write(work)

    return planned


def entries(database, notification):
    return database.read(lambda session: journal.of_notification(session, notification))


def test_planned_move_has_been_touched_by_nobody(database, plan):
    vmove = plan("n-1", "vm-1")

    assert entries(database, "n-1") == [
        JournalEntry(vmove_uuid=vmove.uuid, notification_uuid="n-1", instance_uuid="vm-1")
    ]
    with pytest.raises(errors.DuplicateKey):
        database.write(lambda session: journal.plan(session, vmove))


def test_entries_change_one_by_one(database, plan):
    vmove, other = plan("n-1", "vm-1"), plan("n-1", "vm-2")

    database.write(
        lambda session: journal.update(session, vmove.uuid, vm_state="active", locked=True)
    )

    found = {entry.vmove_uuid: entry for entry in entries(database, "n-1")}
    assert (found[vmove.uuid].vm_state, found[vmove.uuid].locked) == ("active", True)
    assert (found[other.uuid].vm_state, found[other.uuid].locked) == (None, False)


def test_what_is_over_goes(database, plan):
    vmove = plan("n-1", "vm-1")
    plan("n-1", "vm-2"), plan("n-2", "vm-3")

    database.write(lambda session: journal.forget(session, vmove.uuid))
    assert [entry.instance_uuid for entry in entries(database, "n-1")] == ["vm-2"]

    database.write(lambda session: journal.clear(session, "n-1"))
    assert entries(database, "n-1") == []
    assert len(entries(database, "n-2")) == 1
