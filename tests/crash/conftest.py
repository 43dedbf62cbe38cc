"""Options of the crash suite, and the plays that all its tests wait for."""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from tests.crash.cases import all_cases
from tests.crash.plays import Plays, Results
from tests.crash.site import Site
from tests.servers import MariaDB, RabbitMQ

_SITES = 6  # most of a play is waiting


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("crash")
    group.addoption("--full", action="store_true", help="every point and outage, not a spread")
    group.addoption("--seed", type=int, help="of all chance; shown by a failure")
    group.addoption("--results", type=Path, help="file of passed cases, which are not repeated")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        full = metafunc.config.getoption("--full")
        metafunc.parametrize("case", [name for name, _ in all_cases(full=full)])


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    given = request.config.getoption("--seed")
    return random.randrange(1_000_000) if given is None else given


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest) -> Results:
    return Results(request.config.getoption("--results"))


@pytest.fixture(scope="session")
def make_site(
    mariadb: MariaDB,
    synced_template: str,
    rabbitmq: RabbitMQ,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., Site]:
    """Builds a site with this name and number of engines."""
    folder = tmp_path_factory.mktemp("crash")
    return lambda name, engines=2: Site(
        folder / str(name), mariadb, synced_template, rabbitmq, engines
    )


@pytest.fixture(scope="session")
def played(
    request: pytest.FixtureRequest, make_site: Callable[..., Site], seed: int, results: Results
) -> Iterator[dict[str, Future[None]]]:
    """The cases of this run, all of them begun, by name."""
    chosen = {
        item.callspec.params["case"]
        for item in request.session.items
        if "played" in item.fixturenames
    }
    cases = [
        (name, case)
        for name, case in all_cases(full=request.config.getoption("--full"))
        if name in chosen and not results.has(name)
    ]
    plays = Plays(make_site, max(1, min(_SITES, len(cases))), seed, results)
    yield plays.begin(cases)
    plays.close()
