"""Chain of predicates, with caches for refusals according to their declared dependencies.

See `docs/decisions/0040`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from yunikorn.api import Predicate
from yunikorn.clock import SECOND
from yunikorn.containment import (
    LONGEST_TEXT,
    contained,
    describe_error,
    kept_key,
    safe_repr,
    text_or_none,
)
from yunikorn.framework.plugin_failures import read_seconds
from yunikorn.scheduling.domain_tables import DomainTables
from yunikorn.scheduling.predicate_calls import AskedAhead, ClassVersions, Condition, Prepared, keeper_of
from yunikorn.scheduling.shared_verdicts import SharedVerdicts

if TYPE_CHECKING:
    from yunikorn.accounting.books import Keeper
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.domain import Closing, Domain
    from yunikorn.model.node import Node
    from yunikorn.scheduling.predicate_calls import SearchState


_RESERVING = object()
"""Marks the verdicts about reservations among those of all predicates."""


def counted(refusals: Mapping[str, int]) -> str:
    """Return the reasons as text, each with its count."""
    return "; ".join(f"{reason} ({count}x)" for reason, count in sorted(refusals.items()))


class PredicateChain:
    """Predicates of a partition, in order; the first refusal decides."""

    def __init__(self, predicates: Sequence[tuple[Predicate, str]], failures: PluginFailures) -> None:
        self._failures = failures
        self._made = predicates
        self._lasting: list[Condition] = []
        self._passing: list[Condition] = []
        """Predicates without a lasting answer; they are asked last, and therefore least often."""
        self._classifying: list[Condition] = []
        self._versions = ClassVersions((), failures)
        self.changes_classes = False
        """True if a predicate or a node sort policy may change its classes of requests."""
        self._verdicts = SharedVerdicts((), ())
        self._sole: Condition | None = None
        """The predicate to ask for every pair of ask and node, if exactly one is of this kind."""
        self._ahead: list[AskedAhead] = []
        self.prepared: list[SearchState] = []
        """States that are discarded when a search begins."""
        self._domains = DomainTables((), self._answer, failures)
        """Predicates whose answers are remembered per domain; asked between the other two kinds."""
        self.has_domains = False
        """True if a predicate declares domains."""
        self.exhausted = False
        """True if a predicate turned out to refuse the ask class everywhere during this search."""
        self._all_on_reservation = True
        """True if every predicate is asked about reservations."""
        self.is_hypothetical = False
        """True while books lack tasks that run: no answer is then remembered."""
        self._reasons: list[str] = []
        self.unsettled = 0
        """Number of refusals since `begin` that any change may undo."""
        self.personal = False
        """True if a refusal since `begin` is specific to one ask."""
        self.asks_ahead = False
        """True if a predicate benefits from `expect`."""
        self.expects = False
        """True between `expect` and `forget`."""
        self._counting: list[Condition] = []
        """Predicates that know how many requests a node has room for."""
        self.refresh: int | None = None
        """Interval (ns) after which refusals may change without a change in the core; None if unused."""
        self.bind()

    def bind(self, node_sorts: Sequence[tuple[object, str]] = ()) -> None:
        """Read the properties that predicates declare; called at creation and after opening.

        `node_sorts` are the node sort policies with their origins, whose classes of requests may change, too.
        """
        self._ahead, self.prepared = [], []
        conditions = [
            Condition.of(
                predicate,
                origin,
                self._failures,
                partial(self._asked_ahead, predicate),
                partial(self._prepare, predicate),
            )
            for predicate, origin in self._made
        ]
        self._lasting = [condition for condition in conditions if condition.by_ask and condition.by_node]
        self._domains = DomainTables(
            [condition for condition in conditions if condition.by_domain], self._answer, self._failures
        )
        self.has_domains = bool(self._domains)
        self._passing = [
            condition
            for condition in conditions
            if not (condition.by_ask and condition.by_node) and not condition.by_domain
        ]
        self._classifying = [condition for condition in conditions if condition.by_ask]
        self._counting = [one for one in conditions if type(one.predicate).room is not Predicate.room]
        classifying = [(condition.predicate, condition.origin) for condition in self._classifying]
        self._versions = ClassVersions((*classifying, *node_sorts), self._failures)
        self.changes_classes = bool(self._versions)
        self._verdicts = SharedVerdicts(self._classifying, self._lasting)
        self._all_on_reservation = all(condition.on_reservation for condition in conditions)
        self._sole = self._passing[0] if len(self._passing) == 1 and not self._passing[0].by_ask else None
        self.asks_ahead = bool(self._ahead)
        seconds = [
            read_seconds(condition.predicate, "refresh_every", condition.origin, self._failures)
            for condition in self._passing
            if not condition.by_ask
        ]
        self.refresh = min((round(one * SECOND) for one in seconds if one), default=None)

    def ask_again(self) -> None:
        """Forget all answers; refusals of domains are checked again by `review_domains`."""
        self._verdicts = SharedVerdicts(self._classifying, self._lasting)
        self._domains.touch_all()

    def _asked_ahead(self, predicate: Predicate) -> AskedAhead:
        asked = AskedAhead(predicate, self.excludes)
        self._ahead.append(asked)
        return asked

    def _prepare(self, predicate: Predicate) -> Prepared:
        prepared = Prepared(predicate)
        self.prepared.append(prepared)
        return prepared

    def __bool__(self) -> bool:
        return bool(self._made)

    # -- books --------------------------------------------------------------------------------------

    def keepers(self) -> Iterator[Keeper]:
        """Yield the predicates that keep books, with their handlers."""
        at = 0
        for condition in self._all():
            keeper = keeper_of(condition.predicate, condition.origin)
            if keeper is not None:
                keeper.on_failure = partial(self._refuse_all, condition)
                if condition.by_domain:
                    keeper.on_change = partial(self._domains.changed, at)
                    at += 1
                yield keeper

    def _refuse_all(self, condition: Condition, message: str) -> None:
        """Refuse everything by a predicate whose books are unknown, until a reload replaces it."""
        condition.refuse_all(f"the books of {condition.predicate.name} are unknown: {message}")
        if self._sole is condition:
            self._sole = None

    def watch_domains(self, touched: Callable[[], None]) -> None:
        """Call `touched` before refusals may end; `review_domains` is then due."""
        self._domains.watch(touched)

    def join_domains(self, node: Node) -> None:
        """Add a node to its domain of each predicate that declares them."""
        self._domains.join(node)

    def leave_domains(self, node: Node) -> None:
        """Remove a node from its domains."""
        self._domains.leave(node)

    def forget_ask_class(self, ask_class: AskClass) -> None:
        """Forget the refusals of an ask class that no longer exists."""
        self._domains.forget(ask_class)

    def review_domains(self, opened: Callable[[AskClass, Domain, Closing], None]) -> None:
        """Check the refusals again that may have ended since the last call; `opened` gets those that have."""
        self.prepare_again()
        self._domains.review(opened)

    def refuses_everywhere(self, ask_class: AskClass) -> bool:
        """Return True if a predicate refuses the ask class in all of its domains; starts a search."""
        self.exhausted = False
        return self._domains.refuse_everywhere(ask_class)

    def is_closed(self, ask_class: AskClass, node: Node) -> bool:
        """Return True if a domain of the node is known to refuse the ask class."""
        return any(ask_class in domain.closed for domain in node.domains)

    def refusals_of(self, ask: Ask) -> Mapping[str, int]:
        """Return the number of refused nodes since `begin`, by reason, with all nodes of refusing domains."""
        found = Counter(self._reasons)
        for reason, count in self._domains.refusals(ask.ask_class):
            found[reason] += count
        return found

    @contextmanager
    def hypothetically(self) -> Iterator[None]:
        """Ask without remembering answers, because the books lack tasks that run."""
        self.is_hypothetical = True
        try:
            yield
        finally:
            self.is_hypothetical = False
            self.prepare_again()

    # -- a search -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start a search for a node."""
        self._reasons = []
        self.unsettled, self.personal = 0, False
        if self.prepared:
            self.prepare_again()

    def prepare_again(self) -> None:
        """Discard the states of predicates with `prepare`, because something has changed."""
        for prepared in self.prepared:
            prepared.forget()

    @property
    def passing(self) -> bool:
        """True if any change may undo a refusal since `begin`."""
        return self.unsettled > 0

    def expect(self, ask: Ask, nodes: Callable[[], Iterator[Node]]) -> None:
        """Announce that a search for `ask` visits these nodes until `forget`; useful if `asks_ahead`."""
        self.expects = True
        self.prepare_again()
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

    def classes_changed(self) -> bool:
        """Return True if one of them has changed its classes of requests since the previous call."""
        return self._versions.changed()

    def predicate_classes(self, ask: Ask) -> tuple[Hashable, ...]:
        """Return the ask's class for each predicate that declares one; part of the key of its ask class."""
        found: list[Hashable] = []
        for condition in self._classifying:
            try:
                value = kept_key(condition.predicate.ask_class(ask), condition.failed_comparison)
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
                value = kept_key(condition.predicate.node_class(node), condition.failed_comparison)
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
        check: Any = None if sole is None else sole.search_check
        before, settled = len(reasons), 0
        found: Node | None = None
        for node in nodes:
            if lasting:
                try:
                    reason = verdicts[node.classes]
                except KeyError:
                    reason = self._verdict(ask, node)
                    verdicts = ask.ask_class.verdicts
                if reason is not None:
                    reasons.append(reason)
                    settled += 1
                    continue
            if sole is None:
                if (reason := self._passing_refusal(ask, node)) is None:
                    found = node
                    break
            else:
                try:
                    reason = check(ask, node)
                except contained() as error:
                    sole.searches.failed_instead()
                    reason = self._failed(sole, ask, node, error)
                if reason is None:
                    sole.searches.accepted += 1
                    found = node
                    break
                if type(reason) is not str or len(reason) > LONGEST_TEXT:
                    reason = self._useless(sole, ask, node, reason)
            reasons.append(reason)
        if unsettled := len(reasons) - before - settled:
            self.unsettled += unsettled
            if sole is not None:
                self.personal = True
                sole.searches.refused += unsettled
        return found

    def accepts(self, ask: Ask, node: Node) -> bool:
        """Return True if `ask` may be placed on `node`, whose domains are not known to refuse it."""
        reason = self._lasting_refusal(ask, node)
        if reason is None:
            for number, condition in enumerate(self._domains.conditions):
                reason = self._answer(condition, ask, node)
                if reason is not None:
                    closing, domains = self._domains.close(number, ask, node, reason)
                    closing.marked.append(node)
                    node.unfit |= ask.ask_class.bit
                    self.exhausted = domains.is_closed(ask.ask_class)
                    return False
            if not self._passing:
                return True
            reason = self._passing_refusal(ask, node)
            if reason is None:
                return True
            self.unsettled += 1
        self._reasons.append(reason)
        return False

    def _domain_refusal(self, ask: Ask, node: Node) -> str | None:
        """Return the refusal of a predicate with domains; remembered except in a what-if."""
        for number, condition in enumerate(self._domains.conditions):
            if self.is_hypothetical:
                reason = self._answer(condition, ask, node)
            else:
                reason = self._domains.refusal(number, ask, node)
            if reason is not None:
                return reason
        return None

    def refusal(self, ask: Ask, node: Node) -> str | None:
        """Return None if `ask` may be placed on `node`, else the reason, which is also recorded."""
        reason = self._lasting_refusal(ask, node)
        if reason is None and self._domains:
            found = self._domain_refusal(ask, node)
            if found is not None:
                return found  # counted by `refusals_of`
        if reason is None:
            reason = self._passing_refusal(ask, node)
            self.unsettled += reason is not None
        if reason is not None:
            self._reasons.append(reason)
        return reason

    def judge(self, ask: Ask, node: Node, *, reserve: bool = False) -> str | None:
        """Return None if `ask` may be placed on `node`, else the reason.

        With `reserve`, `check_reservation` is called: tasks that are about to end still use the node.
        """
        if self.prepared and not self.expects:
            self.prepare_again()
        reason = self._lasting_refusal(ask, node)
        if reason is None and self._domains:
            reason = self._domain_refusal(ask, node)
        if reason is not None:
            return reason
        found = self._who_refuses(ask, node, reserve=reserve)
        return None if found is None else found[1]

    def judge_reservation(self, ask: Ask, node: Node) -> str | None:
        """Return None if `node` may be reserved for `ask`, else the reason."""
        if self._all_on_reservation:
            return self.judge(ask, node, reserve=True)
        if self.prepared and not self.expects:
            self.prepare_again()
        # Verdicts are those of all predicates, and so are refusals remembered for the ask class. See
        # docs/decisions/archive/0118.
        verdicts, key = ask.ask_class.verdicts, (_RESERVING, node.classes)
        if key not in verdicts:
            verdicts[key] = self._first_refusal(self._lasting, ask, node)
        reason = verdicts[key]
        if reason is not None:
            return reason
        for number, condition in enumerate(self._domains.conditions):
            if condition.on_reservation:
                reason = self._domains.refusal(number, ask, node)
                if reason is not None:
                    return reason
        return self._first_refusal(self._passing, ask, node, reserve=True)

    def _first_refusal(
        self, conditions: Sequence[Condition], ask: Ask, node: Node, *, reserve: bool = False
    ) -> str | None:
        """Return the first refusal of the predicates that are asked about reservations."""
        asked = (one for one in conditions if one.on_reservation)
        answers = (self._answer(one, ask, node, reserve=reserve) for one in asked)
        return next((reason for reason in answers if reason is not None), None)

    @property
    def counts_room(self) -> bool:
        """True if a predicate knows how many requests a node has room for."""
        return bool(self._counting)

    def room(self, ask: Ask, node: Node, most: int) -> int:
        """Return how many requests like `ask` fit on `node`, at most `most`; 0 for a predicate that fails."""
        for condition in self._counting:
            try:
                found = condition.predicate.room(ask, node)
                if found is not None and (type(found) is not int or found < 0):
                    raise TypeError(f"room returned {safe_repr(found)} instead of a number or None")
            except contained() as error:
                where = f"{ask.label} on {node.label}"
                self._failures.report(condition.origin, "counting the room for", error, where)
                found = 0
            if found is not None and found < most:
                most = found
        return most

    def excludes(self, ask: Ask, node: Node) -> bool:
        """Return True if a predicate refuses `ask` on `node` regardless of other allocations there."""
        return self._lasting_refusal(ask, node) is not None

    def is_usable(self, ask: Any, node: Any) -> bool:
        """Return False if a node is drained or excluded; `ask` is None for requests of any kind."""
        return bool(node.schedulable) and (ask is None or not self.excludes(ask, node))

    def evaluate(self, ask: Ask, node: Node) -> tuple[Predicate, str] | None:
        """Return the refusing predicate and its reason, or None; nothing is cached or reported."""
        if self.prepared and not self.expects:
            self.prepare_again()
        for condition in self._all():
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
        return all(condition.by_ask for condition in self._all())

    def _all(self) -> tuple[Condition, ...]:
        return (*self._lasting, *self._domains.conditions, *self._passing)

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

    def _who_refuses(self, ask: Ask, node: Node, *, reserve: bool = False) -> tuple[Condition, str] | None:
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
        verdicts = self._verdicts.of(ask.ask_class)
        if node.classes in verdicts:
            return verdicts[node.classes]
        reason = None
        for condition in self._lasting:
            reason = self._answer(condition, ask, node)
            if reason is not None:
                break
        verdicts[node.classes] = reason
        return reason

    def _remembered(self, condition: Condition, ask: Ask, node: Node) -> str | None:
        """Return a predicate's answer for the ask class; a refusal is cached until the node changes."""
        if condition.keeps_books:
            return self._answer(condition, ask, node)
        known = ask.ask_class.refused.get(node.id)
        if known is not None and known[0] == node.version:
            return known[1]
        reason = self._answer(condition, ask, node)
        if reason is not None:
            ask.ask_class.refused[node.id] = (node.version, reason)
        return reason

    def _answer(self, condition: Condition, ask: Ask, node: Node, *, reserve: bool = False) -> str | None:
        check = condition.check_reservation if reserve else condition.check
        try:
            reason = check(ask, node)
        except contained() as error:
            return self._failed(condition, ask, node, error)
        if reason is None or (type(reason) is str and len(reason) <= LONGEST_TEXT):
            return reason
        return self._useless(condition, ask, node, reason)

    def _useless(self, condition: Condition, ask: Ask, node: Node, answer: object) -> str:
        text = text_or_none(answer)
        if text is not None:
            return text
        error = TypeError(f"check returned {safe_repr(answer)} instead of None or a text")
        return self._failed(condition, ask, node, error)

    def _failed(self, condition: Condition, ask: Ask, node: Node, error: BaseException) -> str:
        return str(self._failures.report(condition.origin, "checking", error, f"{ask.label} on {node.label}"))
