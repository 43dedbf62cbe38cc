"""`masakari_ng.wsgi:application` for uWSGI, mod_wsgi, gunicorn and other WSGI servers.

The options come from `masakari.conf` in `$OS_MASAKARI_CONFIG_DIR`, by default `/etc/masakari`, and
never from the command line, which is the server's. Spec: configuration §3.
"""

import os
from pathlib import Path

from oslo_log import log as oslo_log

from masakari_ng import conf as options
from masakari_ng.api.middleware import Wsgi
from masakari_ng.cmd import compose


def _application() -> Wsgi:
    folder = Path(os.environ.get("OS_MASAKARI_CONFIG_DIR") or "/etc/masakari")
    conf = options.load([], program="masakari-ng-api", files=[str(folder / "masakari.conf")])
    oslo_log.setup(conf, options.PROJECT)
    return compose.build_api(conf)


application = _application()
