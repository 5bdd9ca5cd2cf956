"""Chain of predicates, with caches for refusals according to their declared dependencies.

See `docs/decisions/0040`.

`AskedAhead` asks a remote predicate about many nodes at once. A search visits nodes in order and stops at the
first that accepts the request. With one question per node, each node would cost a round trip. The first
unanswered node is therefore sent together with the nodes that follow; the batch size doubles with every
question. Answers are valid for one search only, because anything may change between two searches. Decisions
are the same as with one question at a time. See `docs/decisions/0032`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn import api
from yunikorn.api import Predicate
from yunikorn.clock import SECOND
from yunikorn.containment import (
    LONGEST_TEXT,
    contained,
    describe_error,
    entries_of,
    kept_key,
    read_attribute,
    safe_repr,
    text_or_none,
)
from yunikorn.framework.plugin_failures import read_flag, read_seconds

if TYPE_CHECKING:
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.ask import Ask
    from yunikorn.model.node import Node


FIRST, MOST = 16, 512
"""Number of nodes in the first batch of a search, and the largest number of nodes in a batch."""


class AskedAhead:
    """Adapter that answers `check` from batched calls of `check_nodes`."""

    def __init__(self, predicate: Predicate, excludes: Callable[[Any, Any], bool]) -> None:
        self._predicate = predicate
        self._excludes = excludes
        """Returns True if a predicate earlier in the chain refuses the node."""
        self._ask: api.Ask | None = None
        """Request of the current search; None between searches."""
        self._upcoming: Iterator[api.Node] = iter(())
        self._size = FIRST
        self._answers: dict[str, str | None] = {}
        self._error: BaseException | None = None
        """Error of the last batch, if it failed; the predicate is not asked again during this search."""

    def expect(self, ask: api.Ask, nodes: Iterator[api.Node]) -> None:
        """Start a search for `ask` that will visit some of these nodes in this order."""
        self._ask, self._upcoming = ask, nodes
        self._size, self._answers, self._error = FIRST, {}, None

    def forget(self) -> None:
        """End the search and discard its answers."""
        self._ask, self._upcoming, self._answers, self._error = None, iter(()), {}, None

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        """Answer as `Predicate.check`; raises what the predicate raises."""
        return self._answer(ask, node, allocate=True)

    def check_reservation(self, ask: api.Ask, node: api.Node) -> str | None:
        """Answer as `Predicate.check_reservation`; raises what the predicate raises."""
        return self._answer(ask, node, allocate=False)

    def _answer(self, ask: api.Ask, node: api.Node, *, allocate: bool) -> str | None:
        if ask is not self._ask:
            return self._question(ask, [node], allocate=allocate)[0]
        if node.id not in self._answers:
            if self._error is not None:
                raise self._error.with_traceback(None)
            nodes = [node, *self._next(ask, node)]
            try:
                answers = self._question(ask, nodes, allocate=allocate)
            except contained() as error:
                self._error = error
                raise
            self._answers.update(zip((one.id for one in nodes), answers, strict=True))
        return self._answers[node.id]

    def _next(self, ask: api.Ask, node: api.Node) -> Iterator[api.Node]:
        for upcoming in self._upcoming:
            if upcoming is node:
                break
        size, self._size = self._size, min(2 * self._size, MOST)
        return islice((one for one in self._upcoming if not self._excludes(ask, one)), size - 1)

    def _question(self, ask: api.Ask, nodes: Sequence[api.Node], *, allocate: bool) -> Sequence[str | None]:
        answers = self._predicate.check_nodes(ask, nodes, allocate=allocate)
        if isinstance(answers, Sequence) and not isinstance(answers, str):
            found = entries_of(answers, len(nodes))
            if len(found) == len(nodes):
                return found
        raise TypeError(
            f"check_nodes returned {safe_repr(answers)} instead of a list with {len(nodes)} answers"
        )


def counted(refusals: Mapping[str, int]) -> str:
    """Return the reasons as text, each with its count."""
    return "; ".join(f"{reason} ({count}x)" for reason, count in sorted(refusals.items()))


Check = Callable[[api.Ask, api.Node], str | None]


@attrs.frozen
class _Condition:
    predicate: Predicate
    origin: str
    check: Check
    check_reservation: Check
    by_ask: bool
    """True if the predicate declares by `ask_class` on which properties of an ask its answer depends."""
    by_node: bool
    """True if the predicate declares by `node_class` on which properties of a node its answer depends."""

    @classmethod
    def of(
        cls, predicate: Predicate, origin: str, asks_ahead: bool, ahead: Callable[[], AskedAhead]
    ) -> _Condition:
        kind = type(predicate)
        check: Check = read_attribute(predicate, "check")
        check_reservation: Check = read_attribute(predicate, "check_reservation")
        if asks_ahead:
            asked = ahead()
            check, check_reservation = asked.check, asked.check_reservation
        # Answers that differ between allocation and reservation cannot be cached for both.
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
    """Predicates of a partition, in order; the first refusal decides."""

    def __init__(self, predicates: Sequence[tuple[Predicate, str]], failures: PluginFailures) -> None:
        self._failures = failures
        self._made = predicates
        self._lasting: list[_Condition] = []
        self._passing: list[_Condition] = []
        """Predicates without a lasting answer; they are asked last, and therefore least often."""
        self._classifying: list[_Condition] = []
        self._sole: _Condition | None = None
        """The predicate to ask for every pair of ask and node, if exactly one is of this kind."""
        self._ahead: list[AskedAhead] = []
        self._reasons: list[str] = []
        self.unsettled = 0
        """Number of refusals since `begin` that any change may undo."""
        self.personal = False
        """True if a refusal since `begin` is specific to one ask."""
        self.asks_ahead = False
        """True if a predicate benefits from `expect`."""
        self.expects = False
        """True between `expect` and `forget`."""
        self.refresh: int | None = None
        """Interval (ns) after which refusals may change without a change in the core; None if unused."""
        self.bind()

    def bind(self) -> None:
        """Read the properties that predicates declare; called at creation and after opening."""
        self._ahead = []
        conditions = [
            _Condition.of(
                predicate,
                origin,
                read_flag(predicate, "asks_ahead", origin, self._failures),
                partial(self._asked_ahead, predicate),
            )
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
        """Start a search for a node."""
        self._reasons = []
        self.unsettled, self.personal = 0, False

    @property
    def refusals(self) -> Mapping[str, int]:
        """Number of refused nodes since `begin`, by reason."""
        return Counter(self._reasons)

    @property
    def passing(self) -> bool:
        """True if any change may undo a refusal since `begin`."""
        return self.unsettled > 0

    def expect(self, ask: Ask, nodes: Callable[[], Iterator[Node]]) -> None:
        """Announce that a search for `ask` visits these nodes until `forget`; useful if `asks_ahead`."""
        self.expects = True
        for asked in self._ahead:
            asked.expect(ask, nodes())

    def forget(self) -> None:
        """End the search announced by `expect`."""
        self.expects = False
        for asked in self._ahead:
            asked.forget()

    @contextmanager
    def expecting(self, ask: Ask, nodes: Callable[[], Iterator[Node]]) -> Iterator[None]:
        """Announce a search for `ask` through `nodes` for the duration of the context."""
        self.expect(ask, nodes)
        try:
            yield
        finally:
            self.forget()

    # -- classes ------------------------------------------------------------------------------------

    def predicate_classes(self, ask: Ask) -> tuple[Hashable, ...]:
        """Return the ask's class for each predicate that declares one; part of the key of its ask class."""
        found: list[Hashable] = []
        for condition in self._classifying:
            try:
                value = kept_key(
                    condition.predicate.ask_class(ask), partial(self._failed_comparison, condition)
                )
            except contained() as error:
                self._failures.report(condition.origin, "computing the class of", error, ask.label)
                value = (ask.app.id, ask.key)
            found.append(value)
        return tuple(found)

    def node_classes(self, node: Node) -> tuple[Hashable, ...]:
        """Return the node's class for each predicate that declares one."""
        found: list[Hashable] = []
        for condition in self._lasting:
            try:
                value = kept_key(
                    condition.predicate.node_class(node), partial(self._failed_comparison, condition)
                )
            except contained() as error:
                self._failures.report(condition.origin, "computing the class of", error, node.label)
                value = (node.id, node.version)
            found.append(value)
        return tuple(found)

    # -- asking -------------------------------------------------------------------------------------

    def first(self, ask: Ask, nodes: Iterable[Node]) -> Node | None:
        """Return the first of `nodes` that no predicate refuses; all nodes have room. Records refusals."""
        # Hot loop for predicates that declare no dependencies: every ask is checked on every node.
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
                except contained() as error:
                    reason = self._failed(sole, ask, node, error)
                if reason is not None and (type(reason) is not str or len(reason) > LONGEST_TEXT):
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
        """Return None if `ask` may be placed on `node`, else the reason, which is also recorded."""
        reason = self._lasting_refusal(ask, node)
        if reason is None:
            reason = self._passing_refusal(ask, node)
            self.unsettled += reason is not None
        if reason is not None:
            self._reasons.append(reason)
        return reason

    def judge(self, ask: Ask, node: Node, *, reserve: bool = False) -> str | None:
        """Return None if `ask` may be placed on `node`, or reserve it with `reserve`; else the reason."""
        reason = self._lasting_refusal(ask, node)
        if reason is not None:
            return reason
        found = self._who_refuses(ask, node, reserve=reserve)
        return None if found is None else found[1]

    def excludes(self, ask: Ask, node: Node) -> bool:
        """Return True if a predicate refuses `ask` on `node` regardless of other allocations there."""
        return self._lasting_refusal(ask, node) is not None

    def evaluate(self, ask: Ask, node: Node) -> tuple[Predicate, str] | None:
        """Return the refusing predicate and its reason, or None; nothing is cached or reported."""
        for condition in (*self._lasting, *self._passing):
            try:
                reason = condition.check(ask, node)
            except contained() as error:
                reason = f"it failed with {describe_error(error)}"
            if reason is not None:
                text = text_or_none(reason)
                return condition.predicate, f"it returned {safe_repr(reason)}" if text is None else text
        return None

    @property
    def are_shared(self) -> bool:
        """True if every answer of a node applies to all requests of the same ask class."""
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
        """Return and cache the answer of the lasting predicates for the classes of `ask` and `node`."""
        reason = None
        for condition in self._lasting:
            reason = self._answer(condition, ask, node)
            if reason is not None:
                break
        ask.ask_class.verdicts[node.classes] = reason
        return reason

    def _remembered(self, condition: _Condition, ask: Ask, node: Node) -> str | None:
        """Return a predicate's answer for the ask class; a refusal is cached until the node changes."""
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
        except contained() as error:
            return self._failed(condition, ask, node, error)
        if reason is None or (type(reason) is str and len(reason) <= LONGEST_TEXT):
            return reason
        return self._useless(condition, ask, node, reason)

    def _useless(self, condition: _Condition, ask: Ask, node: Node, answer: object) -> str:
        text = text_or_none(answer)
        if text is not None:
            return text
        error = TypeError(f"check returned {safe_repr(answer)} instead of None or a text")
        return self._failed(condition, ask, node, error)

    def _failed_comparison(self, condition: _Condition, error: BaseException) -> None:
        self._failures.report(condition.origin, "comparing classes", error)

    def _failed(self, condition: _Condition, ask: Ask, node: Node, error: BaseException) -> str:
        return str(self._failures.report(condition.origin, "checking", error, f"{ask.label} on {node.label}"))
