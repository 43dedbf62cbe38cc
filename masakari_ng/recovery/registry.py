"""Flows of tasks that are configured by name: ours, and those that others install.

Spec: recovery §11, configuration §1 (`[taskflow_driver_recovery_flows]`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from stevedore.extension import Extension
from stevedore.named import NamedExtensionManager
from taskflow.patterns import linear_flow
from taskflow.retry import Retry
from taskflow.task import Task

from masakari_ng.compute.upstream import UpstreamNova
from masakari_ng.recovery.task import RecoveryContext, RecoveryTask

_NAMESPACE = "masakari.task_flow.tasks"
_OURS = "masakari_ng."


def flow(
    name: str,
    phases: Mapping[str, Sequence[str]],
    context: RecoveryContext,
    *,
    retry: Retry | None = None,
    **keywords: object,
) -> linear_flow.Flow:
    """A linear flow of three: `pre_tasks`, `main_tasks`, `post_tasks`.

    Args:
        name: of the whole flow.
        phases: names of entry points under `pre`, `main` and `post`.
        context: for the tasks.
        retry: decides whether the main tasks are tried again; they are named for it then.
        keywords: what a plug-in's constructor gets besides `context` and `novaclient`.

    Raises:
        KeyError: a phase is missing.
    """
    whole = linear_flow.Flow(name)
    for phase in ("pre", "main", "post"):
        if retry and phase == "main":
            part = linear_flow.Flow(f"retry_{name}", retry=retry)
        else:
            part = linear_flow.Flow(f"{phase}_tasks")
        part.add(*(made(kind, context, **keywords) for kind in _found(phases[phase])))
        whole.add(part)
    return whole


def made(kind: type[Task], context: RecoveryContext, **keywords: object) -> Task:
    """One task; a plug-in's constructor takes upstream's keywords.

    Args:
        kind: class of the task.
        context: for the task.
        keywords: what a plug-in gets besides.
    """
    if issubclass(kind, RecoveryTask):
        return kind(context)
    return kind(context=context, novaclient=UpstreamNova(context.nova), **keywords)


def _found(names: Sequence[str]) -> list[type[Task]]:
    """Classes in the order of their names; what is not installed is left out with a warning."""
    manager: NamedExtensionManager[Any] = NamedExtensionManager(
        _NAMESPACE, names, name_order=True, conflict_resolver=prefer_ours
    )
    return [extension.plugin for extension in manager]


def prefer_ours(_namespace: str, _name: str, candidates: list[Extension[Any]]) -> Extension[Any]:
    """Upstream, installed beside us, has entry points of the same names."""
    ours = [found for found in candidates if found.entry_point.value.startswith(_OURS)]
    return (ours or candidates)[-1]
