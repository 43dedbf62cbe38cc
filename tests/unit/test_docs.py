"""Protects the guides: options that they name exist with that default, and links lead somewhere."""

import re
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from oslo_middleware import http_proxy_to_wsgi

from masakari_ng import conf as options

ROOT = Path(__file__).resolve().parents[2]
GUIDES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]
WRITTEN_OUT = {"none": None, "empty": [], "true": True, "false": False}
EMPTY_IN_CODE = ("`[database] connection`",)  # there is a default, but none for a site


def rows() -> list[tuple[str, str]]:
    """First and second cell of each row of configure.md that is about options."""
    text = (ROOT / "docs" / "configure.md").read_text()
    return re.findall(r"^\| (`\[.*?) \| (.*?) \|", text, re.MULTILINE)


def default_of(group: str, name: str, conf: cfg.ConfigOpts) -> Any:
    return getattr(conf if group == "DEFAULT" else conf[group], name)


@pytest.mark.parametrize(("cell", "stated"), rows(), ids=lambda cell: cell.split(",")[0])
def test_options_have_the_default_that_the_guide_states(cell, stated):
    conf = options.load([], program="masakari-ng-engine", files=[])
    conf.register_opts(http_proxy_to_wsgi.OPTS, group="oslo_middleware")
    group, named = "", []
    for found, name in re.findall(r"`(?:\[(\w+)\] ?)?(\w*)`", cell):
        group = found or group
        if name and cell not in EMPTY_IN_CODE:
            named.append(default_of(group, name, conf))
    values = [word.strip("`") for word in stated.split(", ")]

    assert group
    for value, default in zip(values, named, strict=False):
        assert default == WRITTEN_OUT.get(value, type(default)(value) if default else value)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_links_between_files_lead_somewhere(guide):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", guide.read_text())

    assert [link for link in links if not (guide.parent / link).exists()] == []
