"""Predicates in their order, and how long each refusal may be remembered (decision 40)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn import api
from yunikorn.api import Predicate
from yunikorn.clock import SECOND
from yunikorn.errors import CONTAINED
from yunikorn.scheduling.asked_ahead import AskedAhead
from yunikorn.scheduling.plugin_timing import read_seconds

if TYPE_CHECKING:
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.node import Node
    from yunikorn.scheduling.plugin_failures import PluginFailures


def counted(refusals: Mapping[str, int]) -> str:
    """Reasons in words, each with its count."""
    return "; ".join(f"{reason} ({count}x)" for reason, count in sorted(refusals.items()))


Check = Callable[[api.Ask, api.Node], str | None]


@attrs.frozen
class _Condition:
    predicate: Predicate
    origin: str
    check: Check
    check_reservation: Check
    by_ask: bool
    """It says what of the ask its answer depends on."""
    by_node: bool
    """And what of the node."""

    @classmethod
    def of(cls, predicate: Predicate, origin: str, ahead: Callable[[], AskedAhead]) -> _Condition:
        kind = type(predicate)
        check: Check = predicate.check
        check_reservation: Check = predicate.check_reservation
        if predicate.asks_ahead:
            asked = ahead()
            check, check_reservation = asked.check, asked.check_reservation
        # What differs between placing and keeping cannot be remembered for both.
        alike = kind.check_reservation is Predicate.check_reservation
        return cls(
            predicate,
            origin,
            check,
            check_reservation,
            alike and kind.ask_class is not Predicate.ask_class,
            kind.node_class is not Predicate.node_class,
        )


class PredicateChain:
    """The predicates of a partition, in order; the first no decides."""

    def __init__(self, predicates: Sequence[tuple[Predicate, str]], failures: PluginFailures) -> None:
        self._failures = failures
        self._made = predicates
        self._lasting: list[_Condition] = []
        self._passing: list[_Condition] = []
        """Those that must be asked again and again come last, so that they are asked as seldom as can be."""
        self._classifying: list[_Condition] = []
        self._sole: _Condition | None = None
        """The one that must be asked for every node and every ask, if there is no other of its like."""
        self._ahead: list[AskedAhead] = []
        self._reasons: list[str] = []
        self.unsettled = 0
        """Refusals since `begin` that any change may undo."""
        self.personal = False
        """Whether a refusal since `begin` holds for the one ask alone."""
        self.asks_ahead = False
        """Whether it is worth its while to know which nodes come next (see `expect`)."""
        self.expects = False
        """Whether it knows."""
        self.refresh: int | None = None
        """Nanoseconds after which a refusal may be undone by what the core hears nothing of."""
        self.bind()

    def bind(self) -> None:
        """Find out what the predicates say of themselves: when they are made, and when they are opened."""
        self._ahead = []
        conditions = [
            _Condition.of(predicate, origin, partial(self._asked_ahead, predicate))
            for predicate, origin in self._made
        ]
        self._lasting = [condition for condition in conditions if condition.by_ask and condition.by_node]
        self._passing = [
            condition for condition in conditions if not (condition.by_ask and condition.by_node)
        ]
        self._classifying = [condition for condition in conditions if condition.by_ask]
        self._sole = self._passing[0] if len(self._passing) == 1 and not self._passing[0].by_ask else None
        self.asks_ahead = bool(self._ahead)
        seconds = [
            read_seconds(condition.predicate, "refresh_every", condition.origin, self._failures)
            for condition in self._passing
            if not condition.by_ask
        ]
        self.refresh = min((round(one * SECOND) for one in seconds if one), default=None)

    def _asked_ahead(self, predicate: Predicate) -> AskedAhead:
        asked = AskedAhead(predicate, self.excludes)
        self._ahead.append(asked)
        return asked

    def __bool__(self) -> bool:
        return bool(self._made)

    # -- a search -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """A search for a node starts."""
        self._reasons = []
        self.unsettled, self.personal = 0, False

    @property
    def refusals(self) -> Mapping[str, int]:
        """Why nodes were refused since `begin`, counted."""
        return Counter(self._reasons)

    @property
    def passing(self) -> bool:
        """Whether a refusal since `begin` may be undone by any change."""
        return self.unsettled > 0

    def expect(self, ask: Ask, nodes: Callable[[], Iterator[Node]]) -> None:
        """A search for `ask` walks these nodes next, until `forget`; worth saying if `asks_ahead`."""
        self.expects = True
        for asked in self._ahead:
            asked.expect(ask, nodes())

    def forget(self) -> None:
        """The walk that was told to `expect` is over."""
        self.expects = False
        for asked in self._ahead:
            asked.forget()

    @contextmanager
    def expecting(self, ask: Ask, nodes: Callable[[], Iterator[Node]]) -> Iterator[None]:
        """While this holds, `nodes` are looked at for `ask` in their order."""
        self.expect(ask, nodes)
        try:
            yield
        finally:
            self.forget()

    # -- classes ------------------------------------------------------------------------------------

    def ask_classes(self, ask: Ask) -> tuple[Hashable, ...]:
        """The class of an ask for each predicate that declares one: part of its ask class."""
        found: list[Hashable] = []
        for condition in self._classifying:
            try:
                value = condition.predicate.ask_class(ask)
                hash(value)
            except CONTAINED as error:
                self._failures.report(condition.origin, "computing the class of", error, ask.label)
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
                self._failures.report(condition.origin, "computing the class of", error, node.label)
                value = (node.id, node.version)
            found.append(value)
        return tuple(found)

    # -- asking -------------------------------------------------------------------------------------

    def first(self, ask: Ask, nodes: Iterable[Node]) -> Node | None:
        """The first of `nodes`, which have room for `ask`, that nobody refuses; refusals are noted."""
        # The hot loop where predicates do not say what they depend on: every node is asked for every ask.
        lasting, verdicts, reasons = self._lasting, ask.ask_class.verdicts, self._reasons
        sole = self._sole
        check: Any = None if sole is None else sole.check
        unsettled = 0
        found: Node | None = None
        for node in nodes:
            reason = None
            if lasting:
                try:
                    reason = verdicts[node.classes]
                except KeyError:
                    reason = self._verdict(ask, node)
                if reason is not None:
                    reasons.append(reason)
                    continue
            if sole is None:
                reason = self._passing_refusal(ask, node)
            else:
                try:
                    reason = check(ask, node)
                except CONTAINED as error:
                    reason = self._failed(sole, ask, node, error)
                if reason is not None and type(reason) is not str:
                    reason = self._useless(sole, ask, node, reason)
            if reason is None:
                found = node
                break
            reasons.append(reason)
            unsettled += 1
        if unsettled:
            self.unsettled += unsettled
            if sole is not None:
                self.personal = True
        return found

    def refusal(self, ask: Ask, node: Node) -> str | None:
        """None if `ask` may be placed on `node`, else why not; noted for the search."""
        reason = self._lasting_refusal(ask, node)
        if reason is None:
            reason = self._passing_refusal(ask, node)
            self.unsettled += reason is not None
        if reason is not None:
            self._reasons.append(reason)
        return reason

    def judge(self, ask: Ask, node: Node, *, reserve: bool = False) -> str | None:
        """None if `ask` may be placed on `node`, or the node kept for it (`reserve`), else why not."""
        reason = self._lasting_refusal(ask, node)
        if reason is not None:
            return reason
        found = self._who_refuses(ask, node, reserve=reserve)
        return None if found is None else found[1]

    def excludes(self, ask: Ask, node: Node) -> bool:
        """Whether `node` may not take `ask` whatever else runs there, as far as predicates say so."""
        return self._lasting_refusal(ask, node) is not None

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
        """Whether what nodes answer to a request holds for all requests of its ask class."""
        return all(condition.by_ask for condition in (*self._lasting, *self._passing))

    def _lasting_refusal(self, ask: Ask, node: Node) -> str | None:
        if not self._lasting:
            return None
        try:
            return ask.ask_class.verdicts[node.classes]
        except KeyError:
            return self._verdict(ask, node)

    def _passing_refusal(self, ask: Ask, node: Node) -> str | None:
        found = self._who_refuses(ask, node)
        if found is None:
            return None
        if not found[0].by_ask:
            self.personal = True
        return found[1]

    def _who_refuses(self, ask: Ask, node: Node, *, reserve: bool = False) -> tuple[_Condition, str] | None:
        for condition in self._passing:
            if condition.by_ask:
                reason = self._remembered(condition, ask, node)
            else:
                reason = self._answer(condition, ask, node, reserve=reserve)
            if reason is not None:
                return condition, reason
        return None

    def _verdict(self, ask: Ask, node: Node) -> str | None:
        """What the lasting ones say to the class of `ask` and that of `node`; kept."""
        reason = None
        for condition in self._lasting:
            reason = self._answer(condition, ask, node)
            if reason is not None:
                break
        ask.ask_class.verdicts[node.classes] = reason
        return reason

    def _remembered(self, condition: _Condition, ask: Ask, node: Node) -> str | None:
        """What one says to all requests of the ask class until the node changes; a refusal is kept."""
        known = ask.ask_class.refused.get(node.id)
        if known is not None and known[0] == node.version:
            return known[1]
        reason = self._answer(condition, ask, node)
        if reason is not None:
            ask.ask_class.refused[node.id] = (node.version, reason)
        return reason

    def _answer(self, condition: _Condition, ask: Ask, node: Node, *, reserve: bool = False) -> str | None:
        check = condition.check_reservation if reserve else condition.check
        try:
            reason = check(ask, node)
        except CONTAINED as error:
            return self._failed(condition, ask, node, error)
        if reason is None or isinstance(reason, str):
            return reason
        return self._useless(condition, ask, node, reason)

    def _useless(self, condition: _Condition, ask: Ask, node: Node, answer: object) -> str:
        if isinstance(answer, str):
            return answer
        error = TypeError(f"check returned {answer!r} instead of None or a text")
        return self._failed(condition, ask, node, error)

    def _failed(self, condition: _Condition, ask: Ask, node: Node, error: BaseException) -> str:
        return str(self._failures.report(condition.origin, "checking", error, f"{ask.label} on {node.label}"))
