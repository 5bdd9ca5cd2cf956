"""Applications drawn from a short description, one at a time, in order of submission.

A description and a seed give the same applications in every iteration. Every quantity of every entry has its
own random stream: another distribution of run times does not change the arrivals.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, takewhile
from typing import Any

import attrs

from yunikorn.resources import Resource
from yunikorn_lab.simulation.arrivals import Arrivals, Poisson, Process, Regular
from yunikorn_lab.simulation.distributions import DrawnAmounts, WeightedChoice
from yunikorn_lab.simulation.rng import Streams, streams
from yunikorn_lab.simulation.workload import NO_TAGS, WorkloadApplication, WorkloadTaskGroup

MANY = 10_000_000
"""Maximum number of applications of a scenario."""

SHARED = 20_000
"""Maximum number of cached resource amounts that equal tasks share."""


@attrs.frozen
class TaskPlan:
    """Distributions of the tasks of one task group."""

    name: str
    count: DrawnAmounts
    resources: Mapping[str, DrawnAmounts] | WeightedChoice[Resource]
    """Amounts drawn per resource type, or a choice of complete resource sets."""
    runtime: DrawnAmounts
    priority: WeightedChoice[int] | None = None
    tags: Mapping[str, str] = NO_TAGS
    timeout: int = 0
    startup: int | None = None
    """Time (ns) from placement to the begin of the run time; None for that of the workload."""


@attrs.frozen
class ApplicationPlan:
    """An entry of a description: applications of one kind."""

    pattern: WorkloadApplication
    """Common properties; `id` is the prefix of all ids, `submit` the earliest possible submission (ns)."""
    process: Process
    tasks: tuple[TaskPlan, ...]
    count: int = MANY + 1
    """Maximum number of applications; by default one more than a scenario may have."""
    during: int | None = None
    """Duration (ns) of the arrivals; None for no limit other than `count`."""
    queue: WeightedChoice[str] | None = None
    user: WeightedChoice[str] | None = None

    def moments(self, of: Streams) -> Iterator[int]:
        """Yield the submission times (ns)."""
        found: Iterator[int] = islice(self.process.moments(of), self.count)
        first, during = self.pattern.submit, self.during
        if during is not None:
            found = takewhile(lambda moment: moment <= during, found)
        return (first + moment for moment in found)

    def known_size(self) -> int:
        """Return the number of applications as far as it is known without counting; else 0.

        It is approximate where far too many arrive, so that the answer to them does not take minutes.
        """
        if self.during is None:
            return self.count
        if self.count <= MANY or not isinstance(self.process, Regular | Poisson):
            return 0
        about = self.during // max(self.process.every, 1)
        return about if about > 2 * MANY else 0

    def size(self, of: Streams) -> int:
        """Return the number of applications."""
        if self.during is None:
            return self.count
        return sum(1 for _ in self.moments(of))

    def applications(self, of: Streams, size: int) -> Iterator[WorkloadApplication]:
        """Yield all applications; `size` is their number."""
        pattern = self.pattern
        common = {field.name: getattr(pattern, field.name) for field in attrs.fields(WorkloadApplication)}
        width = len(str(size))
        groups = [_Group(plan, of) for plan in self.tasks]
        choose = {key: (choice, of(key)) for key, choice in self._choices()}
        for number, moment in enumerate(self.moments(of), 1):
            drawn: dict[str, Any] = {key: choice.draw(rng) for key, (choice, rng) in choose.items()}
            tasks = tuple([group.draw() for group in groups])
            name = f"{pattern.id}-{number:0{width}}"
            yield WorkloadApplication(**{**common, "id": name, "submit": moment, "tasks": tasks, **drawn})

    def _choices(self) -> Iterator[tuple[str, WeightedChoice[str]]]:
        if self.queue is not None:
            yield "queue", self.queue
        if self.user is not None:
            yield "user", self.user


class _Group:
    """A generator of one task group, called once per application."""

    def __init__(self, plan: TaskPlan, of: Streams) -> None:
        self._plan = plan
        name = plan.name
        self._count, self._runtime, self._priority, self._size = (
            of(f"{name} {what}") for what in ("count", "runtime", "priority", "size")
        )
        drawn = {} if isinstance(plan.resources, WeightedChoice) else plan.resources
        self._amounts = [(kind, amounts, of(f"{name} {kind}")) for kind, amounts in drawn.items()]
        self._known: dict[tuple[int, ...], Resource] = {}

    def draw(self) -> WorkloadTaskGroup:
        plan = self._plan
        return WorkloadTaskGroup(
            plan.name,
            plan.count.draw(self._count),
            self._resources(),
            plan.runtime.draw(self._runtime),
            plan.priority.draw(self._priority) if plan.priority is not None else None,
            plan.tags,
            plan.timeout,
            startup=plan.startup,
        )

    def _resources(self) -> Resource:
        sizes = self._plan.resources
        if isinstance(sizes, WeightedChoice):
            return sizes.draw(self._size)
        key = tuple([amounts.draw(rng) for _, amounts, rng in self._amounts])
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= SHARED:
                self._known.clear()
            kinds = (kind for kind, _, _ in self._amounts)
            found = self._known[key] = Resource(zip(kinds, key, strict=True))
        return found


class Generated(Arrivals):
    """The applications of all plans, merged with those `given` explicitly, in order of submission."""

    def __init__(
        self, given: Sequence[WorkloadApplication], plans: Sequence[ApplicationPlan], seed: int
    ) -> None:
        self._given = given
        self._plans = plans
        self._streams = streams(seed)

    @cached_property
    def sizes(self) -> list[int]:
        """Number of applications per plan."""
        return [plan.size(self._of(plan)) for plan in self._plans]

    def __len__(self) -> int:
        return len(self._given) + sum(self.sizes)

    def __iter__(self) -> Iterator[WorkloadApplication]:
        made = [
            plan.applications(self._of(plan), size)
            for plan, size in zip(self._plans, self.sizes, strict=True)
        ]
        return heapq.merge(self._given, *made, key=lambda application: application.submit)

    def _of(self, plan: ApplicationPlan) -> Streams:
        all_of = self._streams
        return lambda name: all_of(f"{plan.pattern.id} {name}")
