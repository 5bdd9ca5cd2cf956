"""Nodes, queues, applications and requests for tests: handed to a plugin directly, or to a cluster.

Each is what a plugin sees of the scheduler's own (`yunikorn.api`), and does not change: a plugin that writes
to one fails. Amounts are given as in `queues.yaml` and read in the units of the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import attrs

from yunikorn.config.quantities import parse_quantity
from yunikorn.errors import QuantityError
from yunikorn.resources import NOTHING, Resource, grow

Amount = int | str
"""An amount as a configuration writes it: `2`, `"500m"`, `"4Gi"`."""
Amounts = Mapping[str, Amount]
LEAST_PRIORITY = -(2**31)
NO_TEXTS: Mapping[str, str] = MappingProxyType({})
AT_DEFAULT = "root.default"


def amounts(given: Amounts) -> Resource:
    """Amounts in the units of the scheduler; raises `ValueError` naming the type that cannot be read."""
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
    """A node as `yunikorn.api.Node` shows it."""

    id: str = "node-1"
    attributes: Mapping[str, str] = NO_TEXTS
    capacity: Resource = NOTHING
    allocated: Resource = NOTHING
    occupied: Resource = NOTHING

    @property
    def available(self) -> Mapping[str, int]:
        """What is left; below zero where more is in use than there is."""
        names = {**self.capacity, **self.allocated, **self.occupied}
        left = {
            name: self.capacity.get(name, 0) - self.allocated.get(name, 0) - self.occupied.get(name, 0)
            for name in names
        }
        return MappingProxyType(left)


@attrs.frozen(eq=False)
class QueueSample:
    """A queue as `yunikorn.api.Queue` shows it."""

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

    @property
    def demand(self) -> Resource:
        """What it holds and what it waits for, together."""
        return _together(self.allocated, self.pending)


@attrs.frozen(eq=False)
class ApplicationSample:
    """An application as `yunikorn.api.Application` shows it."""

    id: str = "app-1"
    user: str = "ann"
    groups: Sequence[str] = ("staff",)
    queue_name: str = AT_DEFAULT
    queue: QueueSample | None = None
    tags: Mapping[str, str] = NO_TEXTS
    state: str = "New"
    submitted: int = 0
    priority: int = LEAST_PRIORITY
    allocated: Resource = NOTHING
    pending: Resource = NOTHING
    fair_total: Resource = NOTHING
    waiting_since: int = 0

    @property
    def demand(self) -> Resource:
        """What it holds and what it waits for, together."""
        return _together(self.allocated, self.pending)


@attrs.frozen(eq=False)
class AskSample:
    """A request as `yunikorn.api.Ask` shows it; `yunikorn.api.AskClass`, too."""

    key: str = "ask-1"
    app: ApplicationSample = attrs.field(factory=ApplicationSample)
    resource: Resource = NOTHING
    priority: int = 0
    tags: Mapping[str, str] = NO_TEXTS
    created: int = 0
    count: int = 1
    """How many allocations it asks for, when it is submitted to a cluster."""


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
    """A node: `node("n1", {"zone": "a"}, vcore=4, memory="8G")`.

    `capacity` is for types that are no Python names: `{"nvidia.com/gpu": 2}`. Raises `ValueError` for an
    amount that cannot be read.
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
) -> QueueSample:
    """A queue, for a plugin that is called directly; its fair maximum is the total overlaid by its quota.

    `recent` is in the units of the scheduler: milli-cores or bytes times seconds.
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
    priority: int = LEAST_PRIORITY,
    allocated: Amounts = NOTHING,
    pending: Amounts = NOTHING,
    fair_total: Amounts = NOTHING,
) -> ApplicationSample:
    """An application: `application("app-1", "root.batch", user="ann")`, with times in seconds.

    A cluster takes its id, queue, user, groups and tags from here; all else is then the scheduler's to say.
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
    )


def ask(
    key: str = "ask-1",
    count: int = 1,
    *,
    app: ApplicationSample | None = None,
    priority: int = 0,
    tags: Mapping[str, str] | None = None,
    created: float = 0,
    resource: Amounts = NOTHING,
    **more: Amount,
) -> AskSample:
    """A request for `count` times an amount: `ask("task", 3, vcore=1, memory="2G")`.

    `app` is for a plugin that is called directly; a cluster is told the application by `submit`.
    """
    return AskSample(
        key,
        app or application(),
        amounts({**resource, **more}),
        priority,
        _texts(tags),
        round(created * 1_000_000_000),
        count,
    )
