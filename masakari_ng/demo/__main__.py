"""`python -m masakari_ng.demo [PORT]`: a simulated cloud alone, to try an installation on.

node-1 has two instances; whoever evacuates them finds them on node-2.
"""

import contextlib
import signal
import sys

from masakari_ng.demo.cloud import SimulatedCloud

_PORT = 5000


def main() -> None:
    """Serve until SIGTERM or Ctrl-C, and then say where the instances are."""
    cloud = SimulatedCloud(port=int(sys.argv[1]) if len(sys.argv) > 1 else _PORT)
    for host in ("node-1", "node-2"):
        cloud.add_service(host)
    for name in ("web-1", "web-2"):
        cloud.add_server(name, "node-1", evacuate={"to": "node-2"})
    cloud.start()
    sys.stdout.write(f"os_privileged_user_auth_url = {cloud.url}/identity/v3\n")
    sys.stdout.flush()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            signal.pause()
    for server in cloud.servers.values():
        sys.stdout.write(f"{server.name} is on {server.host}\n")
    cloud.stop()


if __name__ == "__main__":
    main()
