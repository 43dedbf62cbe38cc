"""Schema changes: what `db sync` does to a database in each state. Spec: data-model §3 to §5.

Two alembic chains live side by side: upstream's with its revisions and version table, and
masakari-ng's own tables. taskflow's tables are upgraded by taskflow.
"""

import contextlib
import functools
import logging
from collections.abc import Callable
from pathlib import Path

import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.orm import Session
from taskflow.exceptions import StorageFailure
from taskflow.persistence.backends.impl_sqlalchemy import SQLAlchemyBackend

from masakari_ng import errors
from masakari_ng.db.session import Database, translated

log = logging.getLogger(__name__)

_VERSION_TABLES = {
    "masakari": "masakari_alembic_version",
    "masakari_ng": "masakari_ng_alembic_version",
}
"""By branch label of the first revision of each chain."""

_LEGACY_STAMPS = {7: "8f848eb45d03", 8: "8bdf5929c5a6"}
"""Revisions whose schema a version of sqlalchemy-migrate has."""

_TOO_OLD = (
    "Your database is at version %03d; we only support upgrading from version 007 or later. "
    "Please upgrade your database using an earlier release of Masakari and then return here."
)
_TOO_NEW = (
    "Your database is at version %03d; we do not recognise this version and it is likely you are "
    "carrying out-of-tree migrations. You can still upgrade but we cannot guarantee things will "
    "work as expected. If you wish to continue, set the FORCE_MASAKARI_DB_SYNC environment "
    "variable to any value and retry."
)


def sync(database: Database, upgrade_backend: Callable[[], None], *, force: bool = False) -> None:
    """Bring all tables to the newest revision.

    Args:
        database: where upstream's and masakari-ng's own tables live.
        upgrade_backend: does the same to the tables of the notification driver, at the end.
        force: go on from an unknown version of sqlalchemy-migrate.

    Raises:
        MigrationRefused: the state of the database is not known, or newer.
        DatabaseUnavailable: it cannot be reached, or refuses a statement.
    """
    log.info("Applying migration(s)")
    try:
        with translated():
            _adopt_legacy(database, force=force)
            for chain in _VERSION_TABLES:
                _run(database, chain, f"{chain}@head")
            upgrade_backend()
    except (CommandError, StorageFailure) as error:  # Unknown revision; a step that failed.
        raise errors.MigrationRefused(str(error)) from error
    log.info("Migration(s) applied")


def upgrade(connection: str) -> None:
    """Make or upgrade all tables, taskflow's too, in one database.

    Raises:
        MasakariError: as `sync`.
    """
    with contextlib.closing(Database(connection, answer_timeout=None)) as database:
        sync(database, functools.partial(upgrade_workflows, connection))


def upgrade_workflows(connection: str) -> None:
    """Make or upgrade taskflow's tables; `sync` translates what it raises."""
    backend = SQLAlchemyBackend({"connection": connection})
    with contextlib.closing(backend), contextlib.closing(backend.get_connection()) as link:
        link.upgrade()


def version(database: Database) -> str | None:
    """Revision of upstream's tables; None without a version table, or with an empty one."""
    return database.read(_revision)


def revisions(database: Database) -> dict[str, tuple[str | None, str]]:
    """Of each chain by its name: the revision of its tables, and the newest of this program."""
    scripts = ScriptDirectory(str(_scripts()))
    return {
        chain: (
            database.read(functools.partial(_revision, chain=chain)),
            scripts.get_revision(f"{chain}@head").revision,
        )
        for chain in _VERSION_TABLES
    }


def _revision(session: Session, chain: str = "masakari") -> str | None:
    options = {"version_table": _VERSION_TABLES[chain]}
    return MigrationContext.configure(session.connection(), opts=options).get_current_revision()


def _adopt_legacy(database: Database, *, force: bool) -> None:
    """Stamp what sqlalchemy-migrate left; its own table stays as it is."""
    legacy = database.read(_legacy_version)
    if legacy is None:
        return
    if legacy < min(_LEGACY_STAMPS):
        raise errors.MigrationRefused(_TOO_OLD % legacy)
    newest = max(_LEGACY_STAMPS)
    if legacy > newest:
        if not force:
            raise errors.MigrationRefused(_TOO_NEW % legacy)
        log.warning("Going on from unknown version %03d as asked", legacy)
    log.info(
        "The database is still under sqlalchemy-migrate control; fake applying the initial "
        "alembic migration"
    )
    _run(database, "masakari", _LEGACY_STAMPS[min(legacy, newest)], stamp=True)


def _legacy_version(session: Session) -> int | None:
    """Version of sqlalchemy-migrate, None where alembic has taken over or nothing is there."""
    legacy = sqlalchemy.inspect(session.connection()).has_table("migrate_version")
    if not legacy or _revision(session) is not None:
        return None
    found: int | None = session.scalar(sqlalchemy.text("SELECT version FROM migrate_version"))
    return found


def _run(database: Database, chain: str, revision: str, *, stamp: bool = False) -> None:
    """Run alembic without an ini file."""
    config = Config()
    config.set_main_option("script_location", str(_scripts()).replace("%", "%%"))
    with database.engine.connect() as connection:
        config.attributes["connection"] = connection
        config.attributes["version_table"] = _VERSION_TABLES[chain]
        (command.stamp if stamp else command.upgrade)(config, revision)
        connection.commit()


def _scripts() -> Path:
    """In the package when installed from a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"
