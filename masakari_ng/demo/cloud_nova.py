"""The simulated Nova at microversion 2.53: servers, compute services, host aggregates."""

import copy
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from masakari_ng.demo.cloud_reply import Reply, Request, bad_request, conflict, not_found
from masakari_ng.demo.cloud_server import Server

_CREATED = "2026-01-01T00:00:00.000000"
_SOMEWHERE = "compute-2"


class Nova:
    """State and routes; the caller holds the cloud's lock.

    Args:
        spec: `servers`, `services`, `aggregates`, `page_size`, `realistic`; see `SimulatedCloud`.
        url: root of the simulated cloud.
        now: reads the cloud's clock, in seconds.
    """

    def __init__(self, spec: dict[str, Any], *, url: str, now: Callable[[], float]) -> None:
        self.realistic: bool = spec.get("realistic", False)
        self.servers: dict[str, Server] = {}
        self.services: list[dict[str, Any]] = []
        self.aggregates: list[dict[str, Any]] = copy.deepcopy(spec.get("aggregates", []))
        self._page_size: int | None = spec.get("page_size")
        self._url = url
        self._now = now
        for server in spec.get("servers", []):
            self.add_server(server)
        for service in spec.get("services", []):
            self.add_service(service)

    def add_server(self, spec: dict[str, Any]) -> Server:
        """One more instance; keys as `Server` has them."""
        server = Server(copy.deepcopy(spec), now=self._now, realistic=self.realistic)
        self.servers[server.id] = server
        return server

    def add_service(self, spec: dict[str, Any]) -> None:
        """One more compute service; keys as `SimulatedCloud` says."""
        self.services.append(
            {
                "id": spec.get("id") or str(uuid.uuid5(uuid.NAMESPACE_DNS, spec["host"])),
                "binary": spec.get("binary", "nova-compute"),
                "host": spec["host"],
                "zone": "nova",
                "state": spec.get("state", "up"),
                "status": spec.get("status", "enabled"),
                "disabled_reason": None,
                "forced_down": False,
                "updated_at": _CREATED,
                "_sticky": spec.get("sticky", False),
                "_down_at": None,
            }
        )

    def fail(self, host: str, seconds: float) -> None:
        """The compute service is reported `down` after so many seconds."""
        for service in self.services:
            if service["host"] == host:
                service["_down_at"] = self._now() + seconds

    def settle(self) -> None:
        """Let happen what the clock has made due."""
        for service in self.services:
            if service["_down_at"] is not None and service["_down_at"] <= self._now():
                service["state"] = "down"
        for server in self.servers.values():
            server.settle()

    def answer(self, request: Request) -> Reply:
        """Answer what is below `/compute/v2.1`.

        Raises:
            RefusedError: as Nova refuses.
        """
        match request.method, request.parts:
            case "GET", ("os-services",):
                return Reply(200, {"services": self._listed_services(request.query)})
            case "PUT", ("os-services", service_id):
                return self._update_service(service_id, request.body)
            case "GET", ("os-aggregates",):
                return Reply(200, {"aggregates": [_aggregate(found) for found in self.aggregates]})
            case "POST", ("os-aggregates", aggregate_id, "action"):
                return self._add_host(aggregate_id, request.body)
            case "GET", ("servers", "detail"):
                return Reply(200, self._listed_servers(request.query))
            case method, ("servers", server_id, *rest):
                return self._one_server(method, self._found(server_id), rest, request.body)
        raise not_found("Not found")

    def _listed_services(self, query: dict[str, str]) -> list[dict[str, Any]]:
        return [
            _service(found)
            for found in self.services
            if query.get("host", found["host"]) == found["host"]
            and query.get("binary", found["binary"]) == found["binary"]
        ]

    def _update_service(self, service_id: str, body: dict[str, Any]) -> Reply:
        for service in self.services:
            if service["id"] == service_id:
                if not service["_sticky"]:
                    service["status"] = body.get("status", service["status"])
                    service["disabled_reason"] = body.get("disabled_reason")
                return Reply(200, {"service": _service(service) | {"status": body.get("status")}})
        raise not_found("Service could not be found.")

    def _add_host(self, aggregate_id: str, body: dict[str, Any]) -> Reply:
        host = body["add_host"]["host"]
        for aggregate in self.aggregates:
            if str(aggregate["id"]) == aggregate_id:
                if host in aggregate["hosts"]:
                    raise conflict(
                        f"Cannot add host to aggregate {aggregate_id}. Reason: Host already exists."
                    )
                aggregate["hosts"].append(host)
                return Reply(200, {"aggregate": _aggregate(aggregate)})
        raise not_found(f"Aggregate {aggregate_id} could not be found.")

    def _listed_servers(self, query: dict[str, str]) -> dict[str, Any]:
        after = list(self.servers.values())
        marker = query.get("marker")
        if marker is not None:
            if marker not in self.servers:
                raise bad_request(f"marker [{marker}] not found")
            after = after[list(self.servers).index(marker) + 1 :]
        found = [server for server in after if query.get("host", server.host) == server.host]
        limits = [int(query["limit"])] if "limit" in query else []
        limits += [self._page_size] if self._page_size else []
        page = found[: min(limits)] if limits else found
        body: dict[str, Any] = {"servers": [server.view() for server in page]}
        if len(page) < len(found):
            path = f"{self._url}/compute/v2.1/servers/detail"
            following = urlencode(query | {"marker": page[-1].id})
            body["servers_links"] = [{"rel": "next", "href": f"{path}?{following}"}]
        return body

    def _found(self, server_id: str) -> Server:
        if server_id not in self.servers:
            raise not_found(f"Instance {server_id} could not be found.")
        return self.servers[server_id]

    def _one_server(
        self, method: str, server: Server, rest: list[str], body: dict[str, Any]
    ) -> Reply:
        if method == "GET" and not rest:
            server.looked_at()
            return Reply(200, {"server": server.view()})
        if method == "POST" and rest == ["action"] and len(body) == 1:
            ((action, arguments),) = body.items()
            return self._act(server, action, arguments or {})
        raise bad_request("Unknown request")

    def _act(self, server: Server, action: str, arguments: dict[str, Any]) -> Reply:
        match action:
            case "lock" | "unlock":
                server.locked = action == "lock"
            case "os-resetState":
                server.reset_state(arguments["state"])
            case "os-stop":
                server.stop()
            case "os-start":
                server.start()
            case "evacuate":
                self._evacuate(server, arguments.get("host"))
                return Reply(200)
            case _:
                raise bad_request("Unknown request")
        return Reply(202)

    def _evacuate(self, server: Server, asked: str | None) -> None:
        server.evacuable()
        script = server.spec.get("evacuate", {})
        outcome = script.get("outcome_with_host" if asked else "outcome_without_host")
        if not self.realistic:
            server.evacuate(asked or script.get("to", _SOMEWHERE), outcome)
            return
        if any(s["host"] == server.host and s["state"] == "up" for s in self.services):
            raise bad_request(f"Compute service of {server.host} is still in use.")
        server.evacuate(self._scheduled(server, asked or script.get("to")), outcome)

    def _scheduled(self, server: Server, asked: str | None) -> str | None:
        """The host with the fewest instances among those that work, or the one asked for."""
        load = {
            s["host"]: sum(other.bound_for == s["host"] for other in self.servers.values())
            for s in self.services
            if s["binary"] == "nova-compute"
            and s["state"] == "up"
            and s["status"] == "enabled"
            and s["host"] != server.host
            and asked in (None, s["host"])
        }
        return min(load, key=lambda host: (load[host], host)) if load else None


def _service(service: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in service.items() if not key.startswith("_")}


def _aggregate(aggregate: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": aggregate["id"],
        "name": aggregate["name"],
        "hosts": list(aggregate["hosts"]),
        "metadata": {},
        "availability_zone": None,
        "deleted": False,
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, aggregate["name"])),
        "created_at": _CREATED,
        "updated_at": None,
        "deleted_at": None,
    }
