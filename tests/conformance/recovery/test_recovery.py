"""Protects what upstream's users see of a recovery: statuses, requests to Nova, messages, details.

Scenarios and expected results are data, recorded from Masakari 22.0.0; a new pair of files is a new
test. Left out of the comparison: how often a token is asked for, since tokens are reused.
"""

import json
from pathlib import Path

import pytest

from masakari_ng.demo.cloud import SimulatedCloud
from tests.conformance.recovery.scenario import Play
from tests.daemons import Daemons
from tests.servers import MariaDB

_GOLDEN = ".golden.json"
_SCENARIOS = sorted(
    path
    for path in (Path(__file__).parent / "scenarios").glob("*.json")
    if not path.name.endswith(_GOLDEN)
)


@pytest.mark.parametrize("path", _SCENARIOS, ids=lambda path: path.stem)
def test_recovery_is_what_was_recorded(
    path: Path, daemons: Daemons, cloud: SimulatedCloud, mariadb: MariaDB, synced_url: str
):
    expected = json.loads(path.with_name(path.stem + _GOLDEN).read_text())
    del expected["keystone"]
    play = Play(
        json.loads(path.read_text()),
        daemons=daemons,
        cloud=cloud,
        mariadb=mariadb,
        schema=mariadb.schema_of(synced_url),
    )

    play.run()

    assert play.result() == expected
