"""Policies as a third party would write them, to see that they decide as fast as the defaults.

Registered beside the defaults in every case, and named in the configuration of a few.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import attrs

from yunikorn.api import (
    Application,
    AppSortPolicy,
    Ask,
    AskClass,
    Node,
    NodeSortPolicy,
    Predicate,
    Queue,
    QueueSortPolicy,
    hookimpl,
)


@attrs.frozen
class LeastHeld(AppSortPolicy):
    """The application that holds the least memory first."""

    name = "least-held"

    def key(self, app: Application) -> tuple[int, str]:
        """How much it holds, then its owner."""
        return (app.allocated.get("memory", 0), app.user)


@attrs.frozen
class HalfPerUser(AppSortPolicy):
    """The half of each user's applications that wait for the most memory, largest first."""

    name = "half-per-user"

    def key(self, app: Application) -> int:
        """How much waits."""
        return -app.pending.get("memory", 0)

    def admission_class(self, app: Application) -> Hashable:
        """By user."""
        return app.user

    def admission_limits(self, counts: Mapping[Hashable, int]) -> Mapping[Hashable, int | None]:
        """Half of each admission class, rounded up."""
        return {user: (count + 1) // 2 for user, count in counts.items()}


@attrs.frozen
class MostWaiting(QueueSortPolicy):
    """The queue that waits for the most memory first."""

    name = "most-waiting"

    def key(self, queue: Queue) -> int:
        """How much waits."""
        return -queue.pending.get("memory", 0)


@attrs.frozen
class MostFree(NodeSortPolicy):
    """The node with the most free memory first."""

    name = "most-free"

    def score(self, node: Node) -> float:
        """Minus what is free."""
        return -node.available.get("memory", 0)


@attrs.frozen
class BestFit(NodeSortPolicy):
    """The node whose free memory and vcore are most alike what the request takes of both."""

    name = "best-fit"

    def score(self, node: Node, ask_class: AskClass) -> float:
        """How far the ratio of what is free is from the ratio of what is asked."""
        free, asked = node.available, ask_class.resource
        vcore = free.get("vcore", 0)
        ratio = free.get("memory", 0) / vcore if vcore > 0 else 1e9
        return abs(ratio - asked.get("memory", 0) / max(1, asked.get("vcore", 0)))


@attrs.frozen
class EastOnly(Predicate):
    """Only nodes in the east; says what its answer depends on."""

    name = "east-only"

    def check(self, ask: Ask, node: Node) -> str | None:
        """By the node's attribute `zone`."""
        return None if node.attributes.get("zone") == "east" else "the node is not in the east"

    def ask_class(self, ask: Ask) -> Hashable:
        """All requests are alike."""
        return ""

    def node_class(self, node: Node) -> Hashable:
        """The zone."""
        return node.attributes.get("zone")


@attrs.frozen
class EastOnlySilent(Predicate):
    """Only nodes in the east; does not say what its answer depends on."""

    name = "east-only-silent"

    def check(self, ask: Ask, node: Node) -> str | None:
        """By the node's attribute `zone`."""
        return None if node.attributes.get("zone") == "east" else "the node is not in the east"


@attrs.frozen
class AnyRack(Predicate):
    """Every node that is in a rack; says what its answer depends on."""

    name = "any-rack"

    def check(self, ask: Ask, node: Node) -> str | None:
        """By the node's attribute `rack`."""
        return None if "rack" in node.attributes else "the node is in no rack"

    def ask_class(self, ask: Ask) -> Hashable:
        """All requests are alike."""
        return ""

    def node_class(self, node: Node) -> Hashable:
        """Whether it is in a rack."""
        return "rack" in node.attributes


@hookimpl
def yunikorn_app_sort_policies() -> list[type[AppSortPolicy]]:
    """Ways to order applications."""
    return [LeastHeld, HalfPerUser]


@hookimpl
def yunikorn_queue_sort_policies() -> list[type[QueueSortPolicy]]:
    """Ways to order queues."""
    return [MostWaiting]


@hookimpl
def yunikorn_node_sort_policies() -> list[type[NodeSortPolicy]]:
    """Ways to order nodes."""
    return [MostFree, BestFit]


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Conditions on nodes."""
    return [EastOnly, EastOnlySilent, AnyRack]
