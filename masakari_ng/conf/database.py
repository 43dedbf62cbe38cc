"""Options of the databases. Spec: data-model §1, §7."""

from pathlib import Path

from oslo_config import cfg
from oslo_db import options as oslo_db_options

_PACKAGE = Path(__file__).resolve().parents[1]

_DEFAULT = [
    cfg.StrOpt(
        "pybasedir",
        default=str(_PACKAGE.parent),
        sample_default="<the folder that holds the package>",
        help="Folder of the package, for use in other options.",
    ),
    cfg.StrOpt("state_path", default="$pybasedir", help="Folder of the default SQLite database."),
    cfg.StrOpt(
        "tempdir",
        help="Folder in which the engine must be able to make a temporary folder when it starts;"
        " unset: the system's.",
    ),
]

_TASKFLOW = [
    cfg.StrOpt(
        "connection",
        secret=True,
        help="URL of the database with taskflow's tables, commonly that of [database]. The engine"
        " needs it.",
    ),
]

OPTIONS = {None: _DEFAULT, "taskflow": _TASKFLOW}


def set_defaults() -> None:
    """Give oslo.db's options the defaults of this project, for the whole process."""
    url = "sqlite:///$state_path/masakari.sqlite"
    cfg.set_defaults(oslo_db_options.database_opts, connection=url)
