"""Scripted faults of the simulated cloud: which request goes wrong, and how."""

import copy
import re
from collections.abc import Sequence
from typing import Any

_NO_LIMIT = 10**9

Frame = dict[str, Any]
"""One recorded request: `time`, `method`, `path`, `query` (pairs), `raw_query`, `body`, `headers`,
`status` (of the answer; `dropped` where there was none)."""


def matches(want: dict[str, Any], frame: Frame) -> bool:
    """Is this the request that a rule describes?

    Args:
        want: `method`, `path` (regular expression), `action` (key of the body), `body` (equal).
        frame: the request.
    """
    body = frame["body"] if isinstance(frame["body"], dict) else {}
    return not (
        ("method" in want and frame["method"] != want["method"])
        or ("path" in want and not re.search(want["path"], frame["path"]))
        or ("action" in want and want["action"] not in body)
        or ("body" in want and frame["body"] != want["body"])
    )


class Faults:
    """Rules `{"match": {...}, "do": {...}}` with `after`, `skip` and `times`.

    `after` arms a rule when such a request was seen; `skip` and `times` count the matches. What to
    do: `status` with `body`, `drop` the connection, `delay` in seconds; with `apply` the request is
    carried out all the same.
    """

    def __init__(self, rules: Sequence[dict[str, Any]] = ()) -> None:
        self._rules = [
            dict(rule, seen=0, armed="after" not in rule) for rule in copy.deepcopy(list(rules))
        ]

    def hit(self, frame: Frame) -> dict[str, Any]:
        """What to do to this request: the `do` of the first rule that applies, else nothing."""
        hit: dict[str, Any] = {}
        for rule in self._rules:
            if not rule["armed"]:
                rule["armed"] = matches(rule["after"], frame)
            elif not hit and matches(rule["match"], frame):
                rule["seen"] += 1
                if 0 < rule["seen"] - rule.get("skip", 0) <= rule.get("times", _NO_LIMIT):
                    hit = rule["do"]
        return hit
