"""Options of the databases. Spec: data-model §1, §7."""

import os
from pathlib import Path

from oslo_config import cfg
from oslo_db import options as oslo_db_options

_PACKAGE = Path(__file__).resolve().parents[1]

_DEFAULT = [
    cfg.StrOpt("pybasedir", default=str(_PACKAGE.parent), help="Folder of the package."),
    cfg.StrOpt(
        "state_path",
        default="$pybasedir",
        help="Folder of the default SQLite database.",
    ),
    cfg.StrOpt("tempdir", help="Folder for the temporary folder of the start check."),
]

_TASKFLOW = [
    cfg.StrOpt("connection", secret=True, help="URL of the database with taskflow's tables."),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Make the options of this module known to `conf`."""
    conf.register_opts(_DEFAULT)
    conf.register_opts(oslo_db_options.database_opts, group="database")
    conf.set_default(
        "connection", f"sqlite:///{os.path.join('$state_path', 'masakari.sqlite')}", "database"
    )
    conf.register_opts(_TASKFLOW, group="taskflow")
