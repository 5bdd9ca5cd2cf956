"""State that the plugins of a package share while the core decides about one task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yunikorn.api import Task
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.predicate_chain import PredicateChain


class DecisionStates:
    """States by package, of the task that plugins asked for last.

    They are discarded with the states of `Predicate.prepare`, and after permit policies were asked. Without a
    plugin that uses them, they cost nothing per decision.
    """

    def __init__(self) -> None:
        self.orders: NodeOrders | None = None
        """Owner of the predicates, which a reload replaces; None before the partition is complete."""
        self._following: PredicateChain | None = None
        self._task = ("", "")
        self.states: dict[str, dict[Any, Any]] = {}
        """By package."""

    def of(self, package: str, task: Task) -> dict[Any, Any]:
        """Return the state that a package has for a task, empty at first."""
        if self.orders is not None and self._following is not self.orders.predicates:
            self._following = self.orders.predicates
            self._following.prepared.append(self)
        wanted = (task.app.id, task.key)
        if wanted != self._task:
            self._task, self.states = wanted, {}
        return self.states.setdefault(package, {})

    def forget(self) -> None:
        """Discard all states."""
        if self.states:
            self._task, self.states = ("", ""), {}
