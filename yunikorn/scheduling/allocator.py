"""Allocator: carries decisions out, at once or under the permit policies in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from yunikorn.accounting.books import Books
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
        self._allocate: Callable[[Ask, Node, int], Allocation | None] = partition.accounting.allocate
        self.allocate: Callable[[Ask, Node, int], Allocation | None] = self._allocate
        """Allocates one pending replica of an ask at a time (ns); returns None if a permit policy refuses, or
        if a predicate fails to commit.

        Does not start the execution timeout of the allocation.
        """
        self._books: Books | None = None
        """Books with plugins that have tags for allocations."""
        self._permitted_gang: Callable[[AtomicGang, Plan], Allocation | None] | None = None

    def use(
        self,
        allocate: Callable[[Ask, Node, int], Allocation | None] | None,
        place_gang: Callable[[AtomicGang, Plan], Allocation | None] | None,
    ) -> None:
        """Place by these functions of permit policies from now on, or at once if they are None."""
        self._allocate = allocate or self._partition.accounting.allocate
        self._permitted_gang = place_gang
        self._choose()

    def keep_books(self, books: Books | None) -> None:
        """Pass placements and releases on to these books, whose plugins may commit tags, from now on."""
        self._partition.accounting.keep_books(books)
        self._books = books if books is not None and books.commits else None
        self._choose()

    def _choose(self) -> None:
        self.allocate = self._allocate if self._books is None else self._commit

    def _commit(self, ask: Ask, node: Node, now: int) -> Allocation | None:
        return self._allocate(ask, node, now) if self.plan([(ask, node)]) else None

    def plan(self, plan: Plan) -> bool:
        """Collect the tags of allocations that follow; return False if a predicate fails."""
        return self._books is None or self._books.plan(plan)

    def place(self, ask: Ask, node: Node) -> Allocation | None:
        """Allocate one pending replica of an ask on `node`; return None if that is refused."""
        return self._watched(self.allocate(ask, node, self._partition.clock.now()))

    def _watched(self, allocation: Allocation | None) -> Allocation | None:
        if allocation is not None and allocation.spec.execution_timeout:
            self._partition.watch(allocation)
        return allocation

    def place_gang(self, gang: AtomicGang, plan: Plan) -> Allocation | None:
        """Place all members of an atomic gang; return None if one is refused."""
        if not self.plan(plan):
            return None
        if self._permitted_gang is not None:
            return self._permitted_gang(gang, plan)
        formation = self._partition.gangs.formation
        formation.finish(gang)
        allocation: Allocation | None = None
        for ask, node in plan:
            allocation = self._watched(self._allocate(ask, node, self._partition.clock.now()))
        formation.unblock_rest(gang)
        return allocation
