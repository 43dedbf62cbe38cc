"""Protects that the real services run on the stage, and that nothing of it is left afterwards."""

import logging
import threading

import pytest

from masakari_ng import errors
from masakari_ng.demo import stage


def test_services_answer_and_end(tmp_path):
    threads, handlers = set(threading.enumerate()), list(logging.getLogger().handlers)

    with stage.opened(tmp_path) as ready:
        ready.cloud.add_service("node-1")
        body = {"name": "rack", "recovery_method": "auto", "service_type": "COMPUTE"}
        segment = ready.rest.post("/segments", {"segment": body})["segment"]
        host = {"name": "node-2", "type": "COMPUTE", "control_attributes": "SSH"}
        with pytest.raises(errors.DemoFailure, match=r"400 .*node-2 could not be found"):
            ready.rest.post(f"/segments/{segment['uuid']}/hosts", {"host": host})

    assert set(threading.enumerate()) == threads
    assert logging.getLogger().handlers == handlers
    assert "POST /v1/segments" in (tmp_path / stage.LOG_FILE).read_text()
    with pytest.raises(errors.DemoFailure, match=r"(?i)refused"):
        ready.rest.get("/segments")
