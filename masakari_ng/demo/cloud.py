"""A simulated cloud: Keystone v3 and Nova over real HTTP on loopback.

It changes the state of servers the way Nova would, obeys scripts and faults, and records every
request. The demo runs on it, and every test that needs Nova.
"""

import copy
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Self

from masakari_ng.demo import cloud_faults
from masakari_ng.demo.cloud_faults import Faults, Frame
from masakari_ng.demo.cloud_http import Answer, CloudListener
from masakari_ng.demo.cloud_keystone import Keystone
from masakari_ng.demo.cloud_nova import Nova
from masakari_ng.demo.cloud_reply import RefusedError, Reply, Request, not_found
from masakari_ng.demo.cloud_server import Server

_UNAUTHORIZED = Reply(401, {"error": {"code": 401, "message": "no token"}})


class SimulatedCloud:
    """The whole cloud; its description (`reset`) has these keys, all optional.

    * `servers`: see `Server`; `services`: `host`, `id`, `binary`, `state`, `status`, `sticky`
      (updates are answered but not done); `aggregates`: `id`, `name`, `hosts`
    * `faults`: see `Faults`; they work from `arm_faults()` on
    * `realistic`: task states show what is under way, an evacuation is refused while the source's
      service is `up`, and instances go where a service is up and enabled
    * `page_size`: greatest length of a page of servers
    * `token_seconds`: lifetime of tokens; `catalog_name`: name of Nova in the catalog;
      `instance_ha`: root of masakari-ng's API there, without the project's id
    * `tokens`: role by token, of tokens that nobody has to ask for

    Args:
        host: address to listen on.
        port: 0 takes a free one.
        realistic: as the key, for every description that does not say otherwise.
        monotonic: the clock of scripts with `seconds`.
    """

    matches = staticmethod(cloud_faults.matches)

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        realistic: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lock = threading.RLock()
        self._realistic = realistic
        self._now = monotonic
        self._stopped = threading.Event()
        self._listener = CloudListener((host, port), self._decide, self._stopped.wait)
        self.url = f"http://{host}:{self._listener.server_address[1]}"
        self._keystone = Keystone(self.url, monotonic)
        self.reset({})

    def start(self) -> Self:
        """Begin to serve."""
        self._listener.begin("simulated-cloud")
        return self

    def stop(self) -> None:
        """End delays, close connections, leave no thread."""
        self._stopped.set()
        self._listener.end()

    # Scripting.
    def reset(self, spec: dict[str, Any]) -> None:
        """Forget everything but tokens and build what `spec` describes."""
        with self.lock:
            self.spec = {"realistic": self._realistic} | copy.deepcopy(spec)
            self.frames: list[Frame] = []
            self._faults = Faults()
            self._nova = Nova(self.spec, url=self.url, now=self._now)
            self._keystone.catalog_name = self.spec.get("catalog_name", "nova")
            self._keystone.lifetime = self.spec.get("token_seconds")
            self._keystone.instance_ha = self.spec.get("instance_ha")
            self._keystone.standing = self.spec.get("tokens", {})

    def arm_faults(self, faults: Sequence[dict[str, Any]] | None = None) -> None:
        """Load rules; None takes those of the description and forgets the frames so far."""
        with self.lock:
            self._faults = Faults(self.spec.get("faults", []) if faults is None else faults)
            if faults is None:
                self.frames = []

    def patch_server(self, server_id: str, changes: dict[str, Any]) -> None:
        """Change state or scripts of one server, without any rule."""
        with self.lock:
            self._nova.servers[server_id].patch(changes)

    def add_server(self, name: str, host: str = "compute-1", **state: Any) -> str:
        """One more server.

        Args:
            name: its name, from which its id is made unless `state` has one.
            host: where it is.
            state: keys as `Server` has them, for example `vm_state`, `evacuate={"seconds": 1}`.

        Returns:
            The id of the server.
        """
        made = {"id": str(uuid.uuid5(uuid.NAMESPACE_DNS, name)), "name": name, "host": host}
        with self.lock:
            return self._nova.add_server(made | state).id

    def add_service(self, host: str, **state: Any) -> None:
        """One more compute service, up and enabled unless `state` says otherwise."""
        with self.lock:
            self._nova.add_service({"host": host} | state)

    def fail_host(self, host: str, seconds: float = 0.0) -> None:
        """The host dies; Nova notices after so many seconds."""
        with self.lock:
            self._nova.fail(host, seconds)

    def revoke_tokens(self) -> None:
        """Every token issued so far is answered with 401."""
        with self.lock:
            self._keystone.revoke()

    # What can be seen from outside.
    @property
    def servers(self) -> dict[str, Server]:
        """Servers by id, as they are at this moment."""
        with self.lock:
            self._nova.settle()
            return self._nova.servers

    @property
    def services(self) -> list[dict[str, Any]]:
        """Compute services, as they are at this moment."""
        with self.lock:
            self._nova.settle()
            return self._nova.services

    @property
    def aggregates(self) -> list[dict[str, Any]]:
        """Host aggregates."""
        with self.lock:
            return self._nova.aggregates

    def requests(self, action: str, *, accepted: bool = False) -> Counter[str]:
        """How often each server was asked for an action.

        Args:
            action: key of the body: `evacuate`, `lock`, `os-stop`, ...
            accepted: count only what was answered with success.
        """
        with self.lock:
            return Counter(
                frame["path"].split("/")[-2]
                for frame in self.frames
                if frame["path"].endswith("/action")
                and cloud_faults.matches({"action": action}, frame)
                and not (accepted and _refused(frame))
            )

    def _decide(self, frame: Frame) -> Answer:
        with self.lock:
            self.frames.append(frame)
            frame["time"] = time.time()
            fault = self._faults.hit(frame)
            dropped = bool(fault.get("drop"))
            reply = _UNAUTHORIZED
            if not ("status" in fault or dropped) or fault.get("apply"):
                reply = self._handled(frame)
            if "status" in fault:
                default = {"code": fault["status"], "message": "scripted fault"}
                reply = Reply(fault["status"], fault.get("body", {"computeFault": default}))
            frame["status"] = "dropped" if dropped else reply.status
            return Answer(reply, delay=fault.get("delay", 0.0), drop=dropped)

    def _handled(self, frame: Frame) -> Reply:
        self._nova.settle()
        try:
            return self._routed(frame)
        except RefusedError as refusal:
            return refusal.reply

    def _routed(self, frame: Frame) -> Reply:
        body = frame["body"] if isinstance(frame["body"], dict) else {}
        service, *parts = frame["path"].strip("/").split("/")
        request = Request(frame["method"], tuple(parts), dict(frame["query"]), body)
        if service == "identity":
            reply = self._keystone.answer(request, frame["headers"])
            if reply:
                return reply
        if service == "compute" and parts[:1] == ["v2.1"]:
            if parts == ["v2.1"]:
                return Reply(HTTPStatus.OK, {"version": self._nova_version()})
            if not self._keystone.valid(frame["headers"]["X-Auth-Token"]):
                return _UNAUTHORIZED
            below = Request(request.method, tuple(parts[1:]), request.query, body)
            return self._nova.answer(below)
        raise not_found("Not found")

    def _nova_version(self) -> dict[str, Any]:
        return {
            "id": "v2.1",
            "status": "CURRENT",
            "version": "2.96",
            "min_version": "2.1",
            "updated": "2013-07-23T11:33:21Z",
            "links": [{"rel": "self", "href": f"{self.url}/compute/v2.1/"}],
        }


def _refused(frame: Frame) -> bool:
    status = frame["status"]
    return not isinstance(status, int) or status >= HTTPStatus.BAD_REQUEST
