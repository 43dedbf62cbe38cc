"""What the simulated cloud answers: plain answers and refusals in Nova's words."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the routes see it.

    Attributes:
        parts: the path below the service's root, split at slashes.
        query: the last value of each parameter.
    """

    method: str
    parts: tuple[str, ...]
    query: dict[str, str]
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer; `body` None means an empty one."""

    status: int
    body: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)


class RefusedError(Exception):
    """The simulated cloud does not carry out a request."""

    def __init__(self, status: int, key: str, message: str) -> None:
        super().__init__(message)
        self.reply = Reply(status, {key: {"code": status, "message": message}})


def bad_request(message: str) -> RefusedError:
    """400 as Nova words it."""
    return RefusedError(400, "badRequest", message)


def not_found(message: str) -> RefusedError:
    """404 as Nova words it."""
    return RefusedError(404, "itemNotFound", message)


def conflict(message: str) -> RefusedError:
    """409 as Nova words it."""
    return RefusedError(409, "conflictingRequest", message)
