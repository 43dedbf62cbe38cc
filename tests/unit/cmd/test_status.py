"""Protects what masakari-ng-status says about the policy file, and its exit codes."""

import json

import pytest

from masakari_ng.cmd import status


@pytest.fixture
def run(tmp_path, capsys):
    """Runs the check with a policy file of this name and content, if any."""

    def call(*arguments, name="policy.yaml", content=None):
        conf = tmp_path / "masakari.conf"
        conf.write_text(f"[oslo_policy]\npolicy_file = {name}\n")
        if content is not None:
            (tmp_path / name).write_text(content)
        return status.main(["--config-file", str(conf), *arguments]), capsys.readouterr().out

    return call


@pytest.mark.parametrize("content", [None, 'admin_api: "role:admin"\n', ""])
def test_a_yaml_file_or_none_is_ready(run, content):
    code, output = run("upgrade", "check", content=content)

    assert code == 0
    assert output.splitlines() == [
        "+-------------------------------------------+",
        "| Upgrade Check Results                     |",
        "+-------------------------------------------+",
        "| Check: Policy File JSON to YAML Migration |",
        "| Result: Success                           |",
        "| Details: None                             |",
        "+-------------------------------------------+",
    ]


def test_a_json_file_is_a_failure_whatever_its_name(run):
    code, output = run("upgrade", "check", content='{"admin_api": "role:admin"}')

    assert code == 2
    assert output.splitlines()[3:] == [
        "| Check: Policy File JSON to YAML Migration                            |",
        "| Result: Failure                                                      |",
        "| Details: Your policy file is JSON-formatted which is deprecated. You |",
        "|   need to switch to YAML-formatted file. Use the                     |",
        "|   ``oslopolicy-convert-json-to-yaml`` tool to convert the            |",
        "|   existing JSON-formatted files to YAML in a backwards-              |",
        "|   compatible manner: https://docs.openstack.org/oslo.policy/         |",
        "|   latest/cli/oslopolicy-convert-json-to-yaml.html.                   |",
        "+----------------------------------------------------------------------+",
    ]


def test_json_output_is_one_line(run):
    code, output = run("upgrade", "check", "--json", content="{}")

    assert code == 2
    [check] = json.loads(output)["checks"]
    assert (check["check"], check["result"]) == ("Policy File JSON to YAML Migration", 2)
    assert check["details"].startswith("Your policy file is JSON-formatted")


def test_a_missing_configuration_is_told(capsys):
    assert status.main(["--config-file", "/no/x.conf", "upgrade", "check"]) == 1
    assert "/no/x.conf" in capsys.readouterr().err
