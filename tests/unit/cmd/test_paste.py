"""Protects that filters of one's own in api-paste.ini are not lost without a word."""

from pathlib import Path

import pytest
from oslo_config import cfg

from masakari_ng import conf as options
from masakari_ng.cmd import paste

SHIPPED = """
[composite:masakari_api]
use = call:masakari.api.urlmap:urlmap_factory
/: apiversions
/v1: masakari_api_v1

[composite:masakari_api_v1]
use = call:masakari.api.auth:pipeline_factory_v1
keystone = cors request_id authtoken keystonecontext app

[pipeline:apiversions]
pipeline = faultwrap http_proxy_to_wsgi apiversionsapp

[app:apiversionsapp]
paste.app_factory = masakari.api:factory

[filter:cors]
paste.filter_factory = oslo_middleware.cors:filter_factory
"""
OWN = "[filter:audit]\npaste.filter_factory = keystonemiddleware.audit:filter_factory\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "masakari.conf").touch()
    return tmp_path


def load(folder: Path) -> cfg.ConfigOpts:
    return options.load([], program="test", files=[str(folder / "masakari.conf")])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SHIPPED, []),
        (SHIPPED + OWN, ["filter:audit of {} (it is not used as a pipeline)"]),
        ("no section", ["{} (cannot be read: MissingSectionHeaderError)"]),
    ],
    ids=["shipped", "own filter", "broken"],
)
def test_what_is_not_there_is_named(folder: Path, text: str, expected: list[str]):
    file = folder / "api-paste.ini"
    file.write_text(text)

    named = paste.without_effect(load(folder))

    assert named == [entry.format(file) for entry in expected]


def test_the_file_need_not_be_there(folder: Path):
    assert paste.without_effect(load(folder)) == []
