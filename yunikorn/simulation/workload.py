"""Workloads: nodes, arriving applications, node events and reloads of the configuration.

All readers produce these plain values, and the engine simulates them. Times are nanoseconds of simulated
time, starting at 0. Quantities are as in `yunikorn.resources`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence

import attrs

from yunikorn.model.gang import ATOMIC
from yunikorn.resources import INT64_MAX, NOTHING, Resource, multiply, sum_of
from yunikorn.simulation.config_events import ConfigEvent

FOREVER = INT64_MAX
"""Run time of a task that does not end by itself."""

NO_TAGS: Mapping[str, str] = {}

RESTART, FAIL = "restart", "fail"
PREEMPTED = (RESTART, FAIL)
"""Policies for preempted tasks: restart from the beginning, or fail."""


@attrs.frozen(slots=True)
class WorkloadNode:
    """A node as registered with the core."""

    name: str
    resources: Resource
    attributes: Mapping[str, str] = NO_TAGS
    partition: str = ""
    """Partition of the node; empty for the default partition."""


class NodeEventKind(enum.Enum):
    """Kinds of node events."""

    ADD = "add"
    DRAIN = "drain"
    RESUME = "resume"
    REMOVE = "remove"
    CAPACITY = "capacity"


@attrs.frozen(slots=True)
class NodeEvent:
    """A node event; `resources` is the new capacity for the kind `CAPACITY`."""

    at: int
    change: NodeEventKind
    node: WorkloadNode
    """Node as registered; for other kinds than `ADD` the earlier registration."""
    resources: Resource = NOTHING


@attrs.frozen(slots=True)
class WorkloadTaskGroup:
    """Equal tasks of an application."""

    name: str
    count: int
    resources: Resource
    runtime: int
    """Run time (ns) of each task; `FOREVER` for tasks that do not end by themselves."""
    priority: int | None = None
    tags: Mapping[str, str] = NO_TAGS
    timeout: int = 0
    """Execution timeout (ns) after which the core ends a task; 0 for none."""


@attrs.frozen(slots=True)
class WorkloadApplication:
    """An application that is submitted at `submit` (ns) together with the asks for all its tasks."""

    id: str
    submit: int
    tasks: tuple[WorkloadTaskGroup, ...]
    queue: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    partition: str = ""
    tags: Mapping[str, str] = NO_TAGS
    gang: str = ""
    """Gang scheduling style, `Soft`, `Hard` or `Atomic`; empty for tasks that start one by one."""
    patience: int = 0
    """Placeholder timeout (ns) of a gang; 0 for the core's default."""
    timeout: int = 0
    """Execution timeout (ns) after which the core fails the application; 0 for none."""
    preempted: str = ""
    """Policy for preempted tasks, one of `PREEMPTED`; empty for the setting of the simulation."""

    @property
    def size(self) -> int:
        """Number of tasks."""
        return sum(group.count for group in self.tasks)

    @property
    def has_placeholders(self) -> bool:
        """True if the application's tasks are asked for only after placeholders hold room for them."""
        return self.gang not in ("", ATOMIC)

    @property
    def total(self) -> Resource:
        """Sum of the resources of all tasks."""
        return sum_of(multiply(group.resources, group.count) for group in self.tasks)


@attrs.define
class Workload:
    """Input of a simulation, and remarks of the reader.

    `applications`, `events` and `reloads` are in order of time, and in the order of the input within one
    instant. `applications` may be a sequence that generates equal applications in every iteration: memory
    then does not grow with their number, but only iteration is fast.
    """

    name: str
    format: str
    nodes: list[WorkloadNode]
    applications: Sequence[WorkloadApplication]
    events: list[NodeEvent] = attrs.Factory(list)
    remarks: list[str] = attrs.Factory(list)
    """Remarks for the user in the order of the input, such as bad lines and replaced values."""
    counts: dict[str, int] = attrs.Factory(dict)
    """Numbers of skipped or replaced items of the input, by kind."""
    origin: float = 0.0
    """Time in the input (seconds) that corresponds to 0 of simulated time."""
    reloads: list[ConfigEvent] = attrs.Factory(list)
    """Configurations that replace the initial one, with their times."""

    seed: int | None = None
    """Seed of drawn values; None if nothing is drawn."""

    def all_nodes(self) -> Iterator[WorkloadNode]:
        """Yield all nodes that occur, in each capacity that occurs."""
        yield from self.nodes
        for event in self.events:
            if event.change is NodeEventKind.ADD:
                yield event.node
            elif event.change is NodeEventKind.CAPACITY:
                yield attrs.evolve(event.node, resources=event.resources)
