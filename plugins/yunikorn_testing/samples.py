"""Sample nodes, queues, applications and requests, to call a plugin directly or to fill a cluster.

The samples implement the views of `yunikorn.api` and are immutable: a plugin that writes to a sample fails.
Amounts are given as in `queues.yaml` and read in the units of the scheduler.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType

import attrs

from yunikorn.api import PastService, UsageView
from yunikorn.errors import QuantityError
from yunikorn.model.creation_times import created_at
from yunikorn.quantities import parse_quantity
from yunikorn.resources import INT32_MIN, NOTHING, Resource, grow

Amount = int | str
"""Amount in configuration syntax, such as `2`, `"500m"` or `"4Gi"`."""
Amounts = Mapping[str, Amount]
NO_TEXTS: Mapping[str, str] = MappingProxyType({})
AT_DEFAULT = "root.default"


def amounts(given: Amounts) -> Resource:
    """Convert amounts to the units of the scheduler. Raises `ValueError` that names the invalid type."""
    found = {}
    for name, amount in given.items():
        try:
            found[name] = parse_quantity(name, str(amount))
        except QuantityError as error:
            raise ValueError(f"the amount of {name}: {error}") from error
    return Resource(found)


def _texts(given: Mapping[str, str] | None) -> Mapping[str, str]:
    return MappingProxyType(dict(given or {}))


@attrs.frozen(eq=False)
class NodeSample:
    """Sample that implements `yunikorn.api.Node`."""

    id: str = "node-1"
    attributes: Mapping[str, str] = NO_TEXTS
    capacity: Resource = NOTHING
    allocated: Resource = NOTHING
    occupied: Resource = NOTHING

    allocations: Mapping[str, AllocationSample] = MappingProxyType({})

    @property
    def available(self) -> Mapping[str, int]:
        """Capacity minus allocated and occupied; negative if more is in use than the capacity."""
        names = {**self.capacity, **self.allocated, **self.occupied}
        left = {
            name: self.capacity.get(name, 0) - self.allocated.get(name, 0) - self.occupied.get(name, 0)
            for name in names
        }
        return MappingProxyType(left)


@attrs.frozen(eq=False)
class UsageSample(UsageView):
    """Sample that implements `yunikorn.api.UsageView`, by kind and name of the owner."""

    owners: Mapping[tuple[str, str], Mapping[str, float]] = MappingProxyType({})

    def recent(self, kind: str, name: str) -> Mapping[str, float]:
        """Return the usage of the sample; empty for another owner."""
        return self.owners.get((kind, name), {})


SOME_USAGE = UsageSample(
    {
        ("user", "ann"): {"vcore": 7e6},
        ("group", "staff"): {"vcore": 8e6, "gpu": 0.5},
        ("queue", "root"): {"vcore": 9e6, "gpu": 0.5},
    }
)


@attrs.frozen(eq=False)
class QueueSample:
    """Sample that implements `yunikorn.api.Queue`."""

    path: str = AT_DEFAULT
    guaranteed: Resource = NOTHING
    max: Resource | None = None
    fair_max: Resource = NOTHING
    total: Resource = NOTHING
    allocated: Resource = NOTHING
    pending: Resource = NOTHING
    recent: Mapping[str, float] = MappingProxyType({})
    priority: int = 0
    properties: Mapping[str, str] = NO_TEXTS
    parent: QueueSample | None = None
    configured_max: Resource | None = None
    unused_by_siblings: Resource = NOTHING
    is_leaf: bool = True
    usage: UsageView = SOME_USAGE

    @property
    def demand(self) -> Resource:
        """Sum of `allocated` and `pending`."""
        return _together(self.allocated, self.pending)


@attrs.frozen(eq=False)
class QueueTreeSample:
    """Sample that implements `yunikorn.api.QueueTree`."""

    queues: Sequence[QueueSample] = ()

    def get(self, path: str) -> QueueSample | None:
        """Return the queue with this path, ignoring case, or None."""
        return next((queue for queue in self.queues if queue.path == path.lower()), None)

    def children(self, path: str) -> Sequence[QueueSample]:
        """Return the queues directly below `path`, sorted by name."""
        below = [queue for queue in self.queues if queue.path.rpartition(".")[0] == path.lower()]
        return sorted(below, key=lambda queue: queue.path)


@attrs.frozen(eq=False)
class ApplicationSample:
    """Sample that implements `yunikorn.api.Application`."""

    id: str = "app-1"
    user: str = "ann"
    groups: Sequence[str] = ("staff",)
    queue_name: str = AT_DEFAULT
    queue: QueueSample | None = None
    tags: Mapping[str, str] = NO_TEXTS
    state: str = "New"
    submitted: int = 0
    priority: int = INT32_MIN
    allocated: Resource = NOTHING
    pending: Resource = NOTHING
    fair_total: Resource = NOTHING
    waiting_since: int = 0
    arrival: int = 0
    allocations: Mapping[str, AllocationSample] = MappingProxyType({})
    past: PastService = attrs.field(factory=PastService)
    usage: UsageView = SOME_USAGE
    gang: str = ""
    """Style of the gang when the sample is submitted to a cluster; empty for an application without gang."""
    gang_size: Resource = NOTHING
    """Total of the gang's members."""

    @property
    def demand(self) -> Resource:
        """Sum of `allocated` and `pending`."""
        return _together(self.allocated, self.pending)

    @property
    def allocations_by_node(self) -> Mapping[str, Sequence[AllocationSample]]:
        """Allocations by the id of their node."""
        found: dict[str, list[AllocationSample]] = {}
        for one in self.allocations.values():
            found.setdefault(one.node.id, []).append(one)
        return MappingProxyType(found)


@attrs.frozen(eq=False)
class AskSample:
    """Sample that implements `yunikorn.api.Ask` and `yunikorn.api.AskClass`."""

    key: str = "ask-1"
    app: ApplicationSample = attrs.field(factory=ApplicationSample)
    resource: Resource = NOTHING
    priority: int = 0
    tags: Mapping[str, str] = NO_TEXTS
    created: int = 0
    count: int = 1
    """Number of allocations requested when the sample is submitted to a cluster."""
    task_group: str = ""
    placeholder: bool = False
    originator: bool = False
    execution_timeout: int = 0
    required_node: str = ""
    foreign: bool = False
    value: Hashable = None
    """Result of `ask_class` of a node sort policy, where the sample stands for an ask class."""


@attrs.frozen
class AskClassSample:
    """Sample that implements `yunikorn.api.AskClass`, for policies with `score(node, ask_class)`."""

    resource: Resource = NOTHING
    value: Hashable = None
    """Result of the policy's `ask_class`."""


@attrs.frozen(eq=False)
class AllocationSample:
    """Sample that implements `yunikorn.api.Allocation`."""

    uuid: str = "ask-1#1"
    node: NodeSample = attrs.field(factory=NodeSample)
    key: str = "ask-1"
    app: ApplicationSample = attrs.field(factory=ApplicationSample)
    resource: Resource = NOTHING
    priority: int = 0
    tags: Mapping[str, str] = NO_TEXTS
    placed: int = 0
    task_group: str = ""
    placeholder: bool = False
    originator: bool = False
    execution_timeout: int = 0
    foreign: bool = False

    @property
    def created(self) -> int:
        """Creation time according to the tags, else the time of placement."""
        return created_at(self.tags, self.placed)


FOREIGN_OWNER = ApplicationSample("", "", (), "", state="", arrival=-1)
"""Application of all foreign tasks."""


def _together(left: Resource, right: Resource) -> Resource:
    total = dict(left)
    grow(total, right)
    return Resource(total)


# -- builders -------------------------------------------------------------------------------------------


def node(
    id: str = "node-1",
    attributes: Mapping[str, str] | None = None,
    *,
    allocated: Amounts = NOTHING,
    occupied: Amounts = NOTHING,
    capacity: Amounts = NOTHING,
    **more: Amount,
) -> NodeSample:
    """Return a node: `node("n1", {"zone": "a"}, vcore=4, memory="8G")`.

    `capacity` is for types whose names are not Python identifiers, as in `{"nvidia.com/gpu": 2}`. Raises
    `ValueError` for an invalid amount.
    """
    return NodeSample(
        id, _texts(attributes), amounts({**capacity, **more}), amounts(allocated), amounts(occupied)
    )


def queue(
    path: str = AT_DEFAULT,
    *,
    guaranteed: Amounts = NOTHING,
    max: Amounts | None = None,
    total: Amounts = NOTHING,
    allocated: Amounts = NOTHING,
    pending: Amounts = NOTHING,
    recent: Mapping[str, float] | None = None,
    priority: int = 0,
    properties: Mapping[str, str] | None = None,
    parent: QueueSample | None = None,
    configured_max: Amounts | None = None,
    unused_by_siblings: Amounts = NOTHING,
    is_leaf: bool = True,
) -> QueueSample:
    """Return a queue for direct calls of a plugin; its `fair_max` is the total overlaid by its quota.

    `configured_max` is equal to `max` unless it is given.

    `recent` is in the units of the scheduler: milli-vcores or bytes, times seconds.
    """
    quota = None if max is None else amounts(max)
    whole = amounts(total)
    return QueueSample(
        path,
        amounts(guaranteed),
        quota,
        Resource({**whole, **(quota or {})}),
        whole,
        amounts(allocated),
        amounts(pending),
        MappingProxyType(dict(recent or {})),
        priority,
        _texts(properties),
        parent,
        quota if configured_max is None else amounts(configured_max),
        amounts(unused_by_siblings),
        is_leaf,
    )


def application(
    id: str = "app-1",
    queue_name: str = AT_DEFAULT,
    *,
    user: str = "ann",
    groups: Sequence[str] = ("staff",),
    tags: Mapping[str, str] | None = None,
    queue: QueueSample | None = None,
    state: str = "New",
    submitted: float = 0,
    waiting_since: float | None = None,
    priority: int = INT32_MIN,
    allocated: Amounts = NOTHING,
    pending: Amounts = NOTHING,
    fair_total: Amounts = NOTHING,
    arrival: int = 0,
    past: PastService | None = None,
    usage: UsageView = SOME_USAGE,
    gang: str = "",
    gang_size: Amounts = NOTHING,
) -> ApplicationSample:
    """Return an application: `application("app-1", "root.batch", user="ann")`; times are in seconds.

    A cluster uses only the id, queue, user, groups, tags and gang, and computes the other values itself.
    `gang` is `Soft`, `Hard` or `Atomic`, and `gang_size` the total of its members.
    """
    since = submitted if waiting_since is None else waiting_since
    return ApplicationSample(
        id,
        user,
        tuple(groups),
        queue_name,
        queue,
        _texts(tags),
        state,
        round(submitted * 1_000_000_000),
        priority,
        amounts(allocated),
        amounts(pending),
        amounts(fair_total),
        round(since * 1_000_000_000),
        arrival,
        past=past or PastService(),
        usage=usage,
        gang=gang,
        gang_size=amounts(gang_size),
    )


def ask(
    key: str = "ask-1",
    count: int = 1,
    *,
    app: ApplicationSample | None = None,
    priority: int = 0,
    tags: Mapping[str, str] | None = None,
    created: float = 0,
    originator: bool = False,
    task_group: str = "",
    placeholder: bool = False,
    resource: Amounts = NOTHING,
    **more: Amount,
) -> AskSample:
    """Return a request for `count` times an amount: `ask("task", 3, vcore=1, memory="2G")`.

    `app` is for direct calls of a plugin; a cluster receives the application through `submit`.
    """
    return AskSample(
        key,
        app or application(),
        amounts({**resource, **more}),
        priority,
        _texts(tags),
        round(created * 1_000_000_000),
        count,
        task_group,
        placeholder,
        originator,
    )


def allocation(ask: AskSample, node: NodeSample, uuid: str = "", *, placed: float = 0) -> AllocationSample:
    """Return the allocation of a request on a node: `allocation(ask("task", vcore=1), node("n1"))`."""
    return AllocationSample(
        uuid or f"{ask.key}#1",
        node,
        ask.key,
        ask.app,
        ask.resource,
        ask.priority,
        ask.tags,
        round(placed * 1_000_000_000),
        ask.task_group,
        ask.placeholder,
        ask.originator,
        ask.execution_timeout,
    )


def foreign_task(
    key: str,
    node: NodeSample,
    *,
    tags: Mapping[str, str] | None = None,
    priority: int = 0,
    **amounts_of: Amount,
) -> AllocationSample:
    """Return a task on a node that is not scheduled here, as passed to plugins with `counts_foreign`."""
    return AllocationSample(
        key, node, key, FOREIGN_OWNER, amounts(amounts_of), priority, _texts(tags), foreign=True
    )


def with_task(app: ApplicationSample, on: NodeSample | None = None) -> ApplicationSample:
    """Return the application with a running task, on a node `busy` by default."""
    task = allocation(ask("first", app=app, tags={"zone": "a"}, vcore=1), on or node("busy"), f"{app.id}#1")
    return attrs.evolve(app, allocated=task.resource, allocations=MappingProxyType({task.uuid: task}))


def busy_node() -> NodeSample:
    """Return a node with tasks of two applications."""
    app = with_task(application("running", tags={"team": "physics"}))
    other = ask("foreign", tags={"team": "chemistry"}, vcore=2)
    tasks = [*app.allocations.values(), allocation(other, node("busy"))]
    found = node("busy", {"zone": "a"}, vcore=8, memory="16Gi", allocated={"vcore": 3})
    return attrs.evolve(found, allocations=MappingProxyType({task.uuid: task for task in tasks}))
