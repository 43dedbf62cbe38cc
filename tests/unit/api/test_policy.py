"""Protects who may do what: upstream's rules and defaults, and files that override them."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import falcon
import falcon.testing
import pytest

from masakari_ng import errors
from masakari_ng.api import policy
from masakari_ng.domain import RequestContext

CALLER = RequestContext(request_id="req-1", user_id="u", project_id="p")


@pytest.fixture
def policy_file(conf, tmp_path: Path) -> Path:
    policy.Policy(conf)  # registers the option
    path = tmp_path / "policy.yaml"
    conf.set_override("policy_file", str(path), "oslo_policy")
    return path


def request_of(caller: RequestContext) -> falcon.Request:
    request = falcon.testing.create_req()
    request.context.caller = caller
    return request


def test_upstreams_rules_are_all_there():
    rules = {rule.name: rule.check_str for rule in policy.list_rules()}

    assert len(rules) == 27
    assert rules.pop("context_is_admin") == "role:admin"
    assert rules.pop("admin_or_owner") == "is_admin:True or project_id:%(project_id)s"
    assert rules.pop("admin_api") == "is_admin:True"
    assert [name for name, check in rules.items() if check == "@"] == [
        "os_masakari_api:versions:index",
        "os_masakari_api:versions:discoverable",
    ]
    assert set(rules.values()) == {"@", "rule:admin_api"}


@pytest.mark.parametrize(
    ("roles", "expected"),
    [(("admin",), True), (("Admin",), True), (("reader", "member"), False), ((), False)],
)
def test_administrators_have_the_role(conf, roles: tuple[str, ...], expected: bool):
    assert policy.Policy(conf).is_admin(replace(CALLER, roles=roles)) is expected


def test_the_tools_of_oslo_policy_see_the_rules_and_the_files(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".masakari"
    folder.mkdir()
    (folder / "masakari.conf").touch()
    (folder / "policy.yaml").write_text('"context_is_admin": "role:boss"\n')
    program = Path(sys.executable).parent / "oslopolicy-policy-generator"

    effective = subprocess.check_output([program, "--namespace", "masakari"], text=True)

    assert '"context_is_admin": "role:boss"' in effective
    assert '"os_masakari_api:vmoves:index": "rule:admin_api"' in effective


def test_refusal_names_the_rule(conf):
    rules = policy.Policy(conf)
    rule = "os_masakari_api:segments:index"

    rules(request_of(replace(CALLER, is_admin=True)), rule)
    with pytest.raises(errors.Forbidden, match=f"Policy doesn't allow {rule} to be performed."):
        rules(request_of(CALLER), rule)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("rule:admin_or_owner", True),
        ("role:reader", True),
        ("role:auditor", False),
        ("is_admin:false", True),
        ("is_admin:TRUE", False),
        ("project_id:%(project_id)s", True),
    ],
)
def test_a_file_overrides_a_rule(conf, policy_file: Path, override: str, expected: bool):
    policy_file.write_text(f'"os_masakari_api:segments:index": "{override}"\n')
    request = request_of(replace(CALLER, roles=("reader",)))

    assert policy.Policy(conf).allows(request, "os_masakari_api:segments:index") is expected


def test_a_broken_file_is_an_error_until_it_is_mended(conf, policy_file: Path):
    policy_file.write_text("{")
    rules = policy.Policy(conf)

    with pytest.raises(ValueError, match="while parsing"):
        rules.is_admin(CALLER)
    policy_file.write_text('"context_is_admin": "@"')

    assert rules.is_admin(CALLER)
