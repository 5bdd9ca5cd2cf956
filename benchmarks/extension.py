"""Policies in the style of third-party plugins, to compare their speed with the defaults.

They are registered beside the defaults in every case, and used by the configurations of some cases.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import attrs

from yunikorn.api import (
    Allocation,
    Application,
    AppSortPolicy,
    Ask,
    AskClass,
    Event,
    EventSink,
    Node,
    NodeSortPolicy,
    Predicate,
    PreemptionCause,
    PreemptionPolicy,
    Queue,
    QueueSortPolicy,
    hookimpl,
)


@attrs.frozen
class LeastHeld(AppSortPolicy):
    """The application with the least allocated memory first."""

    name = "least-held"

    def key(self, app: Application) -> tuple[int, str]:
        """Return the allocated memory, then the user."""
        return (app.allocated.get("memory", 0), app.user)


@attrs.frozen
class HalfPerUser(AppSortPolicy):
    """Half of each user's applications, those with the most pending memory first."""

    name = "half-per-user"

    def key(self, app: Application) -> int:
        """Return the negative pending memory."""
        return -app.pending.get("memory", 0)

    def admission_class(self, app: Application) -> Hashable:
        """Return the user."""
        return app.user

    def admission_limits(self, counts: Mapping[Hashable, int]) -> Mapping[Hashable, int | None]:
        """Return half the size of each admission class, rounded up."""
        return {user: (count + 1) // 2 for user, count in counts.items()}


@attrs.frozen
class MostWaiting(QueueSortPolicy):
    """The queue with the most pending memory first."""

    name = "most-waiting"

    def key(self, queue: Queue) -> int:
        """Return the negative pending memory."""
        return -queue.pending.get("memory", 0)


@attrs.frozen
class MostFree(NodeSortPolicy):
    """The node with the most free memory first."""

    name = "most-free"

    def score(self, node: Node) -> float:
        """Return the negative free memory."""
        return -node.available.get("memory", 0)


@attrs.frozen
class BestFit(NodeSortPolicy):
    """The node whose ratio of free memory to free vcore is closest to that of the request."""

    name = "best-fit"

    def score(self, node: Node, ask_class: AskClass) -> float:
        """Return the distance between the ratios of free and of requested resources."""
        free, asked = node.available, ask_class.resource
        vcore = free.get("vcore", 0)
        ratio = free.get("memory", 0) / vcore if vcore > 0 else 1e9
        return abs(ratio - asked.get("memory", 0) / max(1, asked.get("vcore", 0)))


@attrs.frozen
class EastOnly(Predicate):
    """Only nodes in the east; declares its classes."""

    name = "east-only"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Check the attribute `zone` of the node."""
        return None if node.attributes.get("zone") == "east" else "the node is not in the east"

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the same class for all requests."""
        return ""

    def node_class(self, node: Node) -> Hashable:
        """Return the zone."""
        return node.attributes.get("zone")


@attrs.frozen
class EastOnlySilent(Predicate):
    """Only nodes in the east; declares no classes."""

    name = "east-only-silent"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Check the attribute `zone` of the node."""
        return None if node.attributes.get("zone") == "east" else "the node is not in the east"


@attrs.frozen
class OneSlot(Predicate):
    """Only nodes in one of several slots; declares no classes."""

    name = "one-slot"
    slot: str = "0"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Check the attribute `slot` of the node."""
        wanted = ask.tags.get("slot", self.slot)
        return None if node.attributes.get("slot") == wanted else f"the node is not in slot {wanted}"


@attrs.frozen
class AnyRack(Predicate):
    """Every node that is in a rack; declares its classes."""

    name = "any-rack"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Check the attribute `rack` of the node."""
        return None if "rack" in node.attributes else "the node is in no rack"

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the same class for all requests."""
        return ""

    def node_class(self, node: Node) -> Hashable:
        """Return True if the node is in a rack."""
        return "rack" in node.attributes


@attrs.frozen
class Ignoring(EventSink):
    """A sink that wants the events of its option, all of them by default, and reads none."""

    name = "ignoring"
    wants: tuple[str, ...] | None = None

    def send(self, batch: Sequence[Event]) -> None:
        """Do nothing."""


@attrs.frozen
class LeastLost(PreemptionPolicy):
    """The least memory time is lost first, and on the node where the sum is lowest."""

    name = "least-lost"

    def protects(self, victim: Allocation, cause: PreemptionCause) -> str | None:
        """Protect one application in twenty."""
        return "the application is protected" if victim.app.arrival % 20 == 7 else None

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        """Return the memory; the benchmark places all tasks at the same time."""
        return victim.resource.get("memory", 0)

    def cost(self, victim: Allocation, cause: PreemptionCause) -> float:
        """Return the same."""
        return victim.resource.get("memory", 0)


@hookimpl
def yunikorn_preemption_policies() -> list[type[PreemptionPolicy]]:
    """Return the preemption policy."""
    return [LeastLost]


@hookimpl
def yunikorn_event_sinks() -> list[type[EventSink]]:
    """Return the event sink."""
    return [Ignoring]


@hookimpl
def yunikorn_app_sort_policies() -> list[type[AppSortPolicy]]:
    """Return the application sort policies."""
    return [LeastHeld, HalfPerUser]


@hookimpl
def yunikorn_queue_sort_policies() -> list[type[QueueSortPolicy]]:
    """Return the queue sort policies."""
    return [MostWaiting]


@hookimpl
def yunikorn_node_sort_policies() -> list[type[NodeSortPolicy]]:
    """Return the node sort policies."""
    return [MostFree, BestFit]


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicates."""
    return [EastOnly, EastOnlySilent, OneSlot, AnyRack]
