"""The list of extensions, a leftover that clients still ask for. Spec: rest-api §15."""

from collections.abc import Callable

import falcon

from masakari_ng import errors
from masakari_ng.api.policy import Authorize

_EXTENSIONS = [
    ("extensions", "Extensions", "Extension information."),
    ("notifications", "Notifications", "Notifications support."),
    ("os-hosts", "Hosts", "Hosts controller"),
    ("segments", "Segments", "Segments Extension."),
    ("versions", "Versions", "API Version information."),
    ("vmoves", "vmoves", "vmoves controller"),
]

Allows = Callable[[falcon.Request, str], bool]


def _visible(req: falcon.Request, allows: Allows) -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "alias": alias,
            "description": description,
            "namespace": "",
            "updated": "",
            "links": [],
        }
        for alias, name, description in _EXTENSIONS
        if allows(req, f"os_masakari_api:{alias}:discoverable")
    ]


class ExtensionCollection:
    """GET lists those that the caller may discover."""

    def __init__(self, authorize: Authorize, allows: Allows) -> None:
        self._authorize = authorize
        self._allows = allows

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """List extensions by alias."""
        self._authorize(req, "os_masakari_api:extensions:index")
        resp.media = {"extensions": _visible(req, self._allows)}


class ExtensionMember:
    """GET shows one."""

    def __init__(self, authorize: Authorize, allows: Allows) -> None:
        self._authorize = authorize
        self._allows = allows

    def on_get(self, req: falcon.Request, resp: falcon.Response, alias: str) -> None:
        """Show an extension; one that may not be discovered does not exist."""
        self._authorize(req, "os_masakari_api:extensions:detail")
        found = [item for item in _visible(req, self._allows) if item["alias"] == alias]
        if not found:
            raise errors.ResourceNotFound
        resp.media = {"extension": found[0]}
