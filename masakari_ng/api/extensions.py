"""The list of extensions, a leftover that clients still ask for. Spec: rest-api §15."""

import falcon

from masakari_ng import errors
from masakari_ng.api.contract import Contract
from masakari_ng.api.policy import Policy

_EXTENSIONS = [
    ("extensions", "Extensions", "Extension information."),
    ("notifications", "Notifications", "Notifications support."),
    ("os-hosts", "Hosts", "Hosts controller"),
    ("segments", "Segments", "Segments Extension."),
    ("versions", "Versions", "API Version information."),
    ("vmoves", "vmoves", "vmoves controller"),
]


def _shown(alias: str, name: str, description: str) -> dict[str, object]:
    return {
        "name": name,
        "alias": alias,
        "description": description,
        "namespace": "",
        "updated": "",
        "links": [],
    }


_EXAMPLE = _shown(*_EXTENSIONS[0])


class ExtensionResource:
    """Extensions, by alias; one that the caller may not discover does not exist."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    @Contract(key="extensions", view=_EXAMPLE, rule="os_masakari_api:extensions:index", filters=())
    def index(self, req: falcon.Request, resp: falcon.Response) -> None:
        """List extensions."""
        resp.media = {"extensions": self._visible(req)}

    @Contract(key="extension", view=_EXAMPLE, rule="os_masakari_api:extensions:detail")
    def show(self, req: falcon.Request, resp: falcon.Response, alias: str) -> None:
        """Show an extension."""
        found = [item for item in self._visible(req) if item["alias"] == alias]
        if not found:
            raise errors.ResourceNotFound
        resp.media = {"extension": found[0]}

    def _visible(self, req: falcon.Request) -> list[dict[str, object]]:
        return [
            _shown(*extension)
            for extension in _EXTENSIONS
            if self._policy.allows(req, f"os_masakari_api:{extension[0]}:discoverable")
        ]
