"""Log lines that name the recovery they are about."""

import logging
from collections.abc import MutableMapping
from typing import Any


class About(logging.LoggerAdapter[logging.Logger]):
    """Begins each line with the uuids.

    Args:
        logger: of the module.
        notification: uuid.
        instance: uuid, where the lines are about one.
    """

    def __init__(
        self, logger: logging.Logger, notification: str, instance: str | None = None
    ) -> None:
        super().__init__(logger)
        about = f", instance {instance}" if instance else ""
        self._prefix = f"Notification {notification}{about}: "

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[str, MutableMapping[str, Any]]:
        return f"{self._prefix}{msg}", kwargs
