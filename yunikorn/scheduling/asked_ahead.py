"""Batches the questions to a remote predicate: it is asked about many nodes at once.

A search visits nodes in order and stops at the first that accepts the request. With one question per node,
each node would cost a round trip. The first unanswered node is therefore sent together with the nodes that
follow; the batch size doubles with every question. Answers are valid for one search only, because anything
may change between two searches. Decisions are the same as with one question at a time. See
`docs/decisions/0032`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from yunikorn.errors import CONTAINED

if TYPE_CHECKING:
    from yunikorn.api import Ask, Node, Predicate

FIRST, MOST = 16, 512
"""Number of nodes in the first batch of a search, and the largest number of nodes in a batch."""


class AskedAhead:
    """Adapter that answers `check` from batched calls of `check_nodes`."""

    def __init__(self, predicate: Predicate, excludes: Callable[[Any, Any], bool]) -> None:
        self._predicate = predicate
        self._excludes = excludes
        """Returns True if a predicate earlier in the chain refuses the node."""
        self._ask: Ask | None = None
        """Request of the current search; None between searches."""
        self._upcoming: Iterator[Node] = iter(())
        self._size = FIRST
        self._answers: dict[str, str | None] = {}
        self._error: BaseException | None = None
        """Error of the last batch, if it failed; the predicate is not asked again during this search."""

    def expect(self, ask: Ask, nodes: Iterator[Node]) -> None:
        """Start a search for `ask` that will visit some of these nodes in this order."""
        self._ask, self._upcoming = ask, nodes
        self._size, self._answers, self._error = FIRST, {}, None

    def forget(self) -> None:
        """End the search and discard its answers."""
        self._ask, self._upcoming, self._answers, self._error = None, iter(()), {}, None

    def check(self, ask: Ask, node: Node) -> str | None:
        """Answer as `Predicate.check`; raises what the predicate raises."""
        return self._answer(ask, node, allocate=True)

    def check_reservation(self, ask: Ask, node: Node) -> str | None:
        """Answer as `Predicate.check_reservation`; raises what the predicate raises."""
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
