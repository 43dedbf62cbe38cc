"""Protects the decision what a report about a host means, before anything is done."""

import pytest

from masakari_ng import errors
from masakari_ng.db import hosts
from masakari_ng.domain import NotificationStatus, RequestContext
from masakari_ng.engine.host_failure import HostFailure

IGNORED, FINISHED = NotificationStatus.IGNORED, NotificationStatus.FINISHED


class Moved(list):
    """Stands for the recovery: notes the hosts that it was to recover."""

    def __call__(self, context, host):
        self.append(host)


@pytest.fixture
def begin(site):
    """What a handler is given for a payload."""

    def begun(payload):
        notification = site.report(payload=payload)
        claim = site.take(notification, "engine-a")
        asked = RequestContext(request_id="req-1")
        return site.recovery_context(asked, claim, notification, False)

    return begun


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"event": "STOPPED"}, (IGNORED, "ignored as host_status is not provided.")),
        ({"event": "STOPPED", "host_status": "unknown"}, (IGNORED, "host_status is 'UNKNOWN'")),
        ({"event": "STARTED", "host_status": "UNKNOWN"}, (IGNORED, "host_status is 'UNKNOWN'")),
        ({"event": "started", "host_status": "NORMAL"}, (FINISHED, "has started")),
        ({"event": "REBOOTED", "host_status": "normal"}, (IGNORED, "its event is 'REBOOTED'")),
        ({"host_status": "NORMAL"}, (IGNORED, "its event is ''")),
    ],
)
def test_nothing_is_touched_unless_the_host_is_down(site, begin, caplog, payload, expected):
    moved = Moved()
    caplog.set_level("INFO")

    status = HostFailure(moved)(begin(payload), site.host)

    assert moved == []
    assert status is expected[0]
    assert expected[1] in caplog.text
    host = site.database.read(lambda session: hosts.by_uuid(session, site.host.uuid))
    assert not host.on_maintenance


@pytest.mark.parametrize("reserved", [False, True])
@pytest.mark.parametrize("cluster_status", ["ONLINE", "OFFLINE"])
def test_host_that_is_down_goes_on_maintenance_first(site, begin, reserved, cluster_status):
    failed = site.add_host("compute-2", reserved=reserved)
    moved = Moved()
    payload = {"event": "stopped", "host_status": "normal", "cluster_status": cluster_status}

    assert HostFailure(moved)(begin(payload), failed) is FINISHED

    (host,) = moved
    assert (host.uuid, host.on_maintenance, host.reserved) == (failed.uuid, True, False)
    stored = site.database.read(lambda session: hosts.by_uuid(session, failed.uuid))
    assert stored == host


def test_nothing_is_written_without_the_claim(site, begin):
    context, moved = begin({"event": "STOPPED", "host_status": "NORMAL"}), Moved()
    site.manager(Moved()).close()  # hands over what this engine holds

    with pytest.raises(errors.ClaimLost):
        HostFailure(moved)(context, site.host)

    assert moved == []
    host = site.database.read(lambda session: hosts.by_uuid(session, site.host.uuid))
    assert not host.on_maintenance
