"""Predicates in their order, and how long each refusal may be remembered (decision 40)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import attrs

from yunikorn.api import Predicate
from yunikorn.errors import CONTAINED

if TYPE_CHECKING:
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.node import Node
    from yunikorn.scheduling.faults import FaultLog


class Refusal(NamedTuple):
    """Why a node may not take an ask."""

    reason: str
    lasting: bool
    """Whether it holds for every ask of the shape until the node's attributes change."""
    shared: bool
    """Whether it holds for every ask of the shape until something changes."""


@attrs.frozen
class _Condition:
    predicate: Predicate
    origin: str
    check: Callable[[Ask, Node], str | None]
    by_ask: bool
    """It says what of the ask its answer depends on."""
    by_node: bool
    """And what of the node."""


class PredicateChain:
    """The predicates of a partition, in order; the first no decides."""

    def __init__(self, predicates: Sequence[tuple[Predicate, str]], faults: FaultLog) -> None:
        self._faults = faults
        conditions = [self._condition(predicate, origin) for predicate, origin in predicates]
        self._lasting = [condition for condition in conditions if condition.by_ask and condition.by_node]
        # Those that must be asked again and again come last, so that they are asked as seldom as can be.
        self._passing = [
            condition for condition in conditions if not (condition.by_ask and condition.by_node)
        ]
        self._classifying = [condition for condition in conditions if condition.by_ask]
        self.refusals: dict[str, int] = {}
        """Why nodes were refused since `begin`, counted."""
        self.personal = False
        """Whether a refusal since `begin` holds for the one ask alone."""
        self.passing = False
        """Whether a refusal since `begin` may be undone by any change."""

    def begin(self) -> None:
        """A search for a node starts."""
        self.refusals = {}
        self.personal = self.passing = False

    @staticmethod
    def _condition(predicate: Predicate, origin: str) -> _Condition:
        cls = type(predicate)
        return _Condition(
            predicate,
            origin,
            predicate.check,
            cls.ask_class is not Predicate.ask_class,
            cls.node_class is not Predicate.node_class,
        )

    def __bool__(self) -> bool:
        return bool(self._lasting or self._passing)

    def ask_classes(self, ask: Ask) -> tuple[Hashable, ...]:
        """The class of an ask for each predicate that declares one: part of its shape."""
        found: list[Hashable] = []
        for condition in self._classifying:
            try:
                value = condition.predicate.ask_class(ask)
                hash(value)
            except CONTAINED as error:
                self._faults.report(condition.origin, "computing the class of", error, ask.label)
                value = (ask.app.id, ask.key)
            found.append(value)
        return tuple(found)

    def node_classes(self, node: Node) -> tuple[Hashable, ...]:
        """The class of a node for each predicate that declares one."""
        found: list[Hashable] = []
        for condition in self._lasting:
            try:
                value = condition.predicate.node_class(node)
                hash(value)
            except CONTAINED as error:
                self._faults.report(condition.origin, "computing the class of", error, node.label)
                value = (node.id, node.version)
            found.append(value)
        return tuple(found)

    def refusal(self, ask: Ask, node: Node) -> Refusal | None:
        """None if `node` may take `ask`, else why not; counted."""
        refusal = self.judge(ask, node)
        if refusal is not None:
            self.refusals[refusal.reason] = self.refusals.get(refusal.reason, 0) + 1
            self.personal |= not refusal.shared
            self.passing |= not refusal.lasting
        return refusal

    def judge(self, ask: Ask, node: Node) -> Refusal | None:
        """None if `node` may take `ask`, else why not."""
        if self._lasting:
            verdicts = ask.shape.verdicts
            try:
                reason = verdicts[node.classes]
            except KeyError:
                reason = verdicts[node.classes] = self._first_no(self._lasting, ask, node)
            if reason is not None:
                return Refusal(reason, True, True)
        for condition in self._passing:
            if condition.by_ask:
                known = ask.shape.refused.get(node.id)
                if known is not None and known[0] == node.version:
                    return Refusal(known[1], False, True)
            reason = self._first_no((condition,), ask, node)
            if reason is not None:
                if condition.by_ask:
                    ask.shape.refused[node.id] = (node.version, reason)
                return Refusal(reason, False, condition.by_ask)
        return None

    def excludes(self, ask: Ask, node: Node) -> bool:
        """Whether `node` may not take `ask` whatever else runs there, as far as predicates say so."""
        if not self._lasting:
            return False
        verdicts = ask.shape.verdicts
        if node.classes not in verdicts:
            verdicts[node.classes] = self._first_no(self._lasting, ask, node)
        return verdicts[node.classes] is not None

    def look(self, ask: Ask, node: Node) -> tuple[Predicate, str] | None:
        """Who refuses `node` and why, for whoever only wants to know: nothing is remembered or reported."""
        for condition in (*self._lasting, *self._passing):
            try:
                reason = condition.check(ask, node)
            except CONTAINED as error:
                reason = f"it failed with {type(error).__name__}: {error}"
            if reason is not None:
                return condition.predicate, reason if isinstance(reason, str) else f"it answered {reason!r}"
        return None

    @property
    def are_shared(self) -> bool:
        """Whether what nodes answer to a request holds for all requests of its shape."""
        return all(condition.by_ask for condition in (*self._lasting, *self._passing))

    def _first_no(self, conditions: Sequence[_Condition], ask: Ask, node: Node) -> str | None:
        for condition in conditions:
            try:
                reason = condition.check(ask, node)
                if reason is not None and not isinstance(reason, str):
                    raise TypeError(f"check returned {reason!r} instead of None or a text")
            except CONTAINED as error:
                where = f"{ask.label} on {node.label}"
                return str(self._faults.report(condition.origin, "checking", error, where))
            if reason is not None:
                return reason
        return None
