"""Asking ahead: a predicate that is far away is asked about many nodes at once (decision 32).

A search walks the nodes in their order and stops at the first that will do. Asked one by one, each node
would cost a round trip. So with the first node that there is no answer for, those that come after it are
asked about as well, few at first and twice as many each time. Answers hold for one search: between two of
them anything may change. What is decided is the same as with one question at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from yunikorn.errors import CONTAINED

if TYPE_CHECKING:
    from yunikorn.api import Ask, Node, Predicate

FIRST, MOST = 16, 512
"""Nodes that are asked about at once: with the first question of a search, and at the most."""


class AskedAhead:
    """A predicate with `check_nodes`, asked as if it had only `check`."""

    def __init__(self, predicate: Predicate, excludes: Callable[[Any, Any], bool]) -> None:
        self._predicate = predicate
        self._excludes = excludes
        """Whether another predicate, which is asked first, says no."""
        self._ask: Ask | None = None
        """Whom the search is for, while there is one."""
        self._upcoming: Iterator[Node] = iter(())
        self._size = FIRST
        self._answers: dict[str, str | None] = {}
        self._error: BaseException | None = None
        """What the last question was answered with, if it failed: it is not asked again in this search."""

    def expect(self, ask: Ask, nodes: Iterator[Node]) -> None:
        """A search for `ask` begins: it is going to look at some of these nodes, in this order."""
        self._ask, self._upcoming = ask, nodes
        self._size, self._answers, self._error = FIRST, {}, None

    def forget(self) -> None:
        """The search is over."""
        self._ask, self._upcoming, self._answers, self._error = None, iter(()), {}, None

    def check(self, ask: Ask, node: Node) -> str | None:
        """As `Predicate.check`; raises what the predicate raises."""
        return self._answer(ask, node, allocate=True)

    def check_reservation(self, ask: Ask, node: Node) -> str | None:
        """As `Predicate.check_reservation`; raises what the predicate raises."""
        return self._answer(ask, node, allocate=False)

    def _answer(self, ask: Ask, node: Node, *, allocate: bool) -> str | None:
        if ask is not self._ask:
            return self._question(ask, [node], allocate=allocate)[0]
        if node.id not in self._answers:
            if self._error is not None:
                raise self._error.with_traceback(None)
            nodes = [node, *self._next(ask, node)]
            try:
                answers = self._question(ask, nodes, allocate=allocate)
            except CONTAINED as error:
                self._error = error
                raise
            self._answers.update(zip((one.id for one in nodes), answers, strict=True))
        return self._answers[node.id]

    def _next(self, ask: Ask, node: Node) -> Iterator[Node]:
        for upcoming in self._upcoming:
            if upcoming is node:
                break
        size, self._size = self._size, min(2 * self._size, MOST)
        return islice((one for one in self._upcoming if not self._excludes(ask, one)), size - 1)

    def _question(self, ask: Ask, nodes: Sequence[Node], *, allocate: bool) -> Sequence[str | None]:
        answers = self._predicate.check_nodes(ask, nodes, allocate=allocate)
        if not isinstance(answers, Sequence) or isinstance(answers, str) or len(answers) != len(nodes):
            raise TypeError(f"check_nodes returned {answers!r} instead of a list with {len(nodes)} answers")
        return answers
