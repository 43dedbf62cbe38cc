"""Protects that a lock excludes others while its service works, and else stops nobody."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from masakari_ng import errors
from masakari_ng.coordination import Locks


def enter(locks: Locks, seen: list[str], what: str) -> None:
    with locks.held("compute-1"):
        seen.append(what)


def test_others_wait_until_it_is_given_back(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    first, second = Locks(f"file://{tmp_path}"), Locks(f"file://{tmp_path}")
    seen: list[str] = []

    with ThreadPoolExecutor(1) as pool:
        with first.held("compute-1"), second.held("compute-2"):
            waiting = pool.submit(enter, second, seen, "second")
            seen.append("first")
        waiting.result()

    assert seen == ["first", "second"]
    assert caplog.text == ""
    first.close()
    second.close()


def test_who_has_waited_long_enough_goes_on_without_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    seen: list[str] = []

    with Locks(f"file://{tmp_path}").held("compute-1"):
        enter(Locks(f"file://{tmp_path}", patience=0.1), seen, "second")

    assert seen == ["second"]
    assert "Going on without the lock compute-1: WaitTimeout" in caplog.text


def test_a_service_that_is_away_is_asked_again_by_the_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder = tmp_path / "locks"
    folder.touch()  # a file, so that no lock can be made below it
    locks = Locks(f"file://{folder}")
    seen: list[str] = []

    enter(locks, seen, "without")
    assert "Going on without the lock compute-1: ToozConnectionError" in caplog.text
    folder.unlink()
    caplog.clear()
    enter(locks, seen, "with")

    assert seen == ["without", "with"]
    assert caplog.text == ""


def test_what_is_raised_under_a_lock_gives_it_back(tmp_path: Path):
    locks = Locks(f"file://{tmp_path}")

    with pytest.raises(errors.HostOnMaintenance), locks.held("compute-1"):
        raise errors.HostOnMaintenance("compute-1", "VM")

    with ThreadPoolExecutor(1) as pool:
        pool.submit(enter, locks, [], "next").result(timeout=3)


def test_a_service_that_nobody_knows_is_refused():
    with pytest.raises(errors.ConfigurationError, match=r"backend_url: No 'tooz\.backends'"):
        Locks("carrier://pigeon:secret@roof")


def test_nothing_is_left_running(tmp_path: Path):
    before = threading.active_count()
    locks = Locks(f"file://{tmp_path}")
    enter(locks, [], "first")

    locks.close()

    assert threading.active_count() == before
