"""Protects the wheel: what is installed from it migrates a database without the repository."""

import sqlite3
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]


def _run(*command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Folder of the programs of an environment with the wheel, and our libraries behind it."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ("-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder))
    _run(sys.executable, *build, cwd=_REPOSITORY)
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / "bin"
    [wheel] = folder.glob("*.whl")
    _run(str(programs / "pip"), "install", "--no-deps", "--no-index", str(wheel), cwd=folder)
    [packages] = (folder / "venv").glob("lib/python*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    return programs


def test_db_sync_runs_from_the_wheel(installed, tmp_path):
    conf = tmp_path / "masakari.conf"
    url = f"sqlite:///{tmp_path}/masakari.sqlite"
    conf.write_text(f"[database]\nconnection = {url}\n[taskflow]\nconnection = {url}\n")
    manage = (str(installed / "masakari-ng-manage"), "--config-file", str(conf), "db")

    synced = _run(*manage, "sync", cwd=tmp_path)
    version = _run(*manage, "version", cwd=tmp_path)
    where = _run(
        str(installed / "python"),
        "-c",
        "import masakari_ng; print(*masakari_ng.__path__)",
        cwd=tmp_path,
    )

    assert "Running upgrade  -> 8f848eb45d03, Initial revision" in synced
    assert version.splitlines()[-1] == "13adff5efb9a"
    assert where.startswith(str(installed.parent))
    with sqlite3.connect(tmp_path / "masakari.sqlite") as link:
        tables = {name for (name,) in link.execute("SELECT name FROM sqlite_master")}
    link.close()
    assert {"notifications", "masakari_ng_claims", "flowdetails"} <= tables


def test_the_samples_are_installed_below_the_prefix(installed):
    folder = installed.parent / "etc" / "masakari"

    assert {path.name for path in folder.iterdir()} >= {
        "masakari.conf.sample",
        "masakari-ng-recommended.conf",
        "policy.yaml.sample",
    }


def test_rules_and_dashboard_are_installed_below_the_prefix(installed):
    folder = installed.parent / "etc" / "prometheus"

    assert {path.name for path in folder.iterdir()} == {
        "masakari-ng-dashboard.json",
        "masakari-ng.rules.yml",
    }


def test_the_units_are_installed_where_systemd_looks_below_usr(installed):
    folder = installed.parent / "lib"

    assert {path.name for path in (folder / "systemd" / "system").iterdir()} == {
        "masakari-ng-api.service",
        "masakari-ng-engine.service",
    }
    assert (folder / "sysusers.d" / "masakari-ng.conf").is_file()
    assert (folder / "tmpfiles.d" / "masakari-ng.conf").is_file()
