"""Protects that a masakari.conf of upstream's means the same here, or says that it does not."""

import json
import logging
import textwrap
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from masakari_ng import conf as options
from masakari_ng.cmd import compose
from masakari_ng.conf import without_effect

UPSTREAM = json.loads((Path(__file__).parent / "data" / "options.json").read_text())
# In upstream's sample, but of a layer that its api-paste.ini does not have.
UNKNOWN = {("oslo_middleware", "http_basic_auth_user_file")}
# Values that upstream's api-paste.ini gives.
IN_PASTE_FILE = {
    ("healthcheck", "backends"): ["disable_by_file"],
    ("healthcheck", "disable_by_file_path"): "/etc/masakari/healthcheck_disable",
}
KINDS = {
    "HostAddress": "host address",
    "String": "string",
    "str": "string",
    "Integer": "integer",
    "Float": "floating point",
    "Boolean": "boolean",
    "List": "list",
    "Dict": "dict",
    "URI": "uri",
}
FLAGS = {"mutable": "mutable", "secret": "secret", "for_removal": "deprecated_for_removal"}


@pytest.fixture
def registered(conf: cfg.ConfigOpts) -> cfg.ConfigOpts:
    """All options: those of the layers around the API as well, and of all health checks."""
    conf.set_override("auth_strategy", "keystone")
    compose.build_api(conf).close()
    backends = ["disable_by_files_ports", "enable_by_files"]
    conf.set_override("backends", backends, "healthcheck")
    compose.build_api(conf).close()
    return conf


def facts_of(group: str, option: cfg.Opt) -> dict[str, Any]:
    # keystoneauth1 gives a plain class.
    kind = getattr(option.type, "__name__", type(option.type).__name__)
    found = {"type": "multid" if option.multi else KINDS[kind], "default": default_of(option)}
    for name in ("min", "max", "choices"):
        limit = getattr(option.type, name, None)
        if limit is not None:
            found[name] = list(limit) if name == "choices" else limit
    old = {f"{old.group or group}/{old.name}".replace("-", "_") for old in option.deprecated_opts}
    flags = {name: True for name, attribute in FLAGS.items() if getattr(option, attribute)}
    dest = {} if option.dest == option.name else {"dest": option.dest}
    return found | ({"old_names": sorted(old)} if old else {}) | flags | dest


def default_of(option: cfg.Opt) -> Any:
    if option.sample_default is not None:
        return option.sample_default
    given = option.type(option.default) if isinstance(option.default, str) else option.default
    return json.loads(json.dumps(given))


def expected_of(group: str, name: str, entry: dict[str, Any]) -> dict[str, Any]:
    expected = {key: value for key, value in entry.items() if key not in {"from", "effective"}}
    default = entry.get("effective", entry["default"])
    expected["default"] = IN_PASTE_FILE.get((group, name), default)
    if entry.get("old_names") == [f"{group}/{name}"]:
        del expected["old_names"]  # its own name
    return expected


def test_each_option_has_upstreams_type_default_limits_names_and_flags(registered):
    differences = {}
    for group, entries in UPSTREAM.items():
        for name, entry in entries.items():
            if group in without_effect.SECTIONS or (group, name) in UNKNOWN:
                continue
            where = None if group == "DEFAULT" else group
            found = facts_of(group, registered._get_opt_info(name.replace("-", "_"), where)["opt"])
            expected = expected_of(group, name, entry)
            differences[group, name] = {
                fact: (expected.get(fact), found.get(fact))
                for fact in expected | found
                if expected.get(fact) != found.get(fact)
            }

    assert {option: facts for option, facts in differences.items() if facts} == {}


def load(tmp_path: Path, text: str) -> cfg.ConfigOpts:
    file = tmp_path / "masakari.conf"
    file.write_text(textwrap.dedent(text))
    return options.load([], program="masakari-ng-engine", files=[str(file)])


def test_what_is_set_without_effect_is_said_once(tmp_path, caplog):
    conf = load(
        tmp_path,
        """
        [DEFAULT]
        monkey_patch = true
        verify_interval = 2
        enabled_apis = masakari_api
        publish_errors = true
        [database]
        use_db_reconnect = true
        [oslo_messaging_rabbit]
        conn_pool_ttl = 60
        [oslo_messaging_kafka]
        consumer_group = masakari
        """,
    )

    options.announce(conf, ["filter:audit"])

    assert caplog.messages == [
        "Set, but without effect: [DEFAULT] monkey_patch (functions are not decorated);"
        " [oslo_messaging_rabbit] conn_pool_ttl (a process keeps the few connections that it"
        " needs); [database] use_db_reconnect (an engine repeats for ten minutes what the database"
        " did not answer); [DEFAULT] publish_errors (errors are not sent as messages);"
        " [oslo_messaging_kafka] (the message bus is RabbitMQ); filter:audit"
    ]


def test_a_wrong_value_is_refused_though_it_would_have_no_effect(tmp_path):
    conf = load(tmp_path, "[DEFAULT]\nnotification_delay_max = -1\n")

    with pytest.raises(cfg.Error, match="Should be greater than or equal to 0"):
        options.announce(conf)


def test_nothing_is_said_where_all_has_effect(tmp_path, caplog):
    options.announce(load(tmp_path, "[DEFAULT]\nverify_interval = 2\n"))

    assert caplog.messages == []


def test_all_options_are_logged_at_debug_without_secrets(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)

    options.announce(load(tmp_path, "[database]\nconnection = mysql+pymysql://m:secret@db/m\n"))

    assert "database.connection            = ****" in caplog.text
    assert "secret@" not in caplog.text


def test_they_are_not_logged_where_nobody_wants_it(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)

    options.announce(load(tmp_path, "[DEFAULT]\nlog_options = false\n"))

    assert caplog.messages == []


def test_operators_can_read_what_has_no_effect():
    document = (Path(__file__).parents[3] / "docs" / "migrating.md").read_text()
    rows = [line.split(" | ") for line in document.splitlines() if line.startswith("| `[")]
    told = {
        (section.strip("| `[]"), name.strip("`")): reason.removesuffix(" |")
        for section, names, reason in (row for row in rows if len(row) == 3)
        for name in names.split(", ")
    }
    reasons = {
        (group or "DEFAULT", name): why for (group, name), why in without_effect.reasons().items()
    }
    sections = {(section, "all"): why for section, why in without_effect.SECTIONS.items()}

    assert {key: told.get(key) for key in reasons | sections} == reasons | sections
