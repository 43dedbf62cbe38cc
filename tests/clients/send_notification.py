"""Sends one report by the class that all monitors share; runs where masakari-monitors is installed.

Arguments: the configuration file, repetitions, seconds between them, the event as JSON.
"""

import json
import sys

from masakarimonitors import config
from masakarimonitors.conf import CONF
from masakarimonitors.ha.masakari import SendNotification
from oslo_log import log as logging


def main(file: str, repetitions: str, seconds: str, event: str) -> None:
    """What a monitor does at an event."""
    config.parse_args(["send", "--config-file", file])
    logging.setup(CONF, "masakarimonitors")
    SendNotification().send_notification(int(repetitions), int(seconds), json.loads(event))


if __name__ == "__main__":
    main(*sys.argv[1:])
