"""`masakari-ng-manage`: the tables, the description of the API. Spec: cli, masakari-manage."""

import argparse
import functools
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from oslo_config import cfg
from oslo_log import log as oslo_log

from masakari_ng import conf as options
from masakari_ng import errors
from masakari_ng.api import openapi
from masakari_ng.cmd import drivers, recoveries
from masakari_ng.db import migrate
from masakari_ng.db.purge import purge
from masakari_ng.db.session import Database
from masakari_ng.recovery.driver import TaskFlowDriver

_PROGRAM = "masakari-ng-manage"
_NO_LIMIT = -1
_MOST_ROWS = 2**31 - 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one action.

    Args:
        arguments: command line without the program; None takes the process' own.

    Returns:
        The exit code: 0 done, 1 failed, 2 not understood.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given:
        print(f"\nOpenStack masakari version: {options.version()}\n")
        print(f"{sys.argv[0]} category action [<args>]\nAvailable categories:\n\tdb")
        return 2
    category = cfg.SubCommandOpt(
        "category",
        title="Command categories",
        help="Available categories; those of Masakari: {db}",
        handler=_add_categories,
    )
    try:
        conf = options.load(given, program=_PROGRAM, subcommands=[category])
    except cfg.ConfigFilesNotFoundError as error:
        print(f"Failed to read configuration file(s): {', '.join(error.config_files)}")
        return 2
    except cfg.ConfigDirNotFoundError as error:
        print(f"Invalid directory: {error}")
        return 2
    except cfg.Error as error:
        print(error)
        return 1
    oslo_log.setup(conf, options.PROJECT)
    try:
        return int(conf.category.run(conf))
    except errors.MasakariError as error:
        print(error)
        return 1


def _add_categories(categories: Any) -> None:
    actions = categories.add_parser("db").add_subparsers(dest="action", required=True)
    purging = actions.add_parser("purge", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    purging.add_argument(
        "--age_in_days", type=int, default=30, help="Purge deleted rows older than age in days"
    )
    purging.add_argument(
        "--max_rows", type=int, default=_NO_LIMIT, help="Limit number of records to delete"
    )
    purging.add_argument(
        "--with_history",
        action="store_true",
        help="Remove vmoves and workflow details, too, of notifications that are gone; not counted"
        " by max_rows",
    )
    purging.set_defaults(run=_purge)
    sync = actions.add_parser("sync")
    sync.add_argument("version", nargs="?", type=int, help="Database version")
    sync.set_defaults(run=_sync)
    actions.add_parser("version").set_defaults(run=_version)
    categories.add_parser("api-spec").set_defaults(run=_print_api_spec)
    recoveries.add_actions(categories)


def _sync(conf: cfg.ConfigOpts) -> int:
    if conf.category.version is not None:
        print("A version cannot be chosen; leave it out for the newest.")
        return 1
    migrate.sync(
        Database.from_conf(conf, answer_timeout=None),
        functools.partial(_upgrade_backend, conf.notification_driver, conf.taskflow.connection),
        force="FORCE_MASAKARI_DB_SYNC" in os.environ,
    )
    return 0


def _upgrade_backend(driver: str, connection: str | None) -> None:
    kind = drivers.find(driver)
    if issubclass(kind, TaskFlowDriver):
        if not connection:
            raise errors.ConfigurationError(
                "[taskflow] connection should be configured to use this driver."
            )
        migrate.upgrade_workflows(connection)
    elif connection:  # Upstream does not ask the driver without it.
        kind().upgrade_backend(connection)


def _print_api_spec(conf: cfg.ConfigOpts) -> int:
    print(json.dumps(openapi.document(), indent=1))
    return 0


def _version(conf: cfg.ConfigOpts) -> int:
    print(migrate.version(Database.from_conf(conf, answer_timeout=None)))
    return 0


def _purge(conf: cfg.ConfigOpts) -> int:
    days, rows = conf.category.age_in_days, conf.category.max_rows
    problem = _purge_problem(days, rows)
    if problem is not None:
        print(problem, file=sys.stderr)
        return 1
    purge(
        Database.from_conf(conf, answer_timeout=None),
        days=days,
        limit=None if rows == _NO_LIMIT else rows,
        history=conf.category.with_history,
        workflows=_workflows(conf),
    )
    return 0


def _workflows(conf: cfg.ConfigOpts) -> Database | None:
    connection = conf.taskflow.connection
    return connection and Database(connection, dict(conf.database), answer_timeout=None)


def _purge_problem(days: int, rows: int) -> str | None:
    """Why these numbers are refused; the first reason counts."""
    since_epoch = (datetime.now(UTC) - datetime.fromtimestamp(0, UTC)).days
    refused = {
        f"Invalid input received: max_rows must be >= {_NO_LIMIT}": rows < _NO_LIMIT,
        f"Invalid input received: max_rows must be <= {_MOST_ROWS}": rows > _MOST_ROWS,
        "Must supply value greater than 0 for max_rows.": rows == 0,
        "Must supply a non-negative value for age.": days < 0,
        "Maximal age is count of days since epoch.": days >= since_epoch,
    }
    return next((text for text, applies in refused.items() if applies), None)


if __name__ == "__main__":
    sys.exit(main())
