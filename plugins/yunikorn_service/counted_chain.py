"""Predicate chain with statistics: it counts the calls of predicates that are asked about every node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any

from yunikorn.containment import LONGEST_TEXT, contained
from yunikorn.scheduling.predicate_chain import PredicateChain
from yunikorn_service.method_meters import meter_of

if TYPE_CHECKING:
    from yunikorn.model.ask import Ask
    from yunikorn.model.node import Node
    from yunikorn.scheduling.predicate_calls import Check, Condition

FIRST = 8
"""The first searches of a predicate, as many as this, are all measured."""


class CountedChain(PredicateChain):
    """Predicates of a partition whose calls are counted.

    A search for a node may ask a predicate without classes about thousands of nodes. These calls pass by the
    counting method of the predicate, which costs more than counting here. Some searches measure them.
    """

    _choices: Sequence[tuple[Condition, Callable[[], Check]]] = ()
    """Predicates that are counted here; each with a function that returns its check for the next search."""

    def bind(self, node_sorts: Sequence[tuple[object, str]] = ()) -> None:
        """As `PredicateChain.bind`."""
        super().bind(node_sorts)
        self._choices = [
            (condition, chosen)
            for condition in self._passing
            if not condition.by_ask and (chosen := _search_checks(condition)) is not None
        ]

    def begin(self) -> None:
        """As `PredicateChain.begin`."""
        PredicateChain.begin(self)
        for condition, chosen in self._choices:
            condition.search_check = chosen()

    def _refuse_all(self, condition: Condition, message: str) -> None:
        super()._refuse_all(condition, message)
        self._choices = [one for one in self._choices if one[0] is not condition]

    def _who_refuses(self, ask: Ask, node: Node, *, reserve: bool = False) -> tuple[Condition, str] | None:
        for condition in self._passing:
            reason: str | None
            if condition.by_ask:
                reason = self._remembered(condition, ask, node)
            elif reserve:
                reason = self._answer(condition, ask, node, reserve=True)
            else:
                searches = condition.searches
                try:
                    reason = condition.search_check(ask, node)
                except contained() as error:
                    searches.failed += 1
                    return condition, self._failed(condition, ask, node, error)
                if reason is None:
                    searches.accepted += 1
                    continue
                searches.refused += 1
                if type(reason) is not str or len(reason) > LONGEST_TEXT:
                    reason = self._useless(condition, ask, node, reason)
            if reason is not None:
                return condition, reason
        return None


def _search_checks(condition: Condition) -> Callable[[], Check] | None:
    """Return a function that returns the check of a search; None if other calls count themselves."""
    predicate, check = condition.predicate, condition.check
    # Neither an adapter, nor a method that the object itself has.
    if type(check) is not MethodType or check.__self__ is not predicate:
        return None
    meter = meter_of(predicate, check.__func__)
    if meter is None:
        return None
    condition.searches = meter.searches
    inner: Any = vars(check.__func__)["__wrapped__"]
    return partial(next, meter.sampling(MethodType(inner, predicate), first=FIRST))
