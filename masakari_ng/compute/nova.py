"""The only place that talks to Nova: one method per request. Spec: recovery §8.2, §9.1."""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from keystoneauth1 import exceptions as keystone
from keystoneauth1.session import Session
from novaclient import client as novaclient
from novaclient import exceptions as nova
from oslo_config import cfg

from masakari_ng import errors
from masakari_ng.compute import auth

_MICROVERSION = "2.53"

_TRANSLATION: tuple[tuple[tuple[type[Exception], ...], type[errors.CloudError]], ...] = (
    (
        (keystone.ConnectionError, keystone.DiscoveryFailure, nova.CommandError),
        errors.CloudUnreachable,
    ),
    ((nova.BadRequest, keystone.BadRequest), errors.CloudBadRequest),
    ((nova.Forbidden, keystone.Forbidden), errors.CloudForbidden),
    ((nova.NotFound,), errors.CloudNotFound),
    ((nova.Conflict,), errors.CloudConflict),
    ((nova.ClientException, keystone.ClientException), errors.CloudError),
)
_THEIRS = tuple(theirs for classes, _ in _TRANSLATION for theirs in classes)


@dataclass(frozen=True, slots=True)
class Server:
    """What is read of a server.

    Attributes:
        power_state: Nova's number; 4 is shut down.
        host: nova-compute service that it belongs to.
        hypervisor_hostname: node as the hypervisor names itself.
    """

    uuid: str
    name: str
    metadata: Mapping[str, str]
    locked: bool
    vm_state: str
    task_state: str | None
    power_state: int | None
    host: str | None
    hypervisor_hostname: str | None


@dataclass(frozen=True, slots=True)
class ComputeService:
    """What is read of a compute service.

    Attributes:
        status: `enabled` or `disabled`.
        state: `up` or `down`.
    """

    id: str
    host: str
    binary: str
    status: str
    state: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """What is read of a host aggregate.

    Attributes:
        hosts: nova-compute services in it.
    """

    id: str
    name: str
    hosts: tuple[str, ...]


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raise ours for theirs; the first row that matches wins."""
    try:
        yield
    except _THEIRS as error:
        ours = next(ours for theirs, ours in _TRANSLATION if isinstance(error, theirs))
        raise ours(error) from error


class Nova:
    """One method per Nova request.

    Every method raises `CloudError` or the descendant that says more: `CloudUnreachable`,
    `CloudBadRequest`, `CloudForbidden`, `CloudNotFound`, `CloudConflict`.

    Args:
        connect: gives a novaclient; called once per request.
    """

    def __init__(self, connect: Callable[[], Any]) -> None:
        self.connect = connect

    @translated()
    def services(self, host: str | None, binary: str = "nova-compute") -> list[ComputeService]:
        """Services of this name on this host, or on all; empty when Nova knows none."""
        # The client's own list keeps a completion cache in the home directory.
        query = urlencode({"host": host, "binary": binary} if host else {"binary": binary})
        _, body = self.connect().client.get(f"/os-services?{query}")
        return [_service(found) for found in body["services"]]

    def service(self, host: str, binary: str = "nova-compute") -> ComputeService:
        """The service of this name on this host.

        Raises:
            ComputeServiceNotFound: Nova knows none.
        """
        found = self.services(host, binary)
        if not found:
            raise errors.ComputeServiceNotFound(host)
        return found[0]

    @translated()
    def disable_service(self, id: str, reason: str | None) -> None:
        """Let Nova place nothing there any more.

        Args:
            id: the service.
            reason: shown to operators; None or empty sends none.
        """
        services = self.connect().services
        if reason:
            services.disable_log_reason(id, reason)
        else:
            services.disable(id)

    @translated()
    def enable_service(self, id: str) -> None:
        self.connect().services.enable(id)

    @translated()
    def servers_on(self, host: str) -> list[Server]:
        """All servers of a host, of all projects, in Nova's order, however many pages they take."""
        # The client's own list drops the link to the next page.
        client = self.connect().client
        query = urlencode({"all_tenants": True, "host": host})
        found: list[Server] = []
        while query:
            _, body = client.get(f"/servers/detail?{query}")
            found.extend(_server(server) for server in body["servers"])
            query = _next_page(body) if body["servers"] else ""
        return found

    @translated()
    def server(self, uuid: str) -> Server:
        return _server(self.connect().servers.get(uuid).to_dict())

    @translated()
    def lock(self, uuid: str) -> None:
        self.connect().servers.lock(uuid)

    @translated()
    def unlock(self, uuid: str) -> None:
        self.connect().servers.unlock(uuid)

    @translated()
    def reset_state(self, uuid: str, state: str) -> None:
        """Overwrite `vm_state` and clear `task_state`.

        Args:
            uuid: the server.
            state: `error` or `active`.
        """
        self.connect().servers.reset_state(uuid, state)

    @translated()
    def evacuate(self, uuid: str, target: str | None = None) -> None:
        """Ask for a rebuild elsewhere; Nova answers long before it is done.

        Args:
            uuid: the server.
            target: destination host; None leaves the choice to Nova's scheduler.
        """
        self.connect().servers.evacuate(uuid, host=target)

    @translated()
    def stop(self, uuid: str) -> None:
        """Ask for a shutdown; Nova answers before it is done."""
        self.connect().servers.stop(uuid)

    @translated()
    def start(self, uuid: str) -> None:
        """Ask for a start; Nova answers before it is done."""
        self.connect().servers.start(uuid)

    @translated()
    def aggregates(self) -> list[Aggregate]:
        """All host aggregates, in Nova's order."""
        _, body = self.connect().client.get("/os-aggregates")
        return [
            Aggregate(id=str(found["id"]), name=found["name"], hosts=tuple(found["hosts"]))
            for found in body["aggregates"]
        ]

    @translated()
    def add_host(self, aggregate: str, host: str) -> None:
        """Put a host into an aggregate; `CloudConflict` if it is in it already.

        Args:
            aggregate: its id.
            host: name of the nova-compute service.
        """
        self.connect().aggregates.add_host(aggregate, host)


class Cloud:
    """The way to Nova: one session for the whole process, made at the first request.

    Args:
        conf: options.
        threads: requests at once.
    """

    def __init__(self, conf: cfg.ConfigOpts, *, threads: int = 10) -> None:
        self._conf = conf
        self._threads = threads
        self._session: Session | None = None
        self._lock = threading.Lock()

    def nova(self, global_request_id: str) -> Nova:
        """Nova on the shared session.

        Args:
            global_request_id: under which Nova logs the requests.
        """
        return Nova(functools.partial(self._client, self._shared, global_request_id))

    def fresh_nova(self, global_request_id: str) -> Nova:
        """As `nova`, with a new token for each request."""
        return Nova(functools.partial(self._client, self._fresh, global_request_id))

    @translated()
    def log_in(self) -> None:
        """Get a token from Keystone, which Nova need not see."""
        self._shared().get_token()

    def _client(self, session: Callable[[], Session], global_request_id: str) -> Any:
        kind, name, interface = self._conf.nova_catalog_admin_info.split(":")
        return novaclient.Client(
            _MICROVERSION,
            session=session(),
            service_type=kind,
            service_name=name,
            endpoint_type=interface,
            region_name=self._conf.os_region_name,
            global_request_id=global_request_id,
        )

    def _shared(self) -> Session:
        with self._lock:
            if self._session is None:
                self._session = auth.make_session(self._conf, self._threads)
            return self._session

    def _fresh(self) -> Session:
        return auth.anew(self._conf, self._shared())


def _server(data: Mapping[str, Any]) -> Server:
    return Server(
        uuid=data["id"],
        name=data["name"],
        metadata=data.get("metadata") or {},
        locked=bool(data.get("locked")),
        vm_state=data["OS-EXT-STS:vm_state"],
        task_state=data["OS-EXT-STS:task_state"],
        power_state=data.get("OS-EXT-STS:power_state"),
        host=data.get("OS-EXT-SRV-ATTR:host"),
        hypervisor_hostname=data.get("OS-EXT-SRV-ATTR:hypervisor_hostname"),
    )


def _service(data: Mapping[str, Any]) -> ComputeService:
    return ComputeService(
        id=str(data["id"]),
        host=data["host"],
        binary=data["binary"],
        status=data["status"],
        state=data["state"],
    )


def _next_page(body: Mapping[str, Any]) -> str:
    """Query of the next page, empty after the last one.

    Only the query is taken: behind a proxy, Nova's links may name a host that we cannot reach.
    """
    links = (link["href"] for link in body.get("servers_links", ()) if link["rel"] == "next")
    return urlsplit(next(links, "")).query
