"""One simulated instance: its state, and the scripts by which that changes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from masakari_ng.demo.cloud_reply import conflict

RUNNING, SHUTDOWN = 1, 4
SCRIPTS = ("evacuate", "stop", "start")
_EVACUABLE = ("active", "stopped", "error")
_STATUS = {
    "active": "ACTIVE",
    "stopped": "SHUTOFF",
    "error": "ERROR",
    "resized": "VERIFY_RESIZE",
    "rescued": "RESCUE",
}


@dataclass(slots=True)
class _Change:
    """Something that will happen: after so many looks, or at a moment of the clock."""

    apply: Callable[[], None]
    polls: int | None
    due: float | None


class Server:
    """One instance.

    `evacuate`, `stop` and `start` of its description are small scripts:

    * `polls`: GETs of the instance that pass before the change is visible (default 1), or
      `seconds`: time that it takes by the cloud's clock
    * `outcome`: `ok` (default), `never` (no change), `error` (vm_state error)
    * `to`, `node` (evacuate only): destination when the request names none; hypervisor_hostname
      after the move
    * `outcome_with_host`, `outcome_without_host` (evacuate only): outcome by kind of request
    * `restart_polls` (stop only): the instance becomes active again so many GETs later

    Args:
        spec: description; keys as the public attributes, `hypervisor_hostname` for `node`.
        now: reads the cloud's clock, in seconds.
        realistic: task states show what is under way and exclude other actions.
    """

    def __init__(
        self, spec: dict[str, Any], *, now: Callable[[], float], realistic: bool = False
    ) -> None:
        self.spec = spec
        self.id: str = spec["id"]
        self.name: str = spec["name"]
        self.host: str = spec["host"]
        self.node: str = spec.get("hypervisor_hostname", self.host)
        self.vm_state: str = spec.get("vm_state", "active")
        self.task_state: str | None = spec.get("task_state")
        off = self.vm_state in ("stopped", "shelved_offloaded")
        self.power_state: int = spec.get("power_state", SHUTDOWN if off else RUNNING)
        self.locked: bool = spec.get("locked", False)
        self.metadata: dict[str, str] = spec.get("metadata", {})
        self._now = now
        self._realistic = realistic
        self._pending: list[_Change] = []
        self._target: str | None = None

    @property
    def bound_for(self) -> str:
        """The host that has set resources aside for it."""
        return self._target or self.host

    def patch(self, changes: dict[str, Any]) -> None:
        """Change state or scripts from outside, without any rule."""
        for key, value in changes.items():
            if key in SCRIPTS:
                self.spec[key] = value
            else:
                setattr(self, "node" if key == "hypervisor_hostname" else key, value)

    def looked_at(self) -> None:
        """One GET of this instance has arrived."""
        due = [change for change in self._pending if change.polls is not None and change.polls <= 0]
        self._pending = [change for change in self._pending if change not in due]
        for change in self._pending:
            if change.polls is not None:
                change.polls -= 1
        for change in due:
            change.apply()

    def settle(self) -> None:
        """Let happen what the clock has made due."""
        now = self._now()
        due = [change for change in self._pending if change.due is not None and change.due <= now]
        self._pending = [change for change in self._pending if change not in due]
        for change in due:
            change.apply()

    def evacuable(self) -> None:
        """Refuse as Nova does unless the state allows an evacuation.

        Raises:
            RefusedError: 409.
        """
        self._allow("evacuate", _EVACUABLE, self.task_state)

    def evacuate(self, target: str | None, outcome: str | None) -> None:
        """Begin to move; `target` None means that no host would take it.

        Args:
            target: destination.
            outcome: overrides the one of the script.
        """
        script = self._script("evacuate")
        if target is None:
            outcome, target = "error", self.host
        if self._realistic:
            self.task_state = "rebuilding"
        self._target = target
        self._later(script, lambda: self._arrive(target), outcome)

    def reset_state(self, state: str) -> None:
        """What os-resetState does; a move under way goes on only where that is realistic."""
        self.vm_state, self.task_state = state, None
        if not self._realistic:
            self._pending = []

    def stop(self) -> None:
        """Begin to power off.

        Raises:
            RefusedError: 409.
        """
        self._allow("stop", ("active", "error"), self.task_state if self._realistic else None)
        if self._realistic:
            self.task_state = "powering-off"
        self._later(self._script("stop"), self._stopped)

    def start(self) -> None:
        """Begin to power on.

        Raises:
            RefusedError: 409.
        """
        self._allow("start", ("stopped",), self.task_state if self._realistic else None)
        if self._realistic:
            self.task_state = "powering-on"
        self._later(self._script("start"), self._started)

    def view(self) -> dict[str, Any]:
        """The JSON of Nova at microversion 2.53, without what nobody reads."""
        return {
            "id": self.id,
            "name": self.name,
            "metadata": self.metadata,
            "status": _STATUS.get(self.vm_state, self.vm_state.upper()),
            "locked": self.locked,
            "tenant_id": "p" * 32,
            "user_id": "u" * 32,
            "OS-EXT-STS:vm_state": self.vm_state,
            "OS-EXT-STS:task_state": self.task_state,
            "OS-EXT-STS:power_state": self.power_state,
            "OS-EXT-SRV-ATTR:host": self.host,
            "OS-EXT-SRV-ATTR:hypervisor_hostname": self.node,
            "OS-EXT-SRV-ATTR:instance_name": f"instance-{self.id[:8]}",
            "created": "2026-01-01T00:00:00Z",
            "updated": "2026-01-01T00:00:00Z",
            "addresses": {},
            "links": [],
            "image": {"id": "i", "links": []},
            "flavor": {"original_name": "m1", "vcpus": 1, "ram": 512, "disk": 1},
        }

    def _script(self, action: str) -> dict[str, Any]:
        found: dict[str, Any] = self.spec.get(action, {})
        return found

    def _allow(self, action: str, states: tuple[str, ...], task_state: str | None) -> None:
        if self.vm_state in states and not task_state:
            return
        kind = "task_state" if task_state else "vm_state"
        raise conflict(
            f"Cannot '{action}' instance {self.id} while it is in "
            f"{kind} {task_state or self.vm_state}"
        )

    def _later(
        self, script: dict[str, Any], change: Callable[[], None], outcome: str | None = None
    ) -> None:
        outcome = outcome or script.get("outcome", "ok")
        if outcome == "never":
            return
        if outcome == "error":
            change = self._fail
        if "seconds" in script:
            self._pending.append(_Change(change, None, self._now() + script["seconds"]))
        else:
            self._pending.append(_Change(change, script.get("polls", 1), None))

    def _arrive(self, host: str) -> None:
        self.host, self._target = host, None
        self.node = self._script("evacuate").get("node", host)
        self.task_state = None
        if self.vm_state == "stopped":
            self.power_state = SHUTDOWN
        else:
            self.vm_state, self.power_state = "active", RUNNING

    def _fail(self) -> None:
        self.vm_state, self.task_state, self._target = "error", None, None

    def _stopped(self) -> None:
        self.vm_state, self.power_state = "stopped", SHUTDOWN
        self._end_task("powering-off")
        script = self._script("stop")
        if "restart_polls" in script:
            self._pending.append(_Change(self._started, script["restart_polls"], None))

    def _started(self) -> None:
        self.vm_state, self.power_state = "active", RUNNING
        self._end_task("powering-on")

    def _end_task(self, own: str) -> None:
        # A task state that was set from outside stays: no action has begun it.
        if self._realistic and self.task_state == own:
            self.task_state = None
