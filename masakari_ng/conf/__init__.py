"""Options: one module for each subject; names and defaults stand nowhere else.

All of upstream's own options exist with the same group, name, type and default, so its
`masakari.conf` works unchanged (Spec: configuration). `load` gives a `ConfigOpts` that is passed to
whoever needs it; nothing here keeps one.
"""

import logging
import sys
from collections.abc import Sequence
from importlib import metadata

from keystoneauth1 import loading
from oslo_config import cfg
from oslo_db import options as oslo_db_options
from oslo_log import log as oslo_log
from oslo_log import versionutils

from masakari_ng.conf import (
    api,
    cloud,
    database,
    engine,
    messaging,
    own,
    recovery,
    without_effect,
)

log = logging.getLogger(__name__)

_MODULES = (api, cloud, database, engine, messaging, own, recovery, without_effect)

PROJECT = "masakari"
"""The project name under which configuration files are searched: upstream's."""


def version() -> str:
    """Version of the installed distribution."""
    return metadata.version("masakari-ng")


def list_opts() -> list[tuple[str | None, Sequence[cfg.Opt]]]:
    """Our options by group, as the tools of oslo.config want them."""
    return [entry for module in _MODULES for entry in module.OPTIONS.items()]


def register(conf: cfg.ConfigOpts) -> None:
    """Make every option known to `conf`, but those of the layers around the API."""
    for group, options in list_opts():
        conf.register_opts(list(options), group=group)
    database.set_defaults()
    conf.register_opts(oslo_db_options.database_opts, group="database")
    loading.register_auth_conf_options(conf, "keystone_authtoken")
    oslo_log.register_options(conf)
    conf.register_opts(versionutils.deprecated_opts)


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
    if conf.publish_errors:
        conf.set_override("publish_errors", False)  # oslo.log would look for oslo.messaging.
    return conf


def announce(conf: cfg.ConfigOpts, further: Sequence[str] = ()) -> None:
    """Say once, when a service starts, what is set without effect, and at DEBUG all options.

    Args:
        conf: options.
        further: what else is set without effect.

    Raises:
        cfg.Error: a value is wrong, even if it would have no effect.
    """
    ignored = [*without_effect.given(conf), *further]
    if ignored:
        log.warning("Set, but without effect: %s", "; ".join(ignored))
    if conf.log_options and log.isEnabledFor(logging.DEBUG):
        conf.log_opt_values(log, logging.DEBUG)


def _upstream(program: str) -> str:
    return program.replace("masakari-ng", PROJECT, 1)
