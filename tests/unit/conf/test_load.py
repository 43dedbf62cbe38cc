"""Upstream's configuration files are found and read unchanged."""

import pytest

from masakari_ng import conf as options
from masakari_ng.conf import own
from masakari_ng.domain import Correction


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".masakari").mkdir()
    return tmp_path / ".masakari"


def test_reads_the_common_file_then_the_one_of_upstreams_program(home):
    (home / "masakari.conf").write_text("[DEFAULT]\nverify_interval = 7\nosapi_max_limit = 7\n")
    (home / "masakari-api.conf").write_text("[DEFAULT]\nosapi_max_limit = 8\n")

    conf = options.load([], program="masakari-ng-api")

    assert (conf.verify_interval, conf.osapi_max_limit) == (7, 8)


def test_a_folder_of_snippets_wins_over_the_files(home):
    (home / "masakari.conf").write_text("[DEFAULT]\nosapi_max_limit = 7\n")
    (home / "masakari.conf.d").mkdir()
    (home / "masakari.conf.d" / "50-limit.conf").write_text("[DEFAULT]\nosapi_max_limit = 9\n")

    conf = options.load([], program="masakari-ng-engine")

    assert conf.osapi_max_limit == 9


def test_unknown_sections_and_options_are_ignored(tmp_path):
    path = tmp_path / "masakari.conf"
    path.write_text("[DEFAULT]\nenabled_apis = masakari_api\n[no_such_group]\nkey = value\n")

    conf = options.load(["--config-file", str(path)], program="masakari-ng-engine")

    assert conf.masakari_topic == "ha_engine"


def test_an_environment_variable_wins_over_the_files(tmp_path, monkeypatch):
    path = tmp_path / "masakari.conf"
    path.write_text("[DEFAULT]\nosapi_max_limit = 7\n")
    monkeypatch.setenv("OS_DEFAULT__OSAPI_MAX_LIMIT", "5")

    conf = options.load(["--config-file", str(path)], program="masakari-ng-api")

    assert conf.osapi_max_limit == 5


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", frozenset()),
        ("retry_unlock, error_texts", {Correction.RETRY_UNLOCK, Correction.ERROR_TEXTS}),
        ("error_texts,all", frozenset(Correction)),
    ],
)
def test_corrections_are_named_or_all(value, expected, tmp_path):
    file = tmp_path / "masakari.conf"
    file.write_text(f"[masakari_ng]\ncorrections = {value}\n")

    conf = options.load([], program="masakari-ng-engine", files=[str(file)])

    assert own.corrections(conf) == expected
