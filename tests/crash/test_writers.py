"""Protects that several engines never do one piece of work twice, however they learn of it."""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.crash.site import FLOW, GRACE, Site

_ENGINES = 4
_HOSTS = {False: 12, True: 100}
_CASTS = (0, 1, 1, 3)  # lost, sent, sent, sent again and again


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Iterator[Site]:
    made = make_site("writers", _ENGINES)
    try:
        made.wait_ready()
        yield made
    finally:
        made.close()


def test_lost_and_repeated_messages_and_retries_lead_to_one_recovery(
    request: pytest.FixtureRequest, site: Site, seed: int
):
    """The periodic tasks of all engines look every two seconds, for what is older than that."""
    chance = random.Random(seed)
    hosts = _HOSTS[request.config.getoption("--full")]
    failures = [site.fail_host(2, more=number > 0) for number in range(hosts)]
    casts = [chance.choice(_CASTS) for _ in failures]

    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda told: site.report(told[0], casts=told[1]), zip(failures, casts, strict=True)
            )
        )

    statuses = [site.settled(failure, within=GRACE + FLOW + hosts) for failure in failures]
    seen = f"--seed {seed}"
    assert statuses == ["finished"] * hosts, seen
    assert [site.attempts(failure) for failure in failures] == [1] * hosts, seen
    asked = site.cloud.requests("evacuate")
    assert asked == dict.fromkeys(site.cloud.servers, 1), seen
    assert site.cloud.requests("lock") == asked, seen
    assert [site.audit(failure) for failure in failures] == [{}] * hosts, seen
    logs = "".join(engine.log.read_text() for engine in site.engines)
    ends = [logs.count(f"{failure.uuid} exits with") for failure in failures]
    assert ends == [1] * hosts, seen
