"""Workers that a test controls: the calls of policies are made one by one, in any order, or never."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import attrs

from tests.core.kit import with_plugins
from yunikorn.api import (
    AdmissionPolicy,
    PlacementRule,
    Refused,
    Submission,
    SubmitPolicy,
    UserGroupResolver,
    Wait,
)
from yunikorn.clock import ManualClock
from yunikorn.framework.policy_calls import PolicyAnswer
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler


class ManualWorkers:
    """Calls that wait until the test makes them."""

    def __init__(self) -> None:
        self.waiting: dict[int, Callable[[], PolicyAnswer]] = {}
        self.abandoned: list[int] = []
        self.core: Scheduler | None = None

    def start(self, number: int, work: Callable[[], PolicyAnswer]) -> None:
        """Keep a call for later."""
        self.waiting[number] = work

    def abandon(self, number: int) -> str:
        """Record that the core gives a call up."""
        assert number in self.waiting
        self.abandoned.append(number)
        return "slow.py:1 in wait"

    def answer(self, number: int = 0) -> None:
        """Make the call with this number, or the oldest one, and pass the answer to the core."""
        assert self.core is not None
        number = number or next(iter(self.waiting))
        work, made = self.waiting.pop(number), []
        # An interrupt in the main thread would be one of the user.
        worker = threading.Thread(target=lambda: made.append(work()))
        worker.start()
        worker.join()
        self.core.take_policy_answer(number, made[0])

    def answer_all(self) -> int:
        """Make all calls, and those that follow from them; return their number."""
        made = 0
        while self.waiting:
            self.answer()
            made += 1
        return made


def core_with_workers(registry: Registry, make: Callable[..., Scheduler] = Scheduler) -> Scheduler:
    """Return a scheduler with `ManualWorkers`, which are its attribute `manual_workers`."""
    workers: Any = ManualWorkers()
    core: Any = make(registry, ManualClock(), workers=workers)
    core.manual_workers = workers
    workers.core = core
    return core  # type: ignore[no-any-return]


class Groups(UserGroupResolver):
    """Knows the groups of every user but one; counts its calls."""

    name = "groups"
    calls: ClassVar[list[str]] = []

    def groups(self, user: str) -> Sequence[str] | None:
        self.calls.append(user)
        return None if user == "nobody" else [f"group-of-{user}"]


class Site(SubmitPolicy):
    """Moves, tags or rejects applications as their tags say."""

    name = "site"
    seen: ClassVar[list[Submission]] = []

    def submit(self, app: Submission) -> Any:
        self.seen.append(app)
        return answer_of(app)


class Fast(Site):
    """The same without workers, for another tag."""

    name = "fast"
    blocking = False

    def submit(self, app: Submission) -> Any:
        self.seen.append(app)
        return answer_of(app, "fast")


class Licence(AdmissionPolicy):
    """Admits, holds or rejects applications as their tags say."""

    name = "licence"
    blocking = True
    seen: ClassVar[list[Any]] = []

    def admit(self, app: Any) -> Any:
        self.seen.append(app)
        said = app.tags.get("licence", "")
        if said == "raise":
            raise SystemExit(3)
        return Wait(float(said), "no licence is free") if said.isdecimal() else said or None


class Directory(PlacementRule):
    """Names the queue that a tag of an application says, or answers otherwise as the tag says."""

    name = "directory"
    blocking = True
    seen: ClassVar[list[Any]] = []

    def place(self, app: Any) -> Any:
        self.seen.append(app)
        said = app.tags.get("directory", "")
        if said == "raise":
            raise ConnectionError("the directory is away")
        if said == "half":
            return "half a character: \ud800"
        if said == "lie":
            return 7
        return Refused("no project") if said == "refuse" else said or None


def answer_of(app: Submission, tag: str = "site") -> Any:
    """Return the answer that a tag of an application demands."""
    said = app.tags.get(tag, "")
    if said == "exit":
        raise SystemExit(0)
    if said == "interrupt":
        raise KeyboardInterrupt
    if said == "raise":
        raise ValueError("the site is closed")
    if said == "half":
        return "half a character: \ud800"
    if said == "lie":
        return 7
    if said == "steal":
        return attrs.evolve(app, user="root")
    if said.startswith("to "):
        return attrs.evolve(app, queue_name=said[3:], tags={**app.tags, "by": tag}, priority=5)
    return said or None


def registry_of(*more: type[Any]) -> Registry:
    """Return a registry with the policies of this module, and further submit policies."""
    for cls in (Groups, Site, Licence, Directory):
        _clear(cls)
    return with_plugins(
        user_group_resolvers=[Groups],
        submit_policies=[Site, Fast, *more],
        admission_policies=[Licence],
        placement_rules=[Directory],
    )


def _clear(cls: Any) -> None:
    for name in ("calls", "seen"):
        found: Any = cls.__dict__.get(name)
        if isinstance(found, list):
            found.clear()


def rejections(responses: Iterable[Any]) -> dict[str, str]:
    """Return the reasons of all rejected applications by id."""
    return {one.application_id: one.reason for each in responses for one in each.rejected_applications}


def acceptances(responses: Iterable[Any]) -> list[str]:
    """Return all accepted applications, in order."""
    return [one.application_id for each in responses for one in each.accepted_applications]
