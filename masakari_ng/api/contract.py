"""What an action asks for and gives: `Gate` holds requests to it, `openapi` writes it down."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar

from masakari_ng.api.microversion import Version
from masakari_ng.api.schemas import Versions

Act = TypeVar("Act", bound=Callable[..., None])


@dataclass(frozen=True, kw_only=True)
class Contract:
    """Decorates an action.

    Attributes:
        key: the one key of the answer; None where nothing is answered.
        view: what makes JSON from the record, or an example of that JSON.
        later: further keys of it, by their first microversion.
        rule: policy rule; None: anybody may do it.
        body: schemas of the request; None where no body is read.
        filters: query parameters of a list besides those of every list; None: no list.
        status: of a success.
    """

    key: str | None = None
    view: Callable[..., Any] | Mapping[str, Any] = field(default_factory=dict)
    later: Mapping[Version, Mapping[str, Callable[..., Any]]] = field(default_factory=dict)
    rule: str | None = None
    body: Versions | None = None
    filters: tuple[str, ...] | None = None
    status: HTTPStatus = HTTPStatus.OK

    def __call__(self, act: Act) -> Act:
        """Tie the contract to the function, where `of` finds it."""
        act.__dict__["contract"] = self
        return act


def of(act: Callable[..., None]) -> Contract:
    """The contract of an action, bound to its resource or not."""
    found: Contract = act.contract  # type: ignore[attr-defined]  # set above
    return found
