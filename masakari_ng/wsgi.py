"""`masakari_ng.wsgi:application` for uWSGI, mod_wsgi, gunicorn and other WSGI servers.

The options come from `masakari.conf` in `$OS_MASAKARI_CONFIG_DIR`, by default `/etc/masakari`, and
never from the command line, which is the server's. Spec: configuration §3.
"""

import os
from pathlib import Path

from masakari_ng.cmd import compose

_FOLDER = Path(os.environ.get("OS_MASAKARI_CONFIG_DIR") or "/etc/masakari")

application = compose.application([], files=[str(_FOLDER / "masakari.conf")])
