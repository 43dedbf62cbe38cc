"""Protects the files under etc/masakari: they are what the code gives, and can be read."""

import subprocess
import sys
from pathlib import Path

import pytest

from masakari_ng import conf as options
from masakari_ng.conf import own
from masakari_ng.domain import Correction

FOLDER = Path(__file__).resolve().parents[3] / "etc" / "masakari"
PROGRAMS = Path(sys.executable).parent


@pytest.mark.parametrize(
    ("program", "settings", "sample", "environment"),
    [
        (
            "oslo-config-generator",
            "masakari-config-generator.conf",
            "masakari.conf.sample",
            "genconfig",
        ),
        (
            "oslopolicy-sample-generator",
            "masakari-policy-generator.conf",
            "policy.yaml.sample",
            "genpolicy",
        ),
    ],
    ids=["options", "policy"],
)
def test_samples_are_what_the_code_gives(tmp_path, program, settings, sample, environment):
    output = tmp_path / sample

    subprocess.run(
        [PROGRAMS / program, "--config-file", FOLDER / settings, "--output-file", output],
        check=True,
    )

    committed = (FOLDER / sample).read_text()
    assert output.read_text() == committed, f"run `tox -e {environment}`"


def test_the_recommended_settings_can_be_read_and_mend_everything():
    file = FOLDER / "masakari-ng-recommended.conf"

    conf = options.load([], program="masakari-ng-engine", files=[str(file)])

    assert own.corrections(conf) == frozenset(Correction)
