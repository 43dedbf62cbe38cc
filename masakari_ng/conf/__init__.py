"""Options: one module for each group; names and defaults stand nowhere else.

All of upstream's own options exist with the same group, name, type and default, so its
`masakari.conf` works unchanged (Spec: configuration). `load` gives a `ConfigOpts` that is passed to
whoever needs it; nothing here keeps one.
"""

import sys
from collections.abc import Sequence
from importlib import metadata

from oslo_config import cfg
from oslo_log import log as oslo_log

from masakari_ng.conf import api, cloud, database, engine, messaging, own, recovery

_GROUPS = (api, cloud, database, engine, messaging, own, recovery)

PROJECT = "masakari"
"""The project name under which configuration files are searched: upstream's."""


def version() -> str:
    """Version of the installed distribution."""
    return metadata.version("masakari-ng")


def register(conf: cfg.ConfigOpts) -> None:
    """Make every option known to `conf`."""
    for group in _GROUPS:
        group.register(conf)


def load(
    arguments: Sequence[str] | None = None,
    *,
    program: str,
    files: Sequence[str] | None = None,
    subcommands: Sequence[cfg.Opt] = (),
) -> cfg.ConfigOpts:
    """Parse the command line and the configuration files.

    Args:
        arguments: command line without the program; None takes the process' own.
        program: name of the program, for usage texts. Its own configuration files are those of
            upstream's program: `masakari-api.conf` is read by `masakari-ng-api`.
        files: configuration files; None searches as Spec: configuration §3 says.
        subcommands: options of this program's command line, and those that read what follows it.

    Raises:
        cfg.Error: a file cannot be read or an argument is not understood.
        SystemExit: `--help`, `--version` or a usage error.
    """
    conf = cfg.ConfigOpts()
    register(conf)
    oslo_log.register_options(conf)
    conf.register_cli_opts(list(subcommands))
    if files is None:
        files = cfg.find_config_files(PROJECT, _upstream(program))
    conf(
        args=list(sys.argv[1:] if arguments is None else arguments),
        project=PROJECT,
        prog=program,
        version=version(),
        default_config_files=list(files),
        default_config_dirs=cfg.find_config_dirs(PROJECT, _upstream(program)),
    )
    return conf


def _upstream(program: str) -> str:
    return program.replace("masakari-ng", PROJECT, 1)
