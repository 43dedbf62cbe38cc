"""Protects the doctor where there is nothing to look at yet, and secrets in unreadable options."""

import json

import pytest

from masakari_ng.cmd import demo


@pytest.fixture
def examine(tmp_path, capsys):
    def run(text, *options):
        path = tmp_path / "masakari.conf"
        path.write_text(text)
        code = demo.main(["doctor", "--config-file", str(path), *options])
        return code, capsys.readouterr()

    return run


def test_without_its_file_it_says_so(tmp_path, capsys):
    path = str(tmp_path / "nowhere.conf")

    assert demo.main(["doctor", "--config-file", path, "--json"]) == 2

    ((found,), err) = (json.loads((said := capsys.readouterr()).out)["checks"], said.err)
    assert (found["check"], found["result"], err) == ("configuration", "failure", "")
    assert path in found["found"]


def test_the_table_tells_what_to_do_and_makes_no_database(examine, tmp_path):
    file = tmp_path / "masakari.sqlite"

    code, said = examine(f"[database]\nconnection = sqlite:///{file}\n")

    assert code == 2
    assert "auth_type is not set" in said.out
    assert "-> Correct os_privileged_user_..." in said.out
    assert "not checked  engines" in said.out
    assert max(map(len, said.out.splitlines())) <= 80
    assert not file.exists()


@pytest.mark.parametrize(
    "options",
    [
        "[DEFAULT]\ntransport_url = rabbit://masakari:s3cret/@host\n",
        "[database]\nconnection = mysql+pymysql:masakari:s3cret@host\n",
        "[taskflow]\nconnection = mysql+pymysql:masakari:s3cret@host\n",
    ],
    ids=["broker", "database", "workflows"],
)
def test_unreadable_urls_do_not_show_their_password(examine, options):
    code, said = examine(options)

    assert code == 2
    assert "s3cret" not in said.out + said.err
