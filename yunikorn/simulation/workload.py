"""A workload: which nodes there are, which applications arrive when, and what happens to nodes.

Plain values that every reader makes and the engine plays. Times are nanoseconds of simulated time,
counted from 0; quantities are as in `yunikorn.resources`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence

import attrs

from yunikorn.objects.gang import ATOMIC
from yunikorn.resources import INT64_MAX, NOTHING, Resource, multiply, sum_of
from yunikorn.simulation.reloads import ConfigEvent

FOREVER = INT64_MAX
"""The run time of a task that does not end by itself."""

NO_TAGS: Mapping[str, str] = {}

RESTART, FAIL = "restart", "fail"
PREEMPTED = (RESTART, FAIL)
"""What may become of a task that was preempted: it starts again from its beginning, or it has failed."""


@attrs.frozen(slots=True)
class WorkloadNode:
    """A node as it registers."""

    name: str
    resources: Resource
    attributes: Mapping[str, str] = NO_TAGS
    partition: str = ""
    """Empty is the default partition."""


class NodeEventKind(enum.Enum):
    """What can happen to a node."""

    ADD = "add"
    DRAIN = "drain"
    RESUME = "resume"
    REMOVE = "remove"
    CAPACITY = "capacity"


@attrs.frozen(slots=True)
class NodeEvent:
    """Something happens to a node; `resources` is the new amount of a `CAPACITY` change."""

    at: int
    change: NodeEventKind
    node: WorkloadNode
    """The node as it is when it joins; of an earlier one for all other changes."""
    resources: Resource = NOTHING


@attrs.frozen(slots=True)
class WorkloadTaskGroup:
    """Equal tasks of an application: how many, what each takes and how long each runs."""

    name: str
    count: int
    resources: Resource
    runtime: int
    """`FOREVER` for tasks that do not end by themselves."""
    priority: int | None = None
    tags: Mapping[str, str] = NO_TAGS
    timeout: int = 0
    """How long each may run before the core ends it; 0 is for as long as it likes."""


@attrs.frozen(slots=True)
class WorkloadApplication:
    """An application that arrives at `submit` and asks for all of its tasks at once."""

    id: str
    submit: int
    tasks: tuple[WorkloadTaskGroup, ...]
    queue: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    partition: str = ""
    tags: Mapping[str, str] = NO_TAGS
    gang: str = ""
    """Its gang scheduling style, `Soft`, `Hard` or `Atomic`; empty if its tasks start one by one."""
    patience: int = 0
    """How long the placeholders of a gang are held; 0 is as long as the core sees fit."""
    timeout: int = 0
    """How long it may run before the core lets it fail; 0 is for as long as it likes."""
    preempted: str = ""
    """What becomes of its tasks that are preempted, one of `PREEMPTED`; empty is as the simulation says."""

    @property
    def size(self) -> int:
        """How many tasks it has."""
        return sum(group.count for group in self.tasks)

    @property
    def has_placeholders(self) -> bool:
        """Whether room is gathered for it by placeholders, before its tasks are asked for."""
        return self.gang not in ("", ATOMIC)

    @property
    def total(self) -> Resource:
        """What all its tasks take together."""
        return sum_of(multiply(group.resources, group.count) for group in self.tasks)


@attrs.define
class Workload:
    """Everything that a simulation plays, and what the reader had to say about the input.

    `applications`, `events` and `reloads` are in order of time; those of one instant in the order of the
    input. `applications` may be made one by one as it is gone through, each time anew and each time equal:
    then memory does not grow with their number, and only going through it is fast.
    """

    name: str
    format: str
    nodes: list[WorkloadNode]
    applications: Sequence[WorkloadApplication]
    events: list[NodeEvent] = attrs.Factory(list)
    remarks: list[str] = attrs.Factory(list)
    """What the user should know about the input: bad lines, replaced values, in the order found."""
    counts: dict[str, int] = attrs.Factory(dict)
    """How often something in the input was skipped or replaced, by what it was."""
    origin: float = 0.0
    """The time in the input, in seconds, that is 0 of simulated time."""
    reloads: list[ConfigEvent] = attrs.Factory(list)
    """Other configurations, and from when on they are to be used."""

    seed: int | None = None
    """What it was drawn from; None if nothing was."""

    def all_nodes(self) -> Iterator[WorkloadNode]:
        """Every node that is ever there, in each capacity that it ever has."""
        yield from self.nodes
        for event in self.events:
            if event.change is NodeEventKind.ADD:
                yield event.node
            elif event.change is NodeEventKind.CAPACITY:
                yield attrs.evolve(event.node, resources=event.resources)
