"""What is done to recoveries: signals at every point and at random moments, outages."""

import itertools
import random
import time
from collections.abc import Callable, Iterator

from tests.crash.plays import Case
from tests.crash.points import NOVA_POINTS, ROW_POINTS, SHORT, NovaPoint, Point
from tests.crash.proxy import MODES
from tests.crash.site import CLAIM_TIMEOUT, FLOW, GRACE, Failure, Site
from tests.servers import eventually

SIGNALS = ("kill", "term", "stop")
_INSTANCES = 10
_REQUESTS = 60  # to Nova, of a recovery of so many instances, at least
_RANDOM = {False: 4, True: 200}
_FAULTS = {
    "keystone": {"path": "^/identity"},
    "nova": {"path": "^/compute"},
}
_HANGS = 60.0
_SHORT_OUTAGES = {
    "database refused 15",
    "database hanging 15",
    "broker refused 1",
    "keystone refused 15",
    "nova 5xx 15",
    "nova hanging 15",
}
_AT = {"evacuated": {"action": "evacuate"}, "disabled": {"method": "PUT", "path": "/os-services/"}}


def all_cases(*, full: bool) -> Iterator[tuple[str, Case]]:
    """Name and case; the long ones first, so that sites are idle for short at the end."""
    named = itertools.chain(
        _outages(full=full), _signals_at_points(full=full), _random_moments(full=full)
    )
    for name, case in named:
        yield name.replace(" ", "-"), case


def _signals_at_points(*, full: bool) -> Iterator[tuple[str, Case]]:
    for how in reversed(SIGNALS):
        for point in (*NOVA_POINTS, *ROW_POINTS):
            if full or point.name in SHORT[how]:
                yield f"{how} at {point.name}", _signal_at(how, point)


def _signal_at(how: str, point: Point) -> Case:
    def case(site: Site, _chance: random.Random) -> None:
        reserved = "reserved" in point.name
        _struck(site, site.fail_host(reserved=reserved), how, point)

    return case


def _random_moments(*, full: bool) -> Iterator[tuple[str, Case]]:
    for number in range(_RANDOM[full]):
        yield f"random moment {number}", _at_random


def _at_random(site: Site, chance: random.Random) -> None:
    how, request = chance.choice(SIGNALS), chance.randrange(_REQUESTS)
    lost = chance.random() < 0.5
    point = NovaPoint(f"request {request}", {"path": "^/compute/"}, skip=request, lost=lost)
    _struck(site, site.fail_host(_INSTANCES), how, point)


def _struck(site: Site, failure: Failure, how: str, point: Point) -> None:
    """Every recovery ends well, whatever happens to one of two engines."""
    with point.reached(site):
        site.report(failure)
        point.wait(site)
        worker = site.worker(failure)
    site.strike(worker, how)
    if how == "kill":
        worker.restart(wait=False)
    status = site.settled(failure)
    # A request that was lost may have failed the recovery before the engine stopped.
    lost = how == "term" and isinstance(point, NovaPoint) and point.lost
    _clean(site, failure, status, {"finished", "failed"} if lost else {"finished"})
    if how == "term":
        eventually(lambda: not worker.process.alive, timeout=GRACE)
        assert worker.process.exit_code == 0


def _clean(site: Site, failure: Failure, status: str, allowed: set[str]) -> None:
    wrong = site.audit(failure)
    assert not wrong, wrong
    assert status in allowed


def _outages(*, full: bool) -> Iterator[tuple[str, Case]]:
    for what in ("database", "broker", "keystone", "nova"):
        modes = MODES if what in {"database", "broker"} else ("refused", "hanging", "5xx", "slow")
        for mode in modes:
            for seconds in (15, 1):
                name = f"{what} {mode} {seconds}"
                for at in _AT:
                    if full or (name in _SHORT_OUTAGES and at == "evacuated"):
                        yield f"{name} s at {at}", _outage(what, mode, seconds, at)


def _outage(what: str, mode: str, seconds: float, at: str) -> Case:
    def case(site: Site, _chance: random.Random) -> None:
        failure = site.fail_host(4)
        site.report(failure)
        seen = site.cloud.matches
        eventually(
            lambda: any(seen(_AT[at], frame) for frame in list(site.cloud.frames)), timeout=FLOW
        )
        mend = _spoil(site, what, mode)
        time.sleep(seconds)  # the outage itself
        mend()
        # Time to find out, to repeat with back-off, and for what was given up to be unlocked.
        within = 2 * CLAIM_TIMEOUT + GRACE + FLOW + 60
        status = site.settled(failure, within=within)
        _clean(site, failure, status, {"finished", "failed"})
        if what in {"database", "broker"}:
            assert status == "finished"

    return case


def _spoil(site: Site, what: str, mode: str) -> Callable[[], None]:
    """Begin an outage; gives what ends it."""
    if what in site.proxies:
        site.proxies[what].spoil(mode)
        return site.proxies[what].mend
    do = {
        "refused": {"drop": True},
        "hanging": {"delay": _HANGS, "drop": True},
        "5xx": {"status": 503},
        "slow": {"delay": 1.0},
    }[mode]
    site.cloud.arm_faults([{"match": _FAULTS[what], "do": do}])
    if what == "keystone":
        site.cloud.revoke_tokens()
    return lambda: site.cloud.arm_faults([])
