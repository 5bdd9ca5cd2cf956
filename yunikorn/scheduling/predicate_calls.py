"""Calls of predicates: one by one, for many nodes at once, or with a state prepared for a search.

`AskedAhead` asks a remote predicate about many nodes at once. A search visits nodes in order and stops at the
first that accepts the request. With one question per node, each node would cost a round trip. The first
unanswered node is therefore sent together with the nodes that follow; the batch size doubles with every
question. Answers are valid for one search only, because anything may change between two searches. Decisions
are the same as with one question at a time. See `docs/decisions/archive/0032`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Protocol

import attrs

from yunikorn import api
from yunikorn.accounting.books import Keeper
from yunikorn.api import AppSortPolicy, NodeSortPolicy, PermitPolicy, Predicate
from yunikorn.containment import contained, entries_of, is_plugin_of, read_attribute, safe_repr
from yunikorn.framework.plugin_failures import PluginFailures, read_flag, read_version

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


Check = Callable[[api.Ask, api.Node], str | None]


class SearchState(Protocol):
    """State of one search."""

    def forget(self) -> None:
        """End the search."""
        ...


class Prepared:
    """Adapter that passes the result of `prepare` to the checks of one search."""

    def __init__(self, predicate: Predicate) -> None:
        self._predicate = predicate
        self._ask: api.Ask | None = None
        self._state: Any = None
        self._error: BaseException | None = None
        """Error of `prepare`, which is not called again during this search."""

    def forget(self) -> None:
        """End the search: the next check prepares again."""
        self._ask = self._state = self._error = None

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        """Answer as `Predicate.check`; raises what the predicate raises."""
        if ask is not self._ask:
            self._ask, self._error = ask, None
            try:
                self._state = self._predicate.prepare(ask)
            except contained() as error:
                self._error = error
        if self._error is not None:
            raise self._error.with_traceback(None)
        return self._predicate.check(ask, node, self._state)


@attrs.define
class SearchCount:
    """Numbers of answers of a predicate in searches, for statistics."""

    accepted: int = 0
    refused: int = 0
    failed: int = 0

    def failed_instead(self) -> None:
        """Count a call that failed, and that the caller counts as a refusal later."""
        self.failed += 1
        self.refused -= 1


@attrs.define
class Condition:
    """A predicate with its methods, and what its class declares."""

    predicate: Predicate
    origin: str
    check: Check
    check_reservation: Check
    by_ask: bool
    """True if the predicate declares by `ask_class` on which properties of an ask its answer depends."""
    by_node: bool
    """True if the predicate declares by `node_class` on which properties of a node its answer depends."""
    by_domain: bool
    """True if the predicate keeps books and declares by `domain` which nodes get the same answer."""
    by_scope: bool
    """True if these domains depend on the refusal."""
    keeps_books: bool
    """True if the answer also depends on the tasks that run."""
    on_reservation: bool
    """True if the predicate is asked before a node is reserved, too."""
    failed_comparison: Callable[[BaseException], object]
    """Report of an exception from a comparison of the predicate's classes."""
    search_check: Check = attrs.field(init=False)
    """Check in searches whose nodes are counted in `searches`."""
    searches: SearchCount = attrs.field(init=False, factory=SearchCount)

    def __attrs_post_init__(self) -> None:
        """Use the same check in searches."""
        self.search_check = self.check

    def refuse_all(self, reason: str) -> None:
        """Refuse everything for this reason from now on."""
        self.check = self.check_reservation = self.search_check = lambda ask, node: reason

    @classmethod
    def of(
        cls,
        predicate: Predicate,
        origin: str,
        failures: PluginFailures,
        ahead: Callable[[], AskedAhead],
        prepared: Callable[[], Prepared],
    ) -> Condition:
        """Return the condition of a predicate; its adapters are made by `ahead` and `prepared`.

        What cannot be read is reported to `failures`.
        """
        kind = type(predicate)
        asks_ahead = read_flag(predicate, "asks_ahead", origin, failures)
        check: Check = read_attribute(predicate, "check")
        check_reservation: Check = read_attribute(predicate, "check_reservation")
        if asks_ahead:
            asked = ahead()
            check, check_reservation = asked.check, asked.check_reservation
        elif kind.prepare is not Predicate.prepare:
            check = prepared().check
            if kind.check_reservation is Predicate.check_reservation:
                check_reservation = check
        # Answers that differ between allocation and reservation cannot be cached for both.
        alike = kind.check_reservation is Predicate.check_reservation
        by_ask = alike and kind.ask_class is not Predicate.ask_class
        books = keeps_books(predicate)
        by_scope = kind.domain_in is not Predicate.domain_in
        return cls(
            predicate,
            origin,
            check,
            check_reservation,
            by_ask,
            kind.node_class is not Predicate.node_class and not books,
            by_ask and books and (by_scope or kind.domain is not Predicate.domain),
            by_scope,
            books,
            kind.on_reservation,
            partial(failures.report, origin, "comparing classes"),
        )


class ClassVersions:
    """Versions of the classes of requests, of the plugins that may change theirs."""

    def __init__(self, plugins: Iterable[tuple[Any, str]], failures: PluginFailures) -> None:
        """Read the present versions; each plugin comes with its origin."""
        self._failures = failures
        fixed = Predicate.classes_version, NodeSortPolicy.classes_version
        self._plugins = [one for one in plugins if type(one[0]).classes_version not in fixed]
        self._known = self._read()

    def __bool__(self) -> bool:
        return bool(self._plugins)

    def changed(self) -> bool:
        """Return True if a version has changed since the previous call."""
        known, self._known = self._known, self._read()
        return self._known != known

    def _read(self) -> list[int]:
        return [read_version(*one, self._failures) for one in self._plugins]


def keeps_books(plugin: object) -> bool:
    """Return True if the class of a plugin has a `placed` of its own."""
    bases: tuple[type[Any], ...] = (Predicate, PermitPolicy, AppSortPolicy, NodeSortPolicy)
    base = next((one for one in bases if is_plugin_of(plugin, one)), NodeSortPolicy)
    return getattr(type(plugin), "placed", base.placed) is not base.placed


def keeper_of(plugin: Predicate | PermitPolicy | NodeSortPolicy, origin: str) -> Keeper | None:
    """Return the keeper of a plugin's books; None if the plugin keeps none."""
    if not keeps_books(plugin):
        return None
    kind = type(plugin)
    return Keeper(
        plugin,
        origin,
        counts_foreign=getattr(kind, "counts_foreign", False) is True,
        commits=getattr(kind, "commit", Predicate.commit) is not Predicate.commit,
    )
