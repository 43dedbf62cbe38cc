"""Protects the command line of masakari-ng-manage: output and exit codes."""

import sqlite3

import pytest

from masakari_ng.cmd import manage

# oslo.log says so where the suite runs on green threads.
pytestmark = pytest.mark.filterwarnings("ignore:Eventlet support is deprecated:DeprecationWarning")


@pytest.fixture
def run(tmp_path, capsys):
    """Runs the program with a configuration file; gives exit code, output and errors."""
    path = tmp_path / "masakari.conf"
    url = f"sqlite:///{tmp_path}/masakari.sqlite"

    def call(*arguments, taskflow=url, driver="taskflow_driver"):
        taskflow_line = f"connection = {taskflow}\n" if taskflow else ""
        path.write_text(
            f"[DEFAULT]\nnotification_driver = {driver}\n[database]\nconnection = {url}\n"
            f"[taskflow]\n{taskflow_line}"
        )
        try:
            code = manage.main(["--config-file", str(path), *arguments])
        except SystemExit as ended:
            code = ended.code
        return code, *capsys.readouterr()

    return call


def test_without_arguments_it_says_what_there_is(capsys):
    assert manage.main([]) == 2

    shown = capsys.readouterr().out
    assert shown.startswith("\nOpenStack masakari version: ")
    assert shown.endswith(" category action [<args>]\nAvailable categories:\n\tdb\n")


def test_sync_makes_the_tables_and_version_tells_the_revision(run, tmp_path):
    code, output, _ = run("db", "version")
    assert (code, output.splitlines()[-1]) == (0, "None")

    assert run("db", "sync")[0] == 0

    code, output, _ = run("db", "version")
    assert (code, output.splitlines()[-1]) == (0, "13adff5efb9a")


def test_purge_tells_what_it_removed(run):
    run("db", "sync")

    code, output, _ = run("db", "purge", "--age_in_days", "1", "--max_rows", "5")

    assert code == 0
    assert "Purging deleted rows older than 1 day(s) from table hosts" in output
    assert "Total deleted rows are 0" in output


def test_a_refusal_is_one_line_and_exit_code_1(run, tmp_path):
    with sqlite3.connect(tmp_path / "masakari.sqlite") as link:
        link.execute("CREATE TABLE migrate_version (version INT)")
        link.execute("INSERT INTO migrate_version VALUES (6)")
    link.close()

    code, output, _ = run("db", "sync")

    assert code == 1
    assert "Your database is at version 006; we only support upgrading" in output


def test_an_unknown_legacy_version_goes_on_by_force(run, tmp_path, monkeypatch):
    run("db", "sync")
    with sqlite3.connect(tmp_path / "masakari.sqlite") as link:
        link.execute("DELETE FROM masakari_alembic_version")
        for column in ("failover_segment_uuid", "message"):
            link.execute(f"ALTER TABLE notifications DROP COLUMN {column}")
        link.execute("CREATE TABLE migrate_version (version INT)")
        link.execute("INSERT INTO migrate_version VALUES (9)")
    link.close()
    assert run("db", "sync")[0] == 1

    monkeypatch.setenv("FORCE_MASAKARI_DB_SYNC", "")

    assert run("db", "sync")[0] == 0


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"taskflow": None}, "[taskflow] connection should be configured to use this driver."),
        ({"driver": "nothing"}, "No 'masakari.driver' driver found, looking for 'nothing'"),
        ({"driver": ""}, "Notification driver option required, but not specified"),
    ],
)
def test_without_a_backend_it_fails_after_the_other_tables(run, settings, text):
    code, output, _ = run("db", "sync", **settings)

    assert code == 1
    assert text in output
    assert run("db", "version")[1].splitlines()[-1] == "13adff5efb9a"


@pytest.mark.parametrize(
    ("taskflow", "asked"), [("sqlite:////flows", "sqlite:////flows"), (None, None)]
)
def test_the_driver_of_another_package_upgrades_its_backend_itself(run, install, taskflow, asked):
    folder = install("[masakari.driver]\nsomebodys = somebodys_driver:It\n")
    (folder / "somebodys_driver.py").write_text(
        "class It:\n    upgrade_backend = lambda self, connection: print('asked:', connection)\n"
    )

    code, output, _ = run("db", "sync", taskflow=taskflow, driver="somebodys")

    assert code == 0
    assert (f"asked: {asked}\n" in output) is (asked is not None)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["db"], 2, "the following arguments are required: action"),
        (["bogus"], 2, "argument category: invalid choice: 'bogus'"),
        (["db", "bogus"], 2, "argument action: invalid choice: 'bogus'"),
        (["db", "sync", "8bdf5929c5a6"], 2, "argument version: invalid int value"),
        (["db", "purge", "--max_rows", "abc"], 2, "argument --max_rows: invalid int value"),
        (["db", "purge", "--max_rows", "-2"], 1, "input received: max_rows must be >= -1"),
        (["db", "purge", "--max_rows", "2147483648"], 1, "max_rows must be <= 2147483647"),
        (["db", "purge", "--max_rows", "0"], 1, "Must supply value greater than 0 for max_rows."),
        (["db", "purge", "--age_in_days", "-1"], 1, "Must supply a non-negative value for age."),
        (["db", "purge", "--age_in_days", "99999"], 1, "Maximal age is count of days since"),
        (["db", "sync", "8"], 1, "A version cannot be chosen"),
        (["--config-file", "/no/x.conf", "db", "sync"], 2, "configuration file(s): /no/x.conf"),
        (["--config-dir", "/no", "db", "sync"], 2, "Failed to read config file directory: /no"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_said(run, arguments, code, text):
    seen, output, complaint = run(*arguments)

    assert seen == code
    assert text in output + complaint
