"""`masakari_ng.wsgi:application` for uWSGI, mod_wsgi, gunicorn and other WSGI servers.

The options come from `masakari.conf` in `$OS_MASAKARI_CONFIG_DIR`, by default `/etc/masakari`, and
never from the command line, which is the server's. Spec: configuration §3.
"""

import os
from pathlib import Path

from masakari_ng import conf as options
from masakari_ng.cmd import compose, paste
from masakari_ng.cmd.compose import Application

_FOLDER = Path(os.environ.get("OS_MASAKARI_CONFIG_DIR") or "/etc/masakari")


def _built() -> Application:
    conf = compose.load([], files=[str(_FOLDER / "masakari.conf")])
    options.announce(conf, paste.without_effect(conf))
    return compose.build_api(conf)


application = _built()
