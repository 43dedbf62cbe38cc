"""Plays a scene and judges whether it came out as it should."""

import functools
from collections.abc import Sequence
from http import HTTPStatus

from masakari_ng import errors
from masakari_ng.clock import Clock, wait_until
from masakari_ng.demo.picture import InstanceView, Picture, Summary
from masakari_ng.demo.screen import Screen
from masakari_ng.demo.script import FAILED, HOSTS, RESERVE, SEGMENT, Actor, Report, Scene
from masakari_ng.demo.site import Site
from masakari_ng.demo.stage import Stage
from masakari_ng.domain import NotificationStatus

_NOTICED_AFTER = 2.5
"""Seconds until Nova reports the service of the dead host as down."""

_LOOK = 0.2
_LIMIT = 50.0
_UNDER_WAY = frozenset({NotificationStatus.NEW, NotificationStatus.RUNNING})


class Play:
    """One scene on its stage.

    Args:
        stage: where it is played.
        scene: what.
        clock: measures and sleeps.
        screen: shows it.
    """

    def __init__(self, stage: Stage, scene: Scene, clock: Clock, screen: Screen) -> None:
        self._cloud = stage.cloud
        self._stage = stage
        self._scene = scene
        self._clock = clock
        self._screen = screen
        self._faults: list[str] = []
        self._began = 0.0

    def run(self) -> Summary:
        """Build, let things fail, watch, judge.

        Raises:
            DemoFailure: the API does not answer as it should, or a notification does not end.
        """
        scene, screen = self._scene, self._screen
        site = Site(self._stage, scene, self._clock)
        there = sum(actor.host == FAILED for actor in scene.cast)
        screen.say(scene.title, style="bold")
        spare = f", and {RESERVE} is reserved" if scene.reserve else ""
        screen.say(
            f"Segment {SEGMENT} has {', '.join(HOSTS)}{spare}; {len(scene.cast)} instances run on "
            f"them, {there} of them on {FAILED}. The recovery method is {scene.method}."
        )
        if scene.host_dies:
            self._cloud.fail_host(FAILED, seconds=_NOTICED_AFTER)
        instances, seconds = site.instances([]), 0.0
        for report in scene.reports:
            screen.begin()
            screen.say(report.says)
            if not report.ends:
                self._refused(site, report)
                continue
            picture = self._watched(site, report)
            instances, seconds = picture.instances, seconds + picture.seconds
        self._judge(site, instances)
        return self._summary(instances, seconds)

    def _refused(self, site: Site, report: Report) -> None:
        status, text = site.refusal(report)
        self._screen.say(f"The API answers {status}: {text}", 0.0, "yellow")
        if status != HTTPStatus.CONFLICT:
            self._faults.append(f"The API answered {status}, not 409.")

    def _watched(self, site: Site, report: Report) -> Picture:
        """How it looks once the notification has come to its end."""
        self._began = self._clock.monotonic()
        path = site.report(report)
        rests: list[str] = []
        ended = functools.partial(self._ended, site, path, rests)
        try:
            wait_until(ended, interval=_LOOK, timeout=_LIMIT, clock=self._clock)
        except errors.WaitTimeout as error:
            so_far = f" after {', '.join(rests)}" if rests else ""
            message = f"The notification has not ended within {_LIMIT:.0f} seconds{so_far}"
            raise errors.DemoFailure(message) from error
        if tuple(rests) != report.ends:
            self._faults.append(
                f"The notification went to {', '.join(rests)}, not to {', '.join(report.ends)}."
            )
        return self._picture(site, path)

    def _ended(self, site: Site, path: str, rests: list[str]) -> bool:
        picture = self._picture(site, path)
        self._screen.show(picture)
        if picture.status in _UNDER_WAY:
            return False
        if rests[-1:] != [picture.status]:
            rests.append(picture.status)
        retried = bool(self._scene.options.get("periodic_enable"))
        return not (retried and picture.status == NotificationStatus.ERROR)

    def _picture(self, site: Site, path: str) -> Picture:
        return site.picture(path, self._clock.monotonic() - self._began)

    # Judging.
    def _judge(self, site: Site, instances: Sequence[InstanceView]) -> None:
        for actor, instance in zip(self._scene.cast, instances, strict=True):
            self._faults += _faults(actor, instance)
            if not self._may_be(actor, instance.host):
                self._faults.append(f"{actor.name} is on {instance.host}, not on {RESERVE}.")
        wanted = self._scene.maintenance
        if site.host(FAILED)["on_maintenance"] != wanted:
            self._faults.append(f"{FAILED} is {'not ' if wanted else ''}on maintenance.")
        wanted = self._scene.reserve and not self._scene.reserve_used
        if site.host(RESERVE)["reserved"] != wanted:
            self._faults.append(f"{RESERVE} is {'not' if wanted else 'still'} reserved.")

    def _may_be(self, actor: Actor, host: str) -> bool:
        """Is what had to go to the reserve, at once or at the second attempt, nowhere else?"""
        method = self._scene.method
        bound = method == "reserved_host" or (method == "auto_priority" and ", " in actor.moves)
        return not (actor.leaves and bound) or host in (RESERVE, actor.host)

    def _summary(self, instances: tuple[InstanceView, ...], seconds: float) -> Summary:
        moving = self._scene.moving
        moved = sum(instance.host != instance.source for instance in instances)
        left = [
            instance.name
            for actor, instance in zip(self._scene.cast, instances, strict=True)
            if actor.leaves and instance.host == actor.host
        ]
        rescue = f"Find out why {', '.join(left)} did not move, and move what can be moved by hand."
        of = f"{moved} of {len(moving)}" if moving else "None of the"
        return Summary(
            headline=f"{of} instances of {FAILED} moved, in {seconds:.1f} seconds.",
            meaning="" if self._faults else self._scene.meaning,
            instances=instances,
            faults=tuple(self._faults),
            remarks=(*self._remarks(instances), *self._scene.remarks),
            steps=(*([rescue] if left else []), *self._scene.steps),
        )

    def _remarks(self, instances: Sequence[InstanceView]) -> list[str]:
        remarks = []
        others = [instance for instance in instances if instance.source != FAILED]
        stayed = sum(instance.host == instance.source for instance in others)
        if others:
            remarks.append(
                f"{stayed} of {len(others)} instances of the other hosts are where they were."
            )
        locks, unlocks = (self._cloud.requests(action).total() for action in ("lock", "unlock"))
        if locks:
            kept = [instance.name for instance in instances if instance.lock == "user"]
            users = f"; the lock that its user had put on {', '.join(kept)} was left alone"
            remarks.append(
                f"{locks} instances were locked while they moved and {unlocks} were unlocked "
                f"afterwards{users if kept else ''}."
            )
        return remarks


def _faults(actor: Actor, instance: InstanceView) -> list[str]:
    """What is wrong with one instance at the end."""
    faults = []
    if actor.leaves and instance.host == actor.host:
        faults.append(f"{actor.name} is still on {actor.host}.")
    if not actor.leaves and instance.host != actor.host:
        faults.append(f"{actor.name} has left {actor.host}.")
    if instance.now != actor.then:
        faults.append(f"{actor.name} is {instance.now}, not {actor.then}.")
    if instance.move != actor.moves:
        outcome = f"{instance.move or 'not recorded'}. {instance.reason}".strip()
        faults.append(f"The move of {actor.name} is {outcome}")
    if instance.lock != ("user" if actor.state.get("locked") else ""):
        faults.append(f"{actor.name} is locked by {instance.lock or 'nobody'}.")
    return faults
