"""Protects how the moves of instances are stored, changed and found."""

from datetime import datetime

import pytest

from masakari_ng import errors
from masakari_ng.db import vmoves
from masakari_ng.db.paging import Page
from masakari_ng.db.rows import VMoveRow
from masakari_ng.domain import VMoveStatus, VMoveType


def _instances(found):
    return [vmove.instance_uuid for vmove in found]


def test_a_new_vmove_is_a_pending_evacuation(session, make_vmove):
    vmove = make_vmove("vm-1")

    assert (vmove.type, vmove.status) == (VMoveType.EVACUATION, VMoveStatus.PENDING)
    assert (vmove.start_time, vmove.end_time, vmove.dest_host) == (None, None, None)
    assert vmoves.by_uuid(session, vmove.uuid) == vmove


def test_a_change_is_stored_and_timed_only_if_it_is_one(session, make_vmove):
    vmove = make_vmove()
    start = datetime(2026, 3, 2)

    vmoves.update(session, vmove.uuid, status=VMoveStatus.PENDING)
    assert vmoves.by_uuid(session, vmove.uuid).updated_at is None

    vmoves.update(session, vmove.uuid, status=VMoveStatus.ONGOING, start_time=start)
    changed = vmoves.by_uuid(session, vmove.uuid)
    assert (changed.status, changed.start_time) == (VMoveStatus.ONGOING, start)
    assert changed.updated_at is not None


def test_an_unknown_vmove_is_not_found(session):
    for missing in (
        lambda: vmoves.by_uuid(session, "nope"),
        lambda: vmoves.update(session, "nope", message="x"),
    ):
        with pytest.raises(errors.VMoveNotFound, match="No vm move with id nope"):
            missing()


def test_type_and_status_may_be_missing(session, make_vmove, set_columns):
    vmove = make_vmove()
    set_columns(VMoveRow, vmove.id, type=None, status=None)

    found = vmoves.by_uuid(session, vmove.uuid)

    assert (found.type, found.status) == (None, None)


def test_vmoves_of_a_notification_come_last_inserted_first(session, make_vmove, set_columns):
    first, second, third = (make_vmove(name) for name in ("vm-1", "vm-2", "vm-3"))
    make_vmove("vm-4", "another")
    for vmove in (first, second, third):
        set_columns(VMoveRow, vmove.id, created_at=datetime(2026, 3, 2))
    vmoves.update(session, second.uuid, status=VMoveStatus.FAILED)

    found = vmoves.of_notification(session, "notification")
    pending = vmoves.of_notification(session, "notification", VMoveStatus.PENDING)

    assert _instances(found) == ["vm-3", "vm-2", "vm-1"]
    assert _instances(pending) == ["vm-3", "vm-1"]


@pytest.mark.parametrize(
    ("filters", "instances"),
    [
        ({}, {"vm-1", "vm-2"}),
        ({"status": "failed"}, {"vm-2"}),
        ({"status": "nope"}, set()),
        ({"type": "evacuation"}, {"vm-1", "vm-2"}),
        ({"type": "migration"}, set()),
    ],
    ids=str,
)
def test_filters(session, make_vmove, filters, instances):
    make_vmove("vm-1")
    vmoves.update(session, make_vmove("vm-2").uuid, status=VMoveStatus.FAILED)
    make_vmove("vm-3", "another")

    found = vmoves.listed(session, Page(), "notification", **filters)

    assert set(_instances(found)) == instances


def test_text_of_novas_is_fitted_to_its_columns(session, make_vmove):
    vmove = make_vmove()

    vmoves.update(session, vmove.uuid, message="\U0001f680 " + "ä" * 70_000)
    named = vmoves.create(
        session,
        notification_uuid=vmove.notification_uuid,
        instance_uuid="instance-2",
        instance_name="web \U0001f680" + "x" * 300,
        source_host="compute-1",
    )

    stored = vmoves.by_uuid(session, vmove.uuid).message
    assert stored.startswith("\ufffd ä")
    assert len(stored.encode()) <= 65_535
    assert vmoves.by_uuid(session, named.uuid).instance_name == ("web \ufffd" + "x" * 300)[:255]
