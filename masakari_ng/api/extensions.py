"""The list of extensions, a leftover that clients still ask for. Spec: rest-api §15."""

import falcon

from masakari_ng import errors
from masakari_ng.api.policy import Policy

_EXTENSIONS = [
    ("extensions", "Extensions", "Extension information."),
    ("notifications", "Notifications", "Notifications support."),
    ("os-hosts", "Hosts", "Hosts controller"),
    ("segments", "Segments", "Segments Extension."),
    ("versions", "Versions", "API Version information."),
    ("vmoves", "vmoves", "vmoves controller"),
]


class ExtensionResource:
    """Extensions, by alias; one that the caller may not discover does not exist."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def index(self, req: falcon.Request, resp: falcon.Response) -> None:
        """List extensions."""
        self._policy(req, "os_masakari_api:extensions:index")
        resp.media = {"extensions": self._visible(req)}

    def show(self, req: falcon.Request, resp: falcon.Response, alias: str) -> None:
        """Show an extension."""
        self._policy(req, "os_masakari_api:extensions:detail")
        found = [item for item in self._visible(req) if item["alias"] == alias]
        if not found:
            raise errors.ResourceNotFound
        resp.media = {"extension": found[0]}

    def _visible(self, req: falcon.Request) -> list[dict[str, object]]:
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
            if self._policy.allows(req, f"os_masakari_api:{alias}:discoverable")
        ]
