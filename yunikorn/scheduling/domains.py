"""Answers per domain of a predicate that keeps books, and the wake-up when a domain opens.

A refusal of an ask class in a domain is remembered (`Domain.closed`), and the nodes of the domain get the bit
of the ask class in `Node.unfit` when a search meets them, so that later searches skip them like nodes without
room. When a task is released, the refusals that have a subject in common with it are checked again before the
next decision: only where the predicate now accepts, the bits are cleared and the ask class becomes
schedulable. See `docs/decisions/archive/0067`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TYPE_CHECKING

from yunikorn.api import Where
from yunikorn.containment import contained, entries_of, kept_key
from yunikorn.model.domain import Closing, Domain

if TYPE_CHECKING:
    from yunikorn.accounting.books import Others
    from yunikorn.api import Predicate, Task
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.node import Node


_ANY = object()
"""Subject in common with all others, for requests whose subjects are unknown."""


class PredicateDomains:
    """The domains of one predicate."""

    def __init__(
        self,
        predicate: Predicate,
        origin: str,
        answer: Callable[[Ask, Node], str | None],
        failures: PluginFailures,
        key: Callable[[Node], Hashable],
        *,
        scope: Callable[[Ask, Node], Hashable] | None = None,
        is_single: bool = False,
    ) -> None:
        self._predicate = predicate
        self._origin = origin
        self._answer = answer
        """Asks the predicate; contains its exceptions."""
        self._failures = failures
        self._key = key
        """Returns the domain of a node; may raise."""
        self._scope = scope
        """Returns the scope of a refusal; None if the predicate has no scopes."""
        self.own_scope: Hashable = None
        """Scope of the refusals in this table."""
        self._is_single = is_single
        """True if each node is a domain, although a refusal may end by changes elsewhere."""
        self._by_key: dict[Hashable, Domain] = {}
        self._closed: dict[AskClass, dict[Domain, None]] = {}
        """Domains in which an ask class is refused."""
        self._by_subject: dict[Hashable, dict[AskClass, int]] = {}
        """Number of domains in which an ask class is refused, by subject of the refusal."""
        self.on_touched: Callable[[], None] = lambda: None
        """Called before refusals are noted that may have ended."""
        self._touched: dict[tuple[Domain, AskClass], None] = {}
        """Refusals that may have ended, in order."""

    # -- nodes --------------------------------------------------------------------------------------

    def join(self, node: Node) -> Domain:
        """Return the domain of a node, and add the node to it."""
        try:
            key = kept_key(self._key(node), self._failed_comparison)
        except contained() as error:
            self._failures.report(self._origin, "computing the domain of", error, node.label)
            # Without a domain the predicate is asked about this node alone.
            key = node
        domain = self._by_key.get(key)
        if domain is None:
            domain = self._by_key[key] = Domain(key)
        domain.nodes[node] = None
        return domain

    def leave(self, domain: Domain, node: Node) -> None:
        """Remove a node from its domain."""
        domain.nodes.pop(node, None)
        if not domain.nodes:
            self._by_key.pop(domain.key, None)
            for ask_class in list(domain.closed):
                self.open(ask_class, domain)

    # -- refusals -----------------------------------------------------------------------------------

    def close(self, ask: Ask, domain: Domain, reason: str) -> Closing:
        """Remember that a domain refuses the ask class of `ask`."""
        ask_class = ask.ask_class
        closing = Closing(ask, reason, self._subjects(ask) or (_ANY,))
        domain.close(ask_class, closing)
        self._closed.setdefault(ask_class, {})[domain] = None
        for subject in closing.subjects:
            counts = self._by_subject.setdefault(subject, {})
            counts[ask_class] = counts.get(ask_class, 0) + 1
        return closing

    def is_closed(self, ask_class: AskClass) -> bool:
        """Return True if all domains refuse an ask class."""
        closed = self._closed.get(ask_class)
        return closed is not None and len(closed) == len(self._by_key)

    def refusals(self, ask_class: AskClass) -> Sequence[tuple[str, int]]:
        """Return the reasons why domains refuse an ask class, each with the number of nodes."""
        closed = self._closed.get(ask_class)
        if closed is None:
            return ()
        return [(domain.closed[ask_class].reason, len(domain.nodes)) for domain in closed]

    def open(self, ask_class: AskClass, domain: Domain) -> None:
        """Forget a refusal."""
        self._count_off(ask_class, domain.open(ask_class))
        closed = self._closed.get(ask_class)
        if closed is not None:
            closed.pop(domain, None)
            if not closed:
                del self._closed[ask_class]

    def forget(self, ask_class: AskClass) -> None:
        """Forget an ask class that no longer exists."""
        for domain in self._closed.pop(ask_class, ()):
            self._count_off(ask_class, domain.open(ask_class))

    def _count_off(self, ask_class: AskClass, closing: Closing) -> None:
        for subject in closing.subjects:
            counts = self._by_subject[subject]
            counts[ask_class] -= 1
            if not counts[ask_class]:
                del counts[ask_class]
                if not counts:
                    del self._by_subject[subject]

    def _subjects(self, task: Task) -> tuple[Hashable, ...] | None:
        """Return the subjects of a task; None, which means any, if the predicate fails."""
        try:
            named = entries_of(self._predicate.subjects(task))
            return tuple(kept_key(subject, self._failed_comparison) for subject in named)
        except contained() as error:
            self._failures.report(self._origin, "naming the subjects of", error, f"task {task.key}")
        return None

    def _failed_comparison(self, error: BaseException) -> None:
        self._failures.report(self._origin, "comparing domains or subjects", error)

    # -- changes ------------------------------------------------------------------------------------

    def changed(self, task: Task | None, where: Domain, others: Others, released: bool) -> None:
        """Note the refusals that may have ended: in `others`, and after a release in `where` as well."""
        if not self._closed:
            return
        if others is Where.EVERYWHERE or (self._is_single and (others or released)):
            self.touch_all(task)
            return
        domains = (
            [self._by_key[key] for key in others if key in self._by_key] if type(others) is tuple else []
        )
        if released or others is Where.HERE:
            domains.append(where)
        if not any(domain.closed for domain in domains):
            return
        self.on_touched()
        subjects = None if task is None else self._subjects(task)
        for domain in domains:
            if subjects is None:
                for ask_class in domain.closed:
                    self._touched[domain, ask_class] = None
            else:
                for subject in (*subjects, _ANY):
                    for ask_class in domain.by_subject.get(subject, ()):
                        self._touched[domain, ask_class] = None

    def touch_all(self, task: Task | None) -> None:
        """Note all refusals that have a subject in common with a task; without a task all refusals."""
        subjects = None if task is None else self._subjects(task)
        classes: Collection[AskClass] = self._closed
        if subjects is not None:
            classes = dict.fromkeys(
                one for subject in (*subjects, _ANY) for one in self._by_subject.get(subject, ())
            )
        if classes:
            self.on_touched()
        for ask_class in classes:
            for domain in self._closed[ask_class]:
                self._touched[domain, ask_class] = None

    def review(self, opened: Callable[[AskClass, Domain, Closing], None]) -> None:
        """Ask the predicate again about refusals that may have ended; report those that have."""
        if not self._touched:
            return
        touched, self._touched = self._touched, {}
        for domain, ask_class in touched:
            closing = domain.closed.get(ask_class)
            if closing is None or not domain.nodes:
                continue
            node = next(iter(domain.nodes))
            reason = self._answer(closing.ask, node)
            # A refusal of another scope says nothing about the other nodes of the domain.
            if reason is None or (
                self._scope is not None and self._scope(closing.ask, node) != self.own_scope
            ):
                self.open(ask_class, domain)
                opened(ask_class, domain, closing)
            else:
                closing.reason = reason
