"""What api-paste.ini asks for and does not get: it is no pipeline here. Spec: configuration §4."""

import configparser
from pathlib import Path

from oslo_config import cfg

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


def without_effect(conf: cfg.ConfigOpts) -> list[str]:
    """Filters and applications that upstream does not ship, so that nobody relies on them."""
    path = conf.find_file(conf.wsgi.api_paste_config)
    try:
        own = _own(Path(path).read_text()) if path else []
    except (OSError, ValueError, configparser.Error) as error:
        return [f"{path} (cannot be read: {type(error).__name__})"]
    return [f"{name} of {path} (it is not used as a pipeline)" for name in own]


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
