"""The simulated Keystone: version document, tokens and their end."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

from masakari_ng.demo.cloud_reply import Reply, Request

_ISSUED = "2026-01-01T00:00:00.000000Z"
_ENDLESS = "2099-01-01T00:00:00.000000Z"
_PROJECT_ID = "0123456789abcdef0123456789abcdef"


class Keystone:
    """Tokens of any user and password; valid until revoked or, with a lifetime, expired.

    Args:
        url: root of the simulated cloud.
        now: reads the cloud's clock, in seconds.
    """

    def __init__(self, url: str, now: Callable[[], float]) -> None:
        self.catalog_name = "nova"
        self.instance_ha: str | None = None
        self.lifetime: float | None = None
        self.standing: dict[str, str] = {}
        self._url = url
        self._now = now
        self._issued: dict[str, tuple[float, dict[str, Any]]] = {}
        self._revoked: set[str] = set()

    def revoke(self) -> None:
        """End every token issued so far."""
        self._revoked.update(self._issued)
        self._issued = {}

    def valid(self, token: str | None) -> bool:
        """Would Nova accept this token? One of the right form that nobody issued passes."""
        if token is None or not token.startswith("tok-") or token in self._revoked:
            return False
        issued, _ = self._issued.get(token, (self._now(), {}))
        return self.lifetime is None or self._now() - issued < self.lifetime

    def answer(self, request: Request, headers: dict[str, str | None]) -> Reply | None:
        """Answer what is below `/identity`; None for what is not known."""
        match request.method, request.parts:
            case _, ():
                return Reply(300, {"versions": {"values": [self._version()]}})
            case _, ("v3",):
                return Reply(200, {"version": self._version()})
            case "POST", ("v3", "auth", "tokens"):
                return self._issue(request.body.get("auth", {}))
            case "GET", ("v3", "auth", "tokens"):
                return self._validate(headers.get("X-Subject-Token") or "")
        return None

    def _version(self) -> dict[str, Any]:
        return {
            "id": "v3.14",
            "status": "stable",
            "updated": "2020-04-07T00:00:00Z",
            "links": [{"rel": "self", "href": f"{self._url}/identity/v3/"}],
            "media-types": [],
        }

    def _issue(self, auth: dict[str, Any]) -> Reply:
        token = f"tok-{uuid.uuid4().hex}"
        body = {"token": self._token(auth)}
        self._issued[token] = (self._now(), body)
        return Reply(201, body, {"X-Subject-Token": token})

    def _validate(self, token: str) -> Reply:
        role = self.standing.get(token)
        if role is not None:
            user = {"password": {"user": {"name": role}}}
            body = {"token": self._token({"identity": user, "scope": {"project": {}}}, role)}
            return Reply(200, body, {"X-Subject-Token": token})
        if token in self._issued and self.valid(token):
            return Reply(200, self._issued[token][1], {"X-Subject-Token": token})
        status = HTTPStatus.NOT_FOUND
        return Reply(status, {"error": {"code": status, "message": "Could not find token."}})

    def _expiry(self) -> str:
        if self.lifetime is None:
            return _ENDLESS
        end = datetime.now(UTC) + timedelta(seconds=self.lifetime)
        return end.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _token(self, auth: dict[str, Any], role: str = "admin") -> dict[str, Any]:
        user = auth.get("identity", {}).get("password", {}).get("user", {})
        scope = auth.get("scope", {})
        domain = {"id": "default", "name": "Default"}
        token: dict[str, Any] = {
            "methods": ["password"],
            "audit_ids": ["a"],
            "issued_at": _ISSUED,
            "expires_at": self._expiry(),
            "user": {"id": "u" * 32, "name": user.get("name"), "domain": domain},
            "roles": [{"id": "r", "name": role}],
            "catalog": [
                _service("compute", self.catalog_name, f"{self._url}/compute/v2.1"),
                _service("identity", "keystone", f"{self._url}/identity"),
            ],
        }
        if self.instance_ha:
            url = f"{self.instance_ha}/{_PROJECT_ID}"
            token["catalog"].append(_service("instance-ha", "masakari", url))
        if "project" in scope:
            project = {"id": _PROJECT_ID, "name": scope["project"].get("name"), "domain": domain}
            token["project"] = project
        if "system" in scope:
            token["system"] = scope["system"]
        return token


def _service(kind: str, name: str, url: str) -> dict[str, Any]:
    endpoints = [
        {
            "id": f"{kind}-{interface}",
            "interface": interface,
            "region": "RegionOne",
            "region_id": "RegionOne",
            "url": url,
        }
        for interface in ("public", "internal", "admin")
    ]
    return {"id": kind, "type": kind, "name": name, "endpoints": endpoints}
