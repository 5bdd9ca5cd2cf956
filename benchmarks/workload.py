"""Workload of a benchmark: numbers of nodes, queues, applications and tasks, and their distribution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from benchmarks.configuration import leaf_names, queues_yaml, with_keys_of
from benchmarks.failure import BenchmarkFailure
from yunikorn.interface.constants import GANG_TOPOLOGY_TAG
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    NewNodeInfo,
    UpdateRequest,
    UserGroupInformation,
)
from yunikorn.resources import Resource

RM = "benchmark"
SELECTOR_TAG = "yunikorn.apache.org/node-selector"
ZONES = ("east", "west")
RACK = 40
"""Number of nodes per rack."""
LEVELS = ("building", "block", "rack")
_positive = attrs.validators.ge(1)


@attrs.frozen
class Workload:
    """Round-robin distribution of applications to queues, of tasks to applications, and of sizes to tasks.

    With one size, an ask is memory 10 and vcore 1 milli, and a node holds tasks / nodes + 1 asks. With K
    sizes, size k = 0 .. K-1 is memory 10 (k + 1) and vcore K - k milli; a node holds `slack` times the total
    demand / nodes, plus `spare` times the largest ask. Every leaf is guaranteed an equal part of the total
    demand.
    """

    nodes: int = attrs.field(default=5_000, validator=_positive)
    tasks: int = attrs.field(default=10_000, validator=_positive)
    queues: int = attrs.field(default=2, validator=_positive)
    applications: int = attrs.field(default=2, validator=_positive)
    sizes: int = attrs.field(default=1, validator=_positive)
    app_sort: str = "fifo"
    node_sort: str = "fair"
    queue_sort: str = "fair"
    predicates: tuple[str, ...] = ()
    mixed: bool = False
    """True if every application, and hence every queue, has tasks of all sizes."""
    tags: Mapping[str, str] = attrs.field(factory=dict)
    """Further tags of the applications."""
    preemption: str = "standard"
    sink: str = ""
    """Event sink that receives all events, as YAML of `events.sinks`; empty for none."""
    stored: bool = False
    """True if the scheduler keeps its latest events in a store."""
    recorded: bool = False
    """True if a history of the scheduler is recorded in SQLite."""
    metrics: bool = False
    """True if the scheduler counts and measures for metrics."""
    stats: bool = False
    """True if the calls of plugins are counted and measured, as by `yunikorn serve --stats`."""
    levels: int = 0
    """Number of levels of the topology; gangs then require the innermost one."""
    rack: int = attrs.field(default=RACK, validator=_positive)
    """Number of nodes of a rack."""
    one_zone: bool = False
    """True if the applications select the first of two zones; every second node is in the other zone."""
    one_in: int = attrs.field(default=1, validator=_positive)
    """Every node of this number accepts tasks, if the predicate `one-slot` is named."""
    slack: float = 1.25
    spare: int = 2
    samples: int = attrs.field(default=1_000, validator=_positive)
    """Number of latency samples of a case."""
    idle_rms: int = 0
    """Number of other registered resource managers without work."""
    plugins: bool = False
    """True to load the installed plugins of others as well."""
    example: str = ""
    """Package of examples/ whose plugins are registered; empty for none."""
    config: str = ""
    """Path of a queues.yaml whose keys, except its queues, replace those of the case; empty for none."""

    @property
    def asked(self) -> list[Resource]:
        """Resources of a task, by size."""
        if self.sizes == 1:
            return [Resource(memory=10, vcore=1)]
        return [Resource(memory=10 * (size + 1), vcore=self.sizes - size) for size in range(self.sizes)]

    @property
    def demand(self) -> dict[str, int]:
        """Total resources of all tasks."""
        rounds, rest = divmod(self.tasks, self.sizes)
        total: dict[str, int] = {}
        for size, resource in enumerate(self.asked):
            for name, amount in resource.items():
                total[name] = total.get(name, 0) + amount * (rounds + (size < rest))
        return total

    @property
    def capacity(self) -> Resource:
        """Capacity of a node."""
        nodes = max(1, self.nodes // (len(ZONES) if self.one_zone else self.one_in))
        if self.sizes == 1:
            held = self.tasks // nodes + 1
            return Resource({name: amount * held for name, amount in self.asked[0].items()})
        return Resource(
            {
                name: int(self.slack * amount / nodes) + self.spare * max(ask[name] for ask in self.asked)
                for name, amount in self.demand.items()
            }
        )

    def configuration(self, raised: Mapping[int, int] | None = None) -> str:
        """Return the queues.yaml; `raised` is as in `queues_yaml`."""
        text = queues_yaml(
            self.queues,
            {name: amount // self.queues for name, amount in self.demand.items()},
            app_sort=self.app_sort,
            queue_sort=self.queue_sort,
            node_sort=self.node_sort,
            predicates=self.predicates,
            preemption=self.preemption,
            sink=self.sink,
            topology=LEVELS[-self.levels :] if self.levels else (),
            raised=raised,
        )
        return with_keys_of(text, Path(self.config)) if self.config else text

    # -- messages -----------------------------------------------------------------------------------

    def node_infos(self) -> list[NewNodeInfo]:
        """Return the nodes without allocations; with a zone and a rack if there may be predicates."""
        capacity = self.capacity
        return [
            NewNodeInfo(node_name(number), self._attributes(number), capacity) for number in range(self.nodes)
        ]

    def _attributes(self, number: int) -> dict[str, str]:
        if not (self.predicates or self.config or self.levels):
            return {}
        zone, slot, rack = ZONES[number % len(ZONES)], number % self.one_in, number // self.rack
        above = {"building": f"b{rack // 25}", "block": f"b{rack // 5}"} if self.levels else {}
        return {"zone": zone, "rack": f"r{rack}", "slot": str(slot), **above}

    def application_requests(self) -> list[AddApplicationRequest]:
        """Return the submissions of all applications."""
        leaves = leaf_names(self.queues)
        required = {GANG_TOPOLOGY_TAG: LEVELS[-1]} if self.levels else {}
        tags = {**self.tags, **required, **({SELECTOR_TAG: f"zone={ZONES[0]}"} if self.one_zone else {})}
        ugi = UserGroupInformation("user", ["group"])
        return [
            AddApplicationRequest(app_name(number), leaves[number % self.queues], ugi=ugi, tags=tags)
            for number in range(self.applications)
        ]

    def size(self, task: int) -> int:
        """Return the index of a task's size."""
        return (task + task // self.applications if self.mixed else task) % self.sizes

    def ask(self, task: int, asked: list[Resource]) -> AllocationAsk:
        """Return the request of a task."""
        return AllocationAsk(
            f"t{task}", app_name(task % self.applications), resource_ask=asked[self.size(task)]
        )

    def ask_updates(self) -> Iterator[UpdateRequest]:
        """Yield all asks, one update per application."""
        asked = self.asked
        for app in range(self.applications):
            tasks = range(app, self.tasks, self.applications)
            yield UpdateRequest(RM, asks=[self.ask(task, asked) for task in tasks])

    # -- checking -----------------------------------------------------------------------------------

    def verify(
        self, placed: Mapping[str, tuple[str, str]], capacity: Mapping[str, int] | None = None
    ) -> None:
        """Check that every task is placed and no node is over its capacity. Raises `BenchmarkFailure`.

        `placed` maps an allocation key to uuid and node.
        """
        missing = sum(f"t{task}" not in placed for task in range(self.tasks))
        if missing:
            raise BenchmarkFailure(f"{missing:,} of {self.tasks:,} tasks got no place")
        asked, used = self.asked, dict[str, dict[str, int]]()
        for key, (_, node) in placed.items():
            amounts = used.setdefault(node, {})
            for name, amount in asked[self.size(int(key[1:]))].items():
                amounts[name] = amounts.get(name, 0) + amount
        limit = self.capacity if capacity is None else capacity
        for node, amounts in used.items():
            if any(amount > limit.get(name, 0) for name, amount in amounts.items()):
                raise BenchmarkFailure(f"node {node} was given {amounts}, it has {dict(limit)}")


def node_name(number: int) -> str:
    """Return the id of a node."""
    return f"n{number:05}"


def app_name(number: int) -> str:
    """Return the id of an application."""
    return f"a{number}"
