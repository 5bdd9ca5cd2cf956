"""Applications that are drawn from a short description, one by one, in order of time.

A description and a seed give the same applications whenever they are gone through. Every quantity of every
entry has a stream of numbers of its own: with another distribution of run times the arrivals stay what they
are.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, takewhile

import attrs

from yunikorn.resources import Resource
from yunikorn.simulation.arrival_processes import Process
from yunikorn.simulation.arrivals import Arrivals
from yunikorn.simulation.distributions import Constant, Distribution, Uniform, WeightedChoice
from yunikorn.simulation.rng import Rng, Streams, streams
from yunikorn.simulation.workload import NO_TAGS, WorkloadApplication, WorkloadTaskGroup

MANY = 10_000_000
"""So many applications one entry makes at most."""

SHARED = 20_000
"""So many different amounts are kept to be shared by equal tasks."""


@attrs.frozen
class Amounts:
    """Whole amounts of a distribution: multiples of `step` from `low` to `high`; what is outside is cut."""

    distribution: Distribution
    step: int
    low: int
    high: int

    def draw(self, rng: Rng) -> int:
        """The next amount."""
        of, step = self.distribution, self.step
        if isinstance(of, Constant):
            amount = round(of.value)
        elif isinstance(of, Uniform):
            first = round(of.low)
            amount = first + int(rng() * ((round(of.high) - first) // step + 1)) * step
        else:
            amount = int(max(of.draw(rng), 0.0) / step + 0.5) * step
        return min(max(amount, self.low), self.high)


@attrs.frozen
class TaskPlan:
    """What the tasks of one group are like in each application."""

    name: str
    count: Amounts
    resources: Mapping[str, Amounts] | WeightedChoice[Resource]
    """Each type drawn by itself, or all together from a choice of sizes."""
    runtime: Amounts
    priority: WeightedChoice[int] | None = None
    tags: Mapping[str, str] = NO_TAGS
    timeout: int = 0


@attrs.frozen
class ApplicationPlan:
    """An entry of a description: applications of one kind."""

    pattern: WorkloadApplication
    """What they have in common; its id begins theirs, and its `submit` is when the first can come."""
    process: Process
    tasks: tuple[TaskPlan, ...]
    count: int = MANY
    """How many come at most."""
    during: int | None = None
    """For how long (ns) they come; None is until there are `count`."""
    queue: WeightedChoice[str] | None = None
    user: WeightedChoice[str] | None = None

    def moments(self, of: Streams) -> Iterator[int]:
        """When they arrive."""
        found: Iterator[int] = islice(self.process.moments(of), self.count)
        first, during = self.pattern.submit, self.during
        if during is not None:
            found = takewhile(lambda moment: moment <= during, found)
        return (first + moment for moment in found)

    def size(self, of: Streams) -> int:
        """How many there are."""
        if self.during is None:
            return self.count
        return sum(1 for _ in self.moments(of))

    def applications(self, of: Streams, size: int) -> Iterator[WorkloadApplication]:
        """All of them; `size` is how many there are."""
        pattern = self.pattern
        width = len(str(size))
        groups = [_Group(plan, of) for plan in self.tasks]
        choose = {key: (choice, of(key)) for key, choice in self._choices()}
        for number, moment in enumerate(self.moments(of), 1):
            drawn = {key: choice.draw(rng) for key, (choice, rng) in choose.items()}
            yield WorkloadApplication(
                id=f"{pattern.id}-{number:0{width}}",
                submit=moment,
                tasks=tuple([group.draw() for group in groups]),
                queue=drawn.get("queue", pattern.queue),
                user=drawn.get("user", pattern.user),
                groups=pattern.groups,
                partition=pattern.partition,
                tags=pattern.tags,
                gang=pattern.gang,
                patience=pattern.patience,
                timeout=pattern.timeout,
                preempted=pattern.preempted,
            )

    def _choices(self) -> Iterator[tuple[str, WeightedChoice[str]]]:
        if self.queue is not None:
            yield "queue", self.queue
        if self.user is not None:
            yield "user", self.user


class _Group:
    """Draws the tasks of one group, application after application."""

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
    """The applications of all plans, and those that are `given` one by one, in order of time."""

    def __init__(
        self, given: Sequence[WorkloadApplication], plans: Sequence[ApplicationPlan], seed: int
    ) -> None:
        self._given = given
        self._plans = plans
        self._streams = streams(seed)

    @cached_property
    def sizes(self) -> list[int]:
        """How many each plan makes."""
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
