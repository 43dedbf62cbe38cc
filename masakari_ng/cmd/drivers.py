"""Finds the class that `notification_driver` names. Spec: recovery §1, §11."""

import logging
from typing import Any

from stevedore.driver import DriverManager
from stevedore.exception import NoMatches

from masakari_ng import errors
from masakari_ng.recovery.registry import prefer_ours

log = logging.getLogger(__name__)


def find(name: str) -> Any:
    """Ours, or one that others have installed.

    Raises:
        ConfigurationError: there is none of this name, or it cannot be imported.
    """
    if not name:
        raise errors.ConfigurationError("Notification driver option required, but not specified")
    log.info("Loading masakari notification driver '%s'", name)
    try:
        return DriverManager("masakari.driver", name, conflict_resolver=prefer_ours).driver
    except NoMatches as error:
        raise errors.ConfigurationError(
            f"No 'masakari.driver' driver found, looking for '{name}'"
        ) from error
    except ImportError as error:
        log.exception("Failed to load notification driver '%s'.", name)
        raise errors.ConfigurationError(f"Failed to load notification driver '{name}'.") from error
