"""What api-paste.ini asks for and does not get: it is no pipeline here. Spec: configuration §4."""

import configparser
import logging
from pathlib import Path

from oslo_config import cfg

log = logging.getLogger(__name__)

_SHIPPED = {
    "filter:authtoken",
    "filter:cors",
    "filter:faultwrap",
    "filter:http_proxy_to_wsgi",
    "filter:keystonecontext",
    "filter:noauth2",
    "filter:request_id",
    "filter:sizelimit",
    "app:healthcheck",
}
_UPSTREAM = "masakari."


def warn(conf: cfg.ConfigOpts) -> None:
    """Name filters and applications that upstream does not ship, so that nobody relies on them."""
    path = conf.find_file(conf.wsgi.api_paste_config)
    try:
        own = _own(Path(path).read_text()) if path else []
    except (OSError, ValueError, configparser.Error) as error:
        log.warning("%s cannot be read: %s", path, type(error).__name__)
        return
    if own:
        log.warning("%s is not used as a pipeline; there is no %s here", path, ", ".join(own))


def _own(text: str) -> list[str]:
    parser = configparser.RawConfigParser(strict=False, default_section="")
    parser.read_string(text)
    return [
        name
        for name in parser.sections()
        if name.startswith(("filter:", "app:"))
        and name not in _SHIPPED
        and not any(value.startswith(_UPSTREAM) for value in parser[name].values())
    ]
