"""Words in which a scene is written: who is there, what is reported, how it has to end."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

FAILED = "node-1"
RESERVE = "node-4"
HOSTS = (FAILED, "node-2", "node-3", RESERVE)
SEGMENT = "rack-1"
SUCCEEDED = "succeeded"

_DOWN = {"event": "STOPPED", "host_status": "NORMAL", "cluster_status": "OFFLINE"}


@dataclass(frozen=True, slots=True)
class Actor:
    """One instance.

    Attributes:
        then: vm_state that it must have at the end. Spec: recovery §7.4.
        state: keys as of `Server`.
        moves: what its vmoves must have come to, oldest first, as `failed, succeeded`.
    """

    name: str
    host: str
    then: str
    state: Mapping[str, Any] = field(default_factory=dict)
    moves: str = ""

    @property
    def leaves(self) -> bool:
        """It has to be on another host at the end."""
        return self.moves.endswith(SUCCEEDED)


@dataclass(frozen=True, slots=True)
class Report:
    """What a monitor reports about the failed host.

    Attributes:
        says: the event, in a sentence.
        instance: name of the actor that it is about, if any.
        hours_ago: when it happened, by the clock of the monitor.
        ends: statuses in which the notification has to rest, in this order; empty: the report has
            to be refused with 409.
    """

    says: str
    kind: str = "COMPUTE_HOST"
    payload: Mapping[str, str] = field(default_factory=lambda: _DOWN)
    instance: str = ""
    hours_ago: int = 0
    ends: tuple[str, ...] = ("finished",)


@dataclass(frozen=True, slots=True)
class Scene:
    """What is built, what happens, and what it means.

    Attributes:
        meaning: the outcome, explained in a sentence or two.
        host_dies: Nova finds the service of the failed host down; else the host goes on.
        method: recovery method of the segment.
        reserve: the last host is a reserved one.
        reserve_used: and it is no more at the end.
        maintenance: the failed host is on maintenance at the end.
        options: of `[DEFAULT]`; without `periodic_enable` nothing is retried.
        broker_away: the API finds no broker, so that the engine hears of nothing.
        forgotten: instance whose evacuation, without a host, Nova accepts and then forgets.
        remarks: what else is worth knowing.
        steps: what the operator does next.
    """

    title: str
    meaning: str
    cast: tuple[Actor, ...]
    reports: tuple[Report, ...]
    host_dies: bool = True
    method: str = "auto"
    reserve: bool = False
    reserve_used: bool = False
    maintenance: bool = True
    options: Mapping[str, object] = field(default_factory=dict)
    broker_away: bool = False
    forgotten: str = ""
    remarks: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def moving(self) -> list[Actor]:
        """Instances that have to leave their host."""
        return [actor for actor in self.cast if actor.leaves]

    def with_stuck(self, names: frozenset[str]) -> Self:
        """The same, but of these instances none comes to the end of its move."""
        stuck = {"evacuate": {"outcome": "never"}}
        cast = tuple(
            dataclasses.replace(actor, state={**actor.state, **stuck})
            if actor.name in names and actor.leaves
            else actor
            for actor in self.cast
        )
        return dataclasses.replace(self, cast=cast)
