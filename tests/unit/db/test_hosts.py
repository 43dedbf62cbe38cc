"""Protects how hosts are stored, found, changed, deleted and listed."""

import pytest

from masakari_ng import errors
from masakari_ng.db import hosts
from masakari_ng.db.paging import Page
from masakari_ng.db.rows import HostRow


def _names(found):
    return {host.name for host in found}


def test_a_host_comes_with_its_segment(session, make_segment, make_host):
    segment = make_segment("one", description="text")
    host = make_host("compute-1", segment, reserved=True, control_attributes="IPMI")

    assert host.segment == segment
    assert host.failover_segment_id == segment.uuid
    assert (host.reserved, host.on_maintenance, host.control_attributes) == (True, False, "IPMI")
    assert host == hosts.by_uuid(session, host.uuid) == hosts.by_name(session, "compute-1")
    assert hosts.listed(session, Page(), segment) == [host]


def test_flags_that_another_program_left_out_are_false(session, make_host, set_columns):
    host = make_host(reserved=True)
    set_columns(HostRow, host.id, reserved=None, on_maintenance=None)

    found = hosts.by_uuid(session, host.uuid)

    assert (found.reserved, found.on_maintenance) == (False, False)


def test_names_are_unique_over_all_segments_until_deleted(session, make_host):
    host, other = make_host("taken"), make_host("other")

    with pytest.raises(errors.HostExists, match="with name taken already exists"):
        make_host("taken", other.segment)
    with pytest.raises(errors.HostExists, match="with name taken already exists"):
        hosts.update(session, other.uuid, {"name": "taken", "type": "X"})

    hosts.delete(session, host.uuid)
    assert hosts.update(session, other.uuid, {"name": "taken"}).name == "taken"


def test_not_found_says_what_was_asked_for(session, make_segment, make_host):
    host, elsewhere = make_host("gone"), make_segment("elsewhere")

    with pytest.raises(errors.HostNotFoundUnderSegment, match=f"'{host.uuid}' .*{elsewhere.uuid}"):
        hosts.in_segment(session, elsewhere.uuid, host.uuid)
    assert hosts.in_segment(session, host.failover_segment_id, host.uuid) == host

    hosts.delete(session, host.uuid)

    for missing in (
        lambda: hosts.by_uuid(session, host.uuid),
        lambda: hosts.update(session, host.uuid, {"type": "X"}),
        lambda: hosts.delete(session, host.uuid),
    ):
        with pytest.raises(errors.HostNotFound, match=f"No host with id {host.uuid}."):
            missing()
    with pytest.raises(errors.HostNotFoundByName, match="Host with name gone could not be found"):
        hosts.by_name(session, "gone")
    with pytest.raises(errors.HostNotFoundUnderSegment):
        hosts.in_segment(session, host.failover_segment_id, host.uuid)


def test_only_a_real_change_sets_the_time(session, make_host):
    host = make_host()

    assert hosts.update(session, host.uuid, {"reserved": False}).updated_at is None

    changed = hosts.update(session, host.uuid, {"on_maintenance": True})
    assert changed.on_maintenance
    assert changed.updated_at is not None


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, {"a", "b", "c"}),
        ({"type": "X"}, {"c"}),
        ({"type": "nope"}, set()),
        ({"reserved": True}, {"b"}),
        ({"reserved": False}, {"a", "c"}),
        ({"on_maintenance": True}, {"c"}),
        ({"on_maintenance": False, "reserved": False}, {"a"}),
    ],
    ids=str,
)
def test_filters(session, make_segment, make_host, filters, names):
    segment = make_segment()
    make_host("a", segment)
    make_host("b", segment, reserved=True)
    make_host("c", segment, type="X", on_maintenance=True)
    hosts.delete(session, make_host("d", segment).uuid)
    make_host("e")

    assert _names(hosts.listed(session, Page(), segment, **filters)) == names
