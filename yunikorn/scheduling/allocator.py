"""Allocator: carries decisions out, at once or under the permit policies in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from yunikorn.accounting.partition import Partition
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask
    from yunikorn.model.gang import AtomicGang
    from yunikorn.model.node import Node

    Plan = Sequence[tuple[Ask, Node]]


class Allocator:
    """Carries out the decisions about one partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.allocate: Callable[[Ask, Node, int], Allocation | None] = partition.accounting.allocate
        """Allocates one pending replica of an ask at a time (ns); returns None if a permit policy refuses.

        Does not start the execution timeout of the allocation.
        """
        self._permitted_gang: Callable[[AtomicGang, Plan], Allocation | None] | None = None

    def use(
        self,
        allocate: Callable[[Ask, Node, int], Allocation | None] | None,
        place_gang: Callable[[AtomicGang, Plan], Allocation | None] | None,
    ) -> None:
        """Place by these functions of permit policies from now on, or at once if they are None."""
        self.allocate = allocate or self._partition.accounting.allocate
        self._permitted_gang = place_gang

    def place(self, ask: Ask, node: Node) -> Allocation | None:
        """Allocate one pending replica of an ask on `node`; return None if a permit policy refuses it."""
        allocation = self.allocate(ask, node, self._partition.clock.now())
        if allocation is not None and allocation.spec.execution_timeout:
            self._partition.watch(allocation)
        return allocation

    def place_gang(self, gang: AtomicGang, plan: Plan) -> Allocation | None:
        """Place all members of an atomic gang; return None if a permit policy refuses one."""
        if self._permitted_gang is not None:
            return self._permitted_gang(gang, plan)
        formation = self._partition.gangs.formation
        formation.finish(gang)
        allocation: Allocation | None = None
        for ask, node in plan:
            allocation = self.place(ask, node)
        formation.unblock_rest(gang)
        return allocation
