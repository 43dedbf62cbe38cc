"""Programs set up the logging of the process; each test puts it back."""

import logging
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    handlers, level, hook = logging.root.handlers[:], logging.root.level, sys.excepthook
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    sys.excepthook = hook
