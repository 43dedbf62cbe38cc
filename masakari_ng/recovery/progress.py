"""What a task has reported, kept short enough for taskflow's column. Spec: data-model §4."""

import json
import re
from dataclasses import asdict, dataclass, replace

from masakari_ng.domain import ProgressEntry

_LIMIT = 60_000  # bytes; the column holds 65,535 and the entries are not all that is in it
_SEPARATOR = 2
_LIST = re.compile(r"'([^', ]+(?:,[^', ]+)+)'")


@dataclass(frozen=True, slots=True)
class _Kept:
    entry: ProgressEntry
    repeated: bool
    stored: dict[str, object]
    size: int


class ProgressLog:
    """Messages in order.

    While their JSON fits, nothing is lost. When it does not, repeated messages go first, from the
    middle outwards; then lists of uuids lose their second half.
    """

    def __init__(self) -> None:
        self._kept: list[_Kept] = []
        self._size = 0

    def add(self, entry: ProgressEntry, *, repeated: bool = False) -> None:
        """Append a message.

        Args:
            entry: the message.
            repeated: one like it is written for each instance, so that it can be spared.
        """
        self._kept.append(_kept(entry, repeated=repeated))
        self._size += self._kept[-1].size
        while self._size > _LIMIT and (self._drop_repeated() or self._cut_longest()):
            pass

    def stored(self) -> list[dict[str, object]]:
        """The messages in the form in which they are stored."""
        return [kept.stored for kept in self._kept]

    def _drop_repeated(self) -> bool:
        """Drop the middle one of the repeated messages; the first and the last stay."""
        places = [place for place, kept in enumerate(self._kept) if kept.repeated][1:-1]
        if not places:
            return False
        self._size -= self._kept.pop(places[len(places) // 2]).size
        return True

    def _cut_longest(self) -> bool:
        place = max(range(len(self._kept)), key=lambda place: len(self._kept[place].entry.message))
        long = self._kept[place]
        halved = replace(long.entry, message=_halved(long.entry.message))
        short = _kept(halved, repeated=long.repeated)
        self._kept[place] = short
        self._size += short.size - long.size
        return short.size < long.size


def _kept(entry: ProgressEntry, *, repeated: bool) -> _Kept:
    stored = asdict(entry)
    return _Kept(entry, repeated, stored, len(json.dumps(stored)) + _SEPARATOR)


def _halved(message: str) -> str:
    """Without the second half of its first quoted list, which then ends in `...`."""
    found = _LIST.search(message)
    if not found:
        return message
    items = found[1].split(",")
    kept = ",".join([*items[: len(items) // 2], "..."])
    return f"{message[: found.start(1)]}{kept}{message[found.end(1) :]}"
