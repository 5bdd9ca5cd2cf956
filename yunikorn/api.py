"""Public API for plugin authors: base classes, read-only views of the scheduler's objects, and `hookimpl`.

A plugin is an ordinary class with a `name`. Its typed attributes are its options. Write the class with
`attrs.frozen` (attrs is a dependency of this package), and the configuration is checked against the types
of the attributes. The scheduler passes its objects to a plugin as the read-only views below; a plugin must
not modify them.

A refusal is a normal answer: a plugin returns the reason as text. An exception is a bug in the plugin: the
scheduler reports it with the plugin's name, distribution and version, and continues without that answer.

Units: `vcore` in milli-vcores, `memory` in bytes, times in nanoseconds since 1970 unless stated otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import attrs
import pluggy

from yunikorn.resources import Resource

__all__ = [
    "AppSortPolicy",
    "Application",
    "Ask",
    "AskClass",
    "Context",
    "Event",
    "EventSink",
    "Node",
    "NodeSortPolicy",
    "PlacementRule",
    "Plugin",
    "Predicate",
    "Queue",
    "QueueSortPolicy",
    "Resource",
    "ResourceManager",
    "UserGroupResolver",
    "dotless",
    "hookimpl",
]

hookimpl = pluggy.HookimplMarker("yunikorn")
"""Decorator that marks a function of a plugin as the implementation of a hook; see
`yunikorn.framework.hookspecs`."""


# -- views handed to plugins --------------------------------------------------------------------------


class Queue(Protocol):
    """Read-only view of a queue."""

    @property
    def path(self) -> str:
        """Full path in lower case, such as `root.a.b`."""
        ...

    @property
    def guaranteed(self) -> Mapping[str, int]:
        """Guaranteed resources from the configuration; empty if there are none."""
        ...

    @property
    def max(self) -> Mapping[str, int] | None:
        """Quota from the configuration, or None; a resource type that is missing is unlimited."""
        ...

    @property
    def fair_max(self) -> Mapping[str, int]:
        """Cluster size, overlaid by the quotas of the queues from root down to this one.

        Fair shares are computed relative to this amount.
        """
        ...

    @property
    def total(self) -> Mapping[str, int]:
        """Total capacity of all nodes of the partition."""
        ...

    @property
    def allocated(self) -> Mapping[str, int]:
        """Resources allocated in this queue and below, including placeholders."""
        ...

    @property
    def pending(self) -> Mapping[str, int]:
        """Resources of the pending asks in this queue and below; computed on every access."""
        ...

    @property
    def demand(self) -> Mapping[str, int]:
        """Sum of `allocated` and `pending`; kept up to date, so cheaper to read than `pending`."""
        ...

    @property
    def recent(self) -> Mapping[str, float]:
        """Decayed usage of this queue: allocated resources times seconds, per resource type.

        Half of the sum decays every `half_life` seconds of the policy that orders this queue among its
        siblings. Empty if that policy has no `half_life`.
        """
        ...

    @property
    def priority(self) -> int:
        """Priority that the parent uses: that of the pending asks, after this queue's policy and offset."""
        ...

    @property
    def properties(self) -> Mapping[str, str]:
        """Effective properties, including those inherited from the queues above."""
        ...

    @property
    def parent(self) -> Queue | None:
        """Parent queue; None for root."""
        ...


class Application(Protocol):
    """Read-only view of an application."""

    @property
    def id(self) -> str:
        """Identifier, unique in the partition."""
        ...

    @property
    def user(self) -> str:
        """Name of the user who submitted the application."""
        ...

    @property
    def groups(self) -> Sequence[str]:
        """Groups of the user, the primary group first."""
        ...

    @property
    def queue_name(self) -> str:
        """Queue requested at submission, as written."""
        ...

    @property
    def queue(self) -> Queue | None:
        """Queue the application is placed in; None during placement."""
        ...

    @property
    def tags(self) -> Mapping[str, str]:
        """Tags set by the resource manager."""
        ...

    @property
    def state(self) -> str:
        """State, such as `New`, `Accepted`, `Starting` or `Running`; see `docs/states.md`."""
        ...

    @property
    def submitted(self) -> int:
        """Submission time: arrival in the core, or the earliest creation time of its asks (ns)."""
        ...

    @property
    def priority(self) -> int:
        """Highest priority of the pending asks; the lowest int32 if there are none."""
        ...

    @property
    def allocated(self) -> Mapping[str, int]:
        """Allocated resources, including placeholders."""
        ...

    @property
    def pending(self) -> Mapping[str, int]:
        """Resources of the pending asks; computed on every access."""
        ...

    @property
    def demand(self) -> Mapping[str, int]:
        """Sum of `allocated` and `pending`; kept up to date, so cheaper to read than `pending`."""
        ...

    @property
    def fair_total(self) -> Mapping[str, int]:
        """Denominator of the fair share: per type, the queue's guarantee, else the partition's total."""
        ...

    @property
    def waiting_since(self) -> int:
        """Time of the last allocation, or of submission if there is no allocation yet (ns)."""
        ...


class Ask(Protocol):
    """Read-only view of a request for resources."""

    @property
    def key(self) -> str:
        """Identifier, unique in the application."""
        ...

    @property
    def app(self) -> Application:
        """Application that the request belongs to."""
        ...

    @property
    def resource(self) -> Resource:
        """Resources of each allocation made for the request."""
        ...

    @property
    def priority(self) -> int:
        """Priority; a higher value is more urgent."""
        ...

    @property
    def tags(self) -> Mapping[str, str]:
        """Tags set by the resource manager."""
        ...

    @property
    def created(self) -> int:
        """Creation time (ns)."""
        ...


class AskClass(Protocol):
    """Common properties of a class of equivalent requests, for node sorting."""

    @property
    def resource(self) -> Resource:
        """Resources of each request of the class."""
        ...


class Node(Protocol):
    """Read-only view of a node."""

    @property
    def id(self) -> str:
        """Identifier, unique in the partition."""
        ...

    @property
    def attributes(self) -> Mapping[str, str]:
        """Attributes set by the resource manager."""
        ...

    @property
    def capacity(self) -> Mapping[str, int]:
        """Total resources; contains no zero entries."""
        ...

    @property
    def allocated(self) -> Mapping[str, int]:
        """Resources of the allocations that this scheduler made or recovered."""
        ...

    @property
    def occupied(self) -> Mapping[str, int]:
        """Resources used by anything that this scheduler did not place."""
        ...

    @property
    def available(self) -> Mapping[str, int]:
        """Capacity minus allocated and occupied; may be negative after the node has shrunk."""
        ...


@attrs.frozen(slots=True)
class Event:
    """Event of the scheduler, with the fields of YuniKorn's event protocol."""

    type: str
    """`REQUEST`, `APP`, `NODE`, `QUEUE`, `USERGROUP`, or `PLUGIN` (not in YuniKorn) for a plugin failure."""
    object_id: str
    """Key of the ask, id of the application, node or user, path of the queue, or name of the plugin."""
    reference_id: str = ""
    message: str = ""
    change: str = "NONE"
    """Kind of change: `NONE`, `SET`, `ADD` or `REMOVE`."""
    detail: str = "DETAILS_NONE"
    """Detail of the change, such as `APP_ALLOC`."""
    resource: Mapping[str, int] | None = None
    timestamp: int = 0
    """Time of the event (ns)."""
    reason: str = ""
    """Machine-readable reason such as `InsufficientQueueResources`, for events whose `detail` gives none."""


class ResourceManager(Protocol):
    """Resource manager of a partition, called through its callback.

    An operation that the callback does not implement is skipped: it refuses nothing, and events are dropped.
    An exception of the callback propagates from these methods. The report of the failure names the resource
    manager.
    """

    @property
    def answers_at_once(self) -> bool:
        """True if the callback prefers one call for many nodes."""
        ...

    def refusal(self, ask: Ask, node: Node, *, allocate: bool) -> str | None:
        """Return None if the callback accepts the request on the node, else its reason.

        `allocate` is True for an allocation, False for a reservation.
        """
        ...

    def refusals(self, ask: Ask, nodes: Sequence[Node], *, allocate: bool) -> Sequence[str | None]:
        """Return the answers of `refusal` for several nodes, one per node, in order."""
        ...

    def send_events(self, batch: Sequence[Event]) -> None:
        """Send events to the callback, oldest first."""
        ...


def _discard_report(operation: str, cause: BaseException | str) -> None:
    """Ignore a report; the default where there is no scheduler, as in a unit test of a plugin."""


@attrs.frozen(slots=True)
class Context:
    """Environment of a plugin object, passed to `opened` and `reloaded`."""

    partition: str
    """Name of the partition in the configuration; empty for plugins that serve no single partition."""
    now: Callable[[], int]
    """Clock of the core (ns). Plugins must not read any other clock, or replays and simulations differ."""
    rm: ResourceManager | None = None
    """Resource manager of the partition; None if there is none, as in a unit test of a plugin."""
    report: Callable[[str, BaseException | str], None] = _discard_report
    """Reports a failure that the plugin has handled, as in `report("reading the file again", error)`.

    Every call is counted under the name of the plugin, like an exception. The failure is logged when it
    differs from the previous one, and the first one is also sent as an event. Thread-safe.
    """


# -- base classes of plugins --------------------------------------------------------------------------


class Plugin:
    """Base class of all kinds of plugins: a name, options as attributes, and an optional life cycle."""

    name: ClassVar[str]
    """Name in the configuration."""

    def opened(self, context: Context) -> None:
        """Prepare for use; called once, before any other call."""

    def reloaded(self, context: Context) -> None:
        """Handle a configuration reload in which this object and its options stay in use."""

    def closed(self) -> None:
        """Release resources; called once, after the last use."""


class AppSortPolicy(Plugin):
    """Base class of policies that order the applications of a leaf queue."""

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which all keys are recomputed, for keys that depend on the time; None for never.

        Read once, when the order is created. A policy with a constant value writes `refresh_every = 60.0`.
        """
        return None

    def key(self, app: Application) -> Any:
        """Return the sort key of `app`, any comparable value.

        The smallest key is first; ties are broken by arrival. The core recomputes the key whenever the
        application changes, unless the application is the only one in its queue.
        """
        raise TypeError(f"{type(self).__name__} has no key(app)")

    def admission_class(self, app: Application) -> Hashable:
        """Return the class under which `admission_limits` counts `app`.

        Only for policies that schedule a limited number of applications at a time; see
        `docs/decisions/0041`.
        """
        return None

    def admission_limits(self, counts: Mapping[Hashable, int]) -> Mapping[Hashable, int | None]:
        """Return how many applications of each admission class may be scheduled, first in order; None is all.

        `counts` has the number of applications of each class. A class that is missing in the result is not
        limited.
        """
        return {}


class QueueSortPolicy(Plugin):
    """Base class of policies that order the children of a parent queue."""

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which all keys are recomputed, for keys that depend on the time; None for never.

        Read once, when the order is created. A policy with a constant value writes `refresh_every = 60.0`.
        """
        return None

    @property
    def half_life(self) -> float | None:
        """Seconds in which half of a queue's recorded usage decays, for keys on `queue.recent`; else None.

        Recording starts with the first configuration that uses such a policy, and continues across reloads
        that do not change the half-life.
        """
        return None

    def key(self, queue: Queue) -> Any:
        """Return the sort key of `queue`, any comparable value; the smallest is first, ties are by name."""
        raise TypeError(f"{type(self).__name__} has no key(queue)")


class NodeSortPolicy(Plugin):
    """Base class of policies that order the nodes of a partition."""

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which all scores are recomputed, for scores that depend on the time; None for never.

        Read once, when the order is created. A policy with a constant value writes `refresh_every = 60.0`.
        """
        return None

    score: ClassVar[Callable[..., float]]
    """Method `score(node)`, or `score(node, ask_class)` for an order that depends on the request.

    The lowest score is first; ties are broken by node id.
    """


class PlacementRule(Plugin):
    """Base class of rules that choose the queue of an application."""

    def place(self, app: Application) -> str | None:
        """Return the name of the queue, or None for "no match, try the next rule".

        A name that starts with `root.`, in any case, is a full path; `root.` alone is root itself. Any
        other name is relative to the queue of the parent rule, or to root. A dot separates levels; use
        `dotless` for text that is a single level.
        """
        raise TypeError(f"{type(self).__name__} has no place(app)")


class Predicate(Plugin):
    """Base class of conditions that a node must meet for a request, in addition to free resources.

    By default a predicate is called for every pair of request and node. A predicate that declares classes is
    called once per class: implement `ask_class` if the answer depends only on the class of the request and
    on this node, and also `node_class` if it depends on nothing else of the node. A predicate whose answer
    depends on anything else, such as allocations on other nodes, must implement neither.
    """

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if the request may be allocated on the node, else the reason why not."""
        raise TypeError(f"{type(self).__name__} has no check(ask, node)")

    def check_reservation(self, ask: Ask, node: Node) -> str | None:
        """Return None if the node may be reserved for the request, else the reason why not.

        Calls `check` by default. A predicate that overrides this method is called for every pair of request
        and node; its class declarations are ignored.
        """
        return self.check(ask, node)

    def check_nodes(self, ask: Ask, nodes: Sequence[Node], *, allocate: bool) -> Sequence[str | None]:
        """Return the answers for several nodes, one per node, in order.

        Override for predicates that ask a remote service. The core then calls this method instead of `check`
        (`allocate` is True) and `check_reservation` (`allocate` is False), also for nodes whose answer may
        turn out not to be needed.
        """
        one = self.check if allocate else self.check_reservation
        return [one(ask, node) for node in nodes]

    @property
    def asks_ahead(self) -> bool:
        """True if the core calls `check_nodes`; read after construction and after `opened`."""
        return type(self).check_nodes is not Predicate.check_nodes

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which a refusal is checked again although nothing has changed; None for never.

        For predicates that depend on external state and declare no classes. Read after construction and after
        `opened`.
        """
        return None

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the class of a request; requests of equal classes get equal answers."""
        return None

    def node_class(self, node: Node) -> Hashable:
        """Return the class of a node, from its attributes only; nodes of equal classes get equal answers."""
        return None

    def wanted(self, ask: Ask) -> str | None:
        """Return the requirement as text, such as `attribute zone=b`, or None.

        The text only explains why a request is pending; no scheduling decision depends on it.
        """
        return None


class EventSink(Plugin):
    """Base class of receivers of events."""

    def send(self, batch: Sequence[Event]) -> None:
        """Receive events, oldest first. A sink that raises an exception is disabled and reported."""
        raise TypeError(f"{type(self).__name__} has no send(batch)")


class UserGroupResolver(Plugin):
    """Base class of resolvers that look up the groups of a user."""

    def groups(self, user: str) -> Sequence[str] | None:
        """Return the groups of a user, the primary group first, or None if there is no such user."""
        raise TypeError(f"{type(self).__name__} has no groups(user)")


def dotless(name: str) -> str:
    """Return `name` as one level of a queue path: every dot becomes `_dot_`."""
    return name.replace(".", "_dot_")
