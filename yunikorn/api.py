"""All that a plugin author imports: base classes, read-only views, and `hookimpl`.

A plugin is an ordinary class with a `name`. Its options are its typed attributes; write it with
`attrs.frozen` (attrs comes with this package) and the configuration is checked against them. Objects
of the scheduler reach a plugin as the read-only views below: read what you need, change nothing.

"No" is an answer: return the reason. An exception is a bug: it is reported with the plugin's name,
distribution and version, and scheduling goes on without that answer.

Units: `vcore` in milli-cores, `memory` in bytes, times in nanoseconds since 1970 unless said otherwise.
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
"""Marks a function of a plugin module as the implementation of a hook (see `yunikorn.hookspecs`)."""


# -- what plugins are given ---------------------------------------------------------------------------


class Queue(Protocol):
    """A queue, as policies see it."""

    @property
    def path(self) -> str:
        """The full lower-case name, `root.a.b`."""
        ...

    @property
    def guaranteed(self) -> Mapping[str, int]:
        """What the configuration guarantees; empty when nothing."""
        ...

    @property
    def max(self) -> Mapping[str, int] | None:
        """The quota, None when there is none; a type that is missing is unlimited."""
        ...

    @property
    def fair_max(self) -> Mapping[str, int]:
        """Cluster size overlaid by the quotas on the way down (facts §2.6): what shares are taken of."""
        ...

    @property
    def total(self) -> Mapping[str, int]:
        """The size of the cluster: what all nodes of the partition have together."""
        ...

    @property
    def allocated(self) -> Mapping[str, int]:
        """What runs in it and below it, placeholders included."""
        ...

    @property
    def pending(self) -> Mapping[str, int]:
        """What waits in it and below it."""
        ...

    @property
    def demand(self) -> Mapping[str, int]:
        """What is allocated and what is pending, together: at hand, while `pending` is worked out anew."""
        ...

    @property
    def recent(self) -> Mapping[str, float]:
        """What was allocated lately, times the seconds for which it was, of each type.

        Of this sum half is forgotten every `half_life` of the policy that orders this queue among its
        siblings; empty where that policy has none.
        """
        ...

    @property
    def priority(self) -> int:
        """The priority its parent sees: of what waits in it, with its own policy and offset applied."""
        ...

    @property
    def properties(self) -> Mapping[str, str]:
        """Its effective properties."""
        ...

    @property
    def parent(self) -> Queue | None:
        """The queue above, None for root."""
        ...


class Application(Protocol):
    """An application, as policies and rules see it."""

    @property
    def id(self) -> str:
        """Its identifier, unique in the partition."""
        ...

    @property
    def user(self) -> str:
        """Its owner."""
        ...

    @property
    def groups(self) -> Sequence[str]:
        """The owner's groups, the primary one first."""
        ...

    @property
    def queue_name(self) -> str:
        """The queue it asked for at submission, as written."""
        ...

    @property
    def queue(self) -> Queue | None:
        """The queue it runs in; None while it is being placed."""
        ...

    @property
    def tags(self) -> Mapping[str, str]:
        """What the resource manager said about it."""
        ...

    @property
    def state(self) -> str:
        """Its state: `New`, `Accepted`, `Starting`, `Running`, ..."""
        ...

    @property
    def submitted(self) -> int:
        """When it was submitted: arrival in the core, or the earliest creation time of its asks (ns)."""
        ...

    @property
    def priority(self) -> int:
        """The highest priority of its waiting asks; the least int32 when nothing waits."""
        ...

    @property
    def allocated(self) -> Mapping[str, int]:
        """What it holds, placeholders included."""
        ...

    @property
    def pending(self) -> Mapping[str, int]:
        """What it waits for."""
        ...

    @property
    def demand(self) -> Mapping[str, int]:
        """What is allocated and what is pending, together: at hand, while `pending` is worked out anew."""
        ...

    @property
    def fair_total(self) -> Mapping[str, int]:
        """What its share is taken of: its queue's guaranteed per type, else the partition's total."""
        ...

    @property
    def waiting_since(self) -> int:
        """When it last got something, or was submitted if it never did (ns)."""
        ...


class Ask(Protocol):
    """A request for resources, as predicates see it."""

    @property
    def key(self) -> str:
        """Its identifier, unique in the application."""
        ...

    @property
    def app(self) -> Application:
        """The application that asks."""
        ...

    @property
    def resource(self) -> Resource:
        """The amount that each of its allocations takes."""
        ...

    @property
    def priority(self) -> int:
        """Higher is more urgent."""
        ...

    @property
    def tags(self) -> Mapping[str, str]:
        """What the resource manager said about it."""
        ...

    @property
    def created(self) -> int:
        """When it was made (ns)."""
        ...


class AskClass(Protocol):
    """What a whole class of requests has in common, as node sorting sees it."""

    @property
    def resource(self) -> Resource:
        """The amount that each of them takes."""
        ...


class Node(Protocol):
    """A node, as policies and predicates see it."""

    @property
    def id(self) -> str:
        """Its identifier."""
        ...

    @property
    def attributes(self) -> Mapping[str, str]:
        """What the resource manager said about it."""
        ...

    @property
    def capacity(self) -> Mapping[str, int]:
        """All it has; no zero entries."""
        ...

    @property
    def allocated(self) -> Mapping[str, int]:
        """What our allocations take."""
        ...

    @property
    def occupied(self) -> Mapping[str, int]:
        """What others take."""
        ...

    @property
    def available(self) -> Mapping[str, int]:
        """What is left: capacity less allocated and occupied; may be negative after a shrink."""
        ...


@attrs.frozen(slots=True)
class Event:
    """Something that happened, in the terms of the event catalogue (facts §12)."""

    type: str
    """`REQUEST`, `APP`, `NODE`, `QUEUE` or `USERGROUP`; ours is `PLUGIN`, when one did wrong."""
    object_id: str
    """The ask's key, the application's, node's or user's identifier, the queue's path, or the plugin."""
    reference_id: str = ""
    message: str = ""
    change: str = "NONE"
    """`NONE`, `SET`, `ADD` or `REMOVE`."""
    detail: str = "DETAILS_NONE"
    """The change in detail, such as `APP_ALLOC`."""
    resource: Mapping[str, int] | None = None
    timestamp: int = 0
    """When it happened (ns)."""
    reason: str = ""
    """Why, in one word such as `InsufficientQueueResources`, where `detail` says nothing."""


class ResourceManager(Protocol):
    """The resource manager that a partition belongs to, reached through its callback.

    What the callback does not implement is not asked: it refuses nothing, and events are lost on it. What
    it raises comes out of these methods, and names the resource manager when it is reported.
    """

    @property
    def answers_at_once(self) -> bool:
        """Whether it wants to be asked about many nodes at once."""
        ...

    def refusal(self, ask: Ask, node: Node, *, allocate: bool) -> str | None:
        """None if it lets the request be placed on the node, or kept for it, else its reason."""
        ...

    def refusals(self, ask: Ask, nodes: Sequence[Node], *, allocate: bool) -> Sequence[str | None]:
        """The same for several nodes: one answer for each, in order."""
        ...

    def send_events(self, batch: Sequence[Event]) -> None:
        """Hand events over to it, oldest first."""
        ...


def _tell_nobody(operation: str, cause: BaseException | str) -> None:
    """What a context reports to where no scheduler is, as in a test of the plugin alone."""


@attrs.frozen(slots=True)
class Context:
    """Where a plugin object works: handed to `opened` and `reloaded`."""

    partition: str
    """The partition's name in the configuration; empty for what is not of one partition."""
    now: Callable[[], int]
    """The core's clock (ns); use no other."""
    rm: ResourceManager | None = None
    """Whose partition it is; None where there is no resource manager, as in a test of the plugin alone."""
    report: Callable[[str, BaseException | str], None] = _tell_nobody
    """`report("reading the file again", error)`: say what went wrong and you have dealt with.

    It is counted each time, logged where it differs from the last time, and the first time an event, under
    the name of the plugin, as if it had been raised. May be called from any thread.
    """


# -- what plugins are ---------------------------------------------------------------------------------


class Plugin:
    """The base of all kinds: a name, options as attributes, and an optional life cycle."""

    name: ClassVar[str]
    """By which a configuration names it."""

    def opened(self, context: Context) -> None:
        """Called once before first use."""

    def reloaded(self, context: Context) -> None:
        """Called when a configuration was loaded in which this object stays as it is."""

    def closed(self) -> None:
        """Called once after last use."""


class AppSortPolicy(Plugin):
    """Orders the applications of a leaf queue."""

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which all keys are computed anew, for a key that depends on the time; else None.

        Looked at once, when the order is made. A policy that always needs the same writes
        `refresh_every = 60.0`.
        """
        return None

    def key(self, app: Application) -> Any:
        """Where `app` stands: smallest first, anything that compares; ties go by arrival.

        Computed anew whenever the application changes and there is another to compare it with.
        """
        raise TypeError(f"{type(self).__name__} has no key(app)")

    def admission_class(self, app: Application) -> Hashable:
        """The admission class `app` drives in, for a policy that lets only some take part (with
        `admission_limits`).
        """
        return None

    def admission_limits(self, counts: Mapping[Hashable, int]) -> Mapping[Hashable, int | None]:
        """How many of each admission class take part, from the front, given how many are in each; None is
        all.

        An admission class that the answer lacks takes part as a whole.
        """
        return {}


class QueueSortPolicy(Plugin):
    """Orders the children of a parent queue."""

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which all keys are computed anew, for a key that depends on the time; else None.

        Looked at once, when the order is made. A policy that always needs the same writes
        `refresh_every = 60.0`.
        """
        return None

    @property
    def half_life(self) -> float | None:
        """Seconds after which half of a queue's usage is forgotten, for a key on `queue.recent`; else None.

        Usage is counted from when the first configuration with such a policy is in use, and goes on being
        counted as long as the half-life stays.
        """
        return None

    def key(self, queue: Queue) -> Any:
        """Where `queue` stands: smallest first, anything that compares; ties go by name."""
        raise TypeError(f"{type(self).__name__} has no key(queue)")


class NodeSortPolicy(Plugin):
    """Orders the nodes of a partition."""

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which all scores are computed anew, for a score that depends on the time; else None.

        Looked at once, when the order is made. A policy that always needs the same writes
        `refresh_every = 60.0`.
        """
        return None

    score: ClassVar[Callable[..., float]]
    """`score(node)`, or `score(node, ask_class)` to look at the request too: lowest first, ties by node
    id.
    """


class PlacementRule(Plugin):
    """Chooses the queue of an application."""

    def place(self, app: Application) -> str | None:
        """The queue's name, or None for "no match, try the next rule".

        A name that starts with `root.`, in any case, is complete; `root.` alone is root itself. Any other
        goes below the queue of the parent rule, or below root; a dot in it separates levels. Use `dotless`
        for text that is one level.
        """
        raise TypeError(f"{type(self).__name__} has no place(app)")


class Predicate(Plugin):
    """Says whether a node may take a request, beyond room.

    To be asked once per class instead of once per request and node, say what the answer depends on:
    implement `ask_class`, and `node_class` if it depends on nothing else of the node. With `ask_class`
    alone it may depend on what runs on the node, too; an answer that depends on anything beyond the
    request and that one node, such as what runs on other nodes, must declare neither.
    """

    def check(self, ask: Ask, node: Node) -> str | None:
        """None if the node may take the request, else the reason why not."""
        raise TypeError(f"{type(self).__name__} has no check(ask, node)")

    def check_reservation(self, ask: Ask, node: Node) -> str | None:
        """None if the node may be kept for the request until it has room there, else the reason why not.

        By default as `check`. A predicate that tells the two apart is asked about every request and node,
        whatever it declares.
        """
        return self.check(ask, node)

    def check_nodes(self, ask: Ask, nodes: Sequence[Node], *, allocate: bool) -> Sequence[str | None]:
        """Several nodes at once, for a predicate whose answers are far away: one answer for each, in order.

        `allocate` is True for what `check` answers, False for `check_reservation`. If it is implemented it
        is asked instead of them, also about nodes that may turn out not to be needed.
        """
        one = self.check if allocate else self.check_reservation
        return [one(ask, node) for node in nodes]

    @property
    def asks_ahead(self) -> bool:
        """Whether `check_nodes` is asked; looked at when the object is made and when it was opened."""
        return type(self).check_nodes is not Predicate.check_nodes

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which what it refused is tried again although nothing has changed; else None.

        For an answer that depends on the world outside, of a predicate that declares no class. Looked at
        when the object is made and when it was opened.
        """
        return None

    def ask_class(self, ask: Ask) -> Hashable:
        """Requests with equal classes get equal answers."""
        return None

    def node_class(self, node: Node) -> Hashable:
        """Nodes with equal classes get equal answers; may depend on the node's attributes only."""
        return None

    def wanted(self, ask: Ask) -> str | None:
        """What a node must have for this request, in words such as `attribute zone=b`; None if unsaid.

        Only for whoever asks why a request waits; no decision depends on it.
        """
        return None


class EventSink(Plugin):
    """Receives events."""

    def send(self, batch: Sequence[Event]) -> None:
        """Take these events, oldest first. A sink that raises is switched off and reported."""
        raise TypeError(f"{type(self).__name__} has no send(batch)")


class UserGroupResolver(Plugin):
    """Finds the groups of a user."""

    def groups(self, user: str) -> Sequence[str] | None:
        """The user's groups, the primary one first; None if there is no such user."""
        raise TypeError(f"{type(self).__name__} has no groups(user)")


def dotless(name: str) -> str:
    """`name` as one level of a queue path: every dot becomes `_dot_` (seed: placement rules)."""
    return name.replace(".", "_dot_")
