"""A small client of the real REST API, as an operator's or a monitor's program would use it."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from masakari_ng import errors

_TIMEOUT = 10.0


class Rest:
    """Calls the API as an administrator.

    Args:
        url: root of the service, without version.
    """

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url)

    def get(self, path: str) -> dict[str, Any]:
        """Answer to a GET below `/v1`.

        Raises:
            DemoFailure: any other answer than success.
        """
        return self._call("GET", path)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Answer to a POST below `/v1`.

        Raises:
            DemoFailure: any other answer than success.
        """
        return self._call("POST", path, json.dumps(body))

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, str]:
        """Status and message of an answer that is no success, or status and body.

        Raises:
            DemoFailure: there is none.
        """
        status, content = self._exchange(method, path, json.dumps(body))
        (found,) = json.loads(content).values()
        return status, str(found.get("message", content))

    def _call(self, method: str, path: str, body: str | None = None) -> dict[str, Any]:
        status, content = self._exchange(method, path, body)
        if status >= http.client.BAD_REQUEST:
            raise errors.DemoFailure(f"{method} {path}: {status} {content}")
        found: dict[str, Any] = json.loads(content)
        return found

    def _exchange(self, method: str, path: str, body: str | None) -> tuple[int, str]:
        headers = {
            "Content-Type": "application/json",
            "OpenStack-API-Version": "instance-ha 1.3",
            "X-User-Id": "operator",
            "X-Project-Id": "operators",
            "X-Roles": "admin",
        }
        link = http.client.HTTPConnection(
            self._address.hostname or "", self._address.port, timeout=_TIMEOUT
        )
        try:
            link.request(method, f"/v1{path}", body, headers)
            answer = link.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise errors.DemoFailure(f"{method} {path}: {error}") from error
        finally:
            link.close()
