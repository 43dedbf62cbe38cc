"""Nova as recovery tasks of other packages expect it: upstream's names, novaclient's answers."""

from typing import Any

from masakari_ng import errors
from masakari_ng.compute.nova import Nova, translated


class UpstreamNova:
    """Upstream's method names on our requests.

    Each method takes the context first, as upstream's do, and has no use for it: the request id
    belongs to the client. Servers, services and aggregates are novaclient's own objects. All raise
    `CloudError`. Spec: recovery §11

    Args:
        nova: does what has no answer.
    """

    def __init__(self, nova: Nova) -> None:
        self._nova = nova

    @translated()
    def get_servers(self, _context: object, host: str) -> list[Any]:
        """All servers of a host, page by page."""
        options = {"host": host, "all_tenants": True}
        found: list[Any] = self._nova.connect().servers.list(search_opts=options, limit=-1)
        return found

    @translated()
    def get_server(self, _context: object, uuid: str) -> Any:
        return self._nova.connect().servers.get(uuid)

    def evacuate_instance(self, _context: object, uuid: str, target: str | None = None) -> None:
        self._nova.evacuate(uuid, target)

    def reset_instance_state(self, _context: object, uuid: str, status: str = "error") -> None:
        self._nova.reset_state(uuid, status)

    def stop_server(self, _context: object, uuid: str) -> None:
        self._nova.stop(uuid)

    def start_server(self, _context: object, uuid: str) -> None:
        self._nova.start(uuid)

    def lock_server(self, _context: object, uuid: str) -> None:
        self._nova.lock(uuid)

    def unlock_server(self, _context: object, uuid: str) -> None:
        self._nova.unlock(uuid)

    @translated()
    def find_compute_service(self, _context: object, compute_name: str) -> Any:
        """The nova-compute service of a host; `ComputeServiceNotFound` if there is none."""
        found = self._nova.connect().services.list(compute_name, "nova-compute")
        if not found:
            raise errors.ComputeServiceNotFound(compute_name)
        return found[0]

    def enable_disable_service(
        self, _context: object, host_name: str, enable: bool = False, reason: str | None = None
    ) -> None:
        """Enable or disable the nova-compute service of a host."""
        id = self._nova.service(host_name).id
        if enable:
            self._nova.enable_service(id)
        else:
            self._nova.disable_service(id, reason)

    def is_service_disabled(
        self, _context: object, host_name: str, binary: str = "nova-compute"
    ) -> bool:
        return self._nova.service(host_name, binary).status == "disabled"

    @translated()
    def get_aggregate_list(self, _context: object) -> list[Any]:
        found: list[Any] = self._nova.connect().aggregates.list()
        return found

    @translated()
    def add_host_to_aggregate(self, _context: object, host: str, aggregate: Any) -> Any:
        """Put a host into an aggregate, given as an object or as its id."""
        return self._nova.connect().aggregates.add_host(aggregate, host)
