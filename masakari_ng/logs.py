"""What log lines are about: the facts that every line carries, whichever module writes it.

Only log lines are made of them. Nothing decides by them, so nobody needs to hand them on.
"""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType

_NOTHING: Mapping[str, str] = MappingProxyType({})
_facts: ContextVar[Mapping[str, str]] = ContextVar("facts", default=_NOTHING)
_OF_REQUEST = ("request_id", "global_request_id", "user", "project")


@contextlib.contextmanager
def about(**facts: str | None) -> Iterator[None]:
    """Add facts to the lines of this thread until the end of the block.

    Args:
        facts: `request_id`, `global_request_id`, `user` and `project` stand where oslo.log has
            them. Others begin the message, and are fields of a line in JSON. None is left out.
    """
    before = _facts.set(dict(_facts.get()))
    try:
        note(**facts)
        yield
    finally:
        _facts.reset(before)


def note(**facts: str | None) -> None:
    """Add facts until the end of the block of `about` around this, if there is one."""
    if _facts.get() is not _NOTHING:
        known = {name: value for name, value in facts.items() if value}
        _facts.set({**_facts.get(), **known})


def begin() -> None:
    """Have these facts in the lines of all handlers that there are."""
    known = logging.root.manager.loggerDict.values()
    loggers = [logging.root, *(found for found in known if isinstance(found, logging.Logger))]
    for logger in loggers:
        for handler in logger.handlers:
            handler.addFilter(_complete)


def _complete(record: logging.LogRecord) -> bool:
    """Give the formatters of oslo.log what they look for; what the caller gave has priority."""
    facts = _facts.get()
    if facts:
        others = {name: facts[name] for name in facts if name not in _OF_REQUEST}
        # With all of them: oslo.log writes None for what upstream's context has not, too.
        context = {name: facts.get(name) for name in _OF_REQUEST if "request_id" in facts}
        prefix = "".join(f"[{name.removesuffix('_uuid')}: {others[name]}] " for name in others)
        for name, value in (("context", context), ("extra", others), ("instance", prefix)):
            record.__dict__.setdefault(name, value)
    return True
