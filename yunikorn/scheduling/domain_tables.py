"""Domains of all predicates of a chain: one table per predicate, or per scope of a predicate that has scopes.

`Node.domains` has the domain of the node in each table, in order. A table of a new scope is made at the first
refusal of the scope. See `docs/decisions/archive/0067` and `docs/decisions/archive/0123`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from yunikorn.containment import contained, kept_key, plain_key
from yunikorn.scheduling.domains import PredicateDomains

if TYPE_CHECKING:
    from yunikorn import api
    from yunikorn.accounting.books import Others
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.domain import Closing, Domain
    from yunikorn.model.node import Node
    from yunikorn.scheduling.predicate_calls import Condition

MOST_SCOPES = 32
"""Largest number of scopes of a predicate that have tables of their own. Refusals of further scopes share one
table, in which each node is a domain."""


REST = object()
"""Scope of the refusals without a table of their own."""


class DomainTables:
    """The tables of a chain."""

    def __init__(
        self,
        conditions: Sequence[Condition],
        answer: Callable[[Condition, Ask, Node], str | None],
        failures: PluginFailures,
    ) -> None:
        """Create for the predicates that declare domains; `answer` asks one and contains its exceptions."""
        self.conditions = tuple(conditions)
        self._answer = answer
        self._failures = failures
        self._tables: list[PredicateDomains] = []
        self._by_scope: list[dict[Hashable, int]] = [{} for _ in self.conditions]
        """Position of the table by scope, for each predicate."""
        self._nodes: dict[Node, None] = {}
        self._touched: Callable[[], None] = lambda: None
        for number, condition in enumerate(self.conditions):
            if not condition.by_scope:
                self._add(number, None)

    def __bool__(self) -> bool:
        return bool(self.conditions)

    def _add(self, number: int, scope: Hashable) -> int:
        """Add a table, in which all nodes join their domains; return its position."""
        condition, at = self.conditions[number], len(self._tables)
        table = PredicateDomains(
            condition.predicate,
            condition.origin,
            partial(self._answer, condition),
            self._failures,
            _key_of(condition, scope),
            scope=partial(self._scope, number) if condition.by_scope and scope is not REST else None,
            is_single=scope is REST,
        )
        table.own_scope = scope
        table.on_touched = self._touched
        self._tables.append(table)
        self._by_scope[number][scope] = at
        for node in self._nodes:
            node.domains = (*node.domains, table.join(node))
        return at

    def _scope(self, number: int, ask: Ask, node: Node) -> Hashable:
        """Return the scope of a refusal."""
        condition, known = self.conditions[number], self._by_scope[number]
        if not condition.by_scope:
            return None
        try:
            failed = partial(self._failed_comparison, condition)
            scope = kept_key(condition.predicate.scope(ask, node), failed)
        except contained() as error:
            self._failures.report(condition.origin, "computing the scope of", error, ask.label)
            return REST
        return scope if scope in known or len(known) < MOST_SCOPES else REST

    def _failed_comparison(self, condition: Condition, error: BaseException) -> None:
        self._failures.report(condition.origin, "comparing scopes", error)

    # -- nodes --------------------------------------------------------------------------------------

    def join(self, node: Node) -> None:
        """Add a node to its domain in each table."""
        self._nodes[node] = None
        node.domains = tuple(table.join(node) for table in self._tables)

    def leave(self, node: Node) -> None:
        """Remove a node from its domains."""
        self._nodes.pop(node, None)
        for table, domain in zip(self._tables, node.domains, strict=True):
            table.leave(domain, node)
        node.domains = ()

    # -- refusals -----------------------------------------------------------------------------------

    def close(self, number: int, ask: Ask, node: Node, reason: str) -> tuple[Closing, PredicateDomains]:
        """Remember that a predicate refuses the ask class of `ask` in the domain of a node."""
        scope = self._scope(number, ask, node)
        at = self._by_scope[number].get(scope)
        if at is None:
            at = self._add(number, scope)
        table = self._tables[at]
        return table.close(ask, node.domains[at], reason), table

    def refusal(self, number: int, ask: Ask, node: Node) -> str | None:
        """Return the answer of a predicate; a refusal is remembered."""
        domains, ask_class = node.domains, ask.ask_class
        for at in self._by_scope[number].values():
            closing = domains[at].closed.get(ask_class)
            if closing is not None:
                return closing.reason
        reason = self._answer(self.conditions[number], ask, node)
        if reason is not None:
            self.close(number, ask, node, reason)
        return reason

    def refuse_everywhere(self, ask_class: AskClass) -> bool:
        """Return True if a predicate refuses the ask class in all of its domains."""
        return any(table.is_closed(ask_class) for table in self._tables)

    def refusals(self, ask_class: AskClass) -> Iterator[tuple[str, int]]:
        """Yield the reasons why domains refuse an ask class, each with the number of nodes."""
        for table in self._tables:
            yield from table.refusals(ask_class)

    def forget(self, ask_class: AskClass) -> None:
        """Forget an ask class that no longer exists."""
        for table in self._tables:
            table.forget(ask_class)

    # -- changes ------------------------------------------------------------------------------------

    def watch(self, touched: Callable[[], None]) -> None:
        """Call `touched` before refusals are noted that may have ended."""
        self._touched = touched
        for table in self._tables:
            table.on_touched = touched

    def changed(self, number: int, task: api.Task | None, node: Node, others: Others, released: bool) -> None:
        """Note the refusals of one predicate that may have ended by a change at `node`."""
        domains = node.domains
        if domains:
            for at in self._by_scope[number].values():
                self._tables[at].changed(task, domains[at], others, released)

    def touch_all(self) -> None:
        """Note that every refusal may have ended."""
        for table in self._tables:
            table.touch_all(None)

    def review(self, opened: Callable[[AskClass, Domain, Closing], None]) -> None:
        """Ask again about refusals that may have ended; report those that have."""
        for table in self._tables:
            table.review(opened)


def _key_of(condition: Condition, scope: Hashable) -> Callable[[Node], Hashable]:
    """Return the function that computes the domain of a node."""
    predicate = condition.predicate
    if scope is REST:
        return lambda node: node
    if condition.by_scope:
        plain = plain_key(scope)
        return lambda node: predicate.domain_in(node, plain)
    return predicate.domain
