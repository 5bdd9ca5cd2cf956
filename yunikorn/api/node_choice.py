"""Base classes of plugins that decide whether a request may use a node."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from yunikorn.api.base import Plugin
from yunikorn.api.views import Ask, Node, Task


class Where(Enum):
    """Answer of `placed`, `released` and others: where refusals may have ended, without naming domains."""

    HERE = "here"
    """In the domain of the node; for `placed`, because a release has this effect in any case."""
    EVERYWHERE = "everywhere"
    """In all domains, for requests that have a subject in common with the task."""


Changed = Iterable[Hashable] | Where | None
"""Domains in which refusals may have ended, or a constant, or None for no others."""


class Predicate(Plugin):
    """Base class of conditions that a node must meet for a request, in addition to free resources.

    By default a predicate is called for every pair of request and node. A predicate that declares classes is
    called once per class: implement `ask_class` if the answer depends only on the class of the request and
    on this node, and also `node_class` if it depends on nothing else of the node. A predicate whose answer
    depends on anything else must implement neither, with one exception: a predicate that *keeps books* of
    running tasks (`placed` and `released`) declares what its answer depends on by `ask_class`, `domain` and
    `subjects`.
    """

    counts_foreign: ClassVar[bool] = False
    """True if `placed` and `released` are called for foreign tasks as well, which are not scheduled here."""

    on_reservation: ClassVar[bool] = True
    """False if the predicate is not asked before a node is reserved, only before a request is placed.

    For conditions that may change while the request waits for the room. Preemption and the replacement of a
    placeholder ask all predicates.
    """

    if TYPE_CHECKING:
        # A predicate with `prepare` has a third argument, so that no one signature suits all.
        check: ClassVar[Callable[..., str | None]]
    else:

        def check(self, ask: Ask, node: Node) -> str | None:
            """Return None if the request may be allocated on the node, else the reason why not.

            A predicate with `prepare` implements `check(ask, node, state)`.
            """
            raise TypeError(f"{type(self).__name__} has no check(ask, node)")

    def prepare(self, ask: Ask) -> Any:
        """Return a state for one search: the third argument of all its `check(ask, node, state)`.

        Called once per search for a node, before the first check, and only if the class overrides this
        method. `check_nodes` must not be overridden as well.
        """
        return None

    def check_reservation(self, ask: Ask, node: Node) -> str | None:
        """Return None if the node may be reserved for the request, else the reason why not.

        Calls `check` by default. A predicate that overrides this method is called for every pair of request
        and node; its class declarations are ignored.
        """
        return self.check(ask, node, *self._state(ask))

    def _state(self, ask: Ask) -> tuple[Any, ...]:
        """Return the arguments of `check` after request and node."""
        return () if type(self).prepare is Predicate.prepare else (self.prepare(ask),)

    def check_nodes(self, ask: Ask, nodes: Sequence[Node], *, allocate: bool) -> Sequence[str | None]:
        """Return the answers for several nodes, one per node, in order.

        Override for predicates that ask a remote service. The core then calls this method instead of `check`
        (`allocate` is True) and `check_reservation` (`allocate` is False), also for nodes whose answer may
        turn out not to be needed.
        """
        if not allocate:
            return [self.check_reservation(ask, node) for node in nodes]
        state = self._state(ask)
        return [self.check(ask, node, *state) for node in nodes]

    @property
    def asks_ahead(self) -> bool:
        """True if the core calls `check_nodes`; read after construction and after `opened`."""
        return type(self).check_nodes is not Predicate.check_nodes

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which a refusal is checked again although nothing has changed; None for never.

        For predicates that depend on external state and declare no classes. Read after construction and after
        `opened`.
        """
        return None

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the class of a request; requests of equal classes get equal answers."""
        return None

    @property
    def classes_version(self) -> int:
        """Number that changes whenever `ask_class` may return other values for known requests.

        The core then computes the classes of all pending requests again, before the next round of decisions.
        """
        return 0

    def node_class(self, node: Node) -> Hashable:
        """Return the class of a node, from its attributes only; nodes of equal classes get equal answers."""
        return None

    def wanted(self, ask: Ask) -> str | None:
        """Return the requirement as text, such as `attribute zone=b`, or None.

        The text only explains why a request is pending; no scheduling decision depends on it.
        """
        return None

    def room(self, ask: Ask, node: Node) -> int | None:
        """Return how many requests of the class of `ask` the node could take now; None if that is unknown.

        Only for the choice of a domain for a gang: a number that is too large costs time, and one that is
        too small hides room. May depend on the class of the request, the node and the tasks on the node, and
        on nothing else.
        """
        return None

    # -- books --------------------------------------------------------------------------------------

    def commit(self, ask: Ask, node: Node) -> Mapping[str, str] | None:
        """Return tags for the allocation of a request on a node that `check` has accepted, or None.

        Called once for each allocation that the core decides, before `placed`, for predicates that choose
        more than the node, such as its devices. The allocation has these tags in addition to those of the
        request, from `placed` on, and the resource manager gets them; after a restart it reports them again,
        so that `placed` reads them in both cases. Must not change the books. Members of a gang are committed
        in the order of their placement, each after `placed` with the request of the one before.
        """
        return None

    def placed(self, task: Task, node: Node) -> Changed:
        """Add a task to the books; implement together with `released`.

        Called inside the decision, so that the books are exact at every `check`: with an `Allocation` for a
        commitment, with an `Ask` for a placement that is only tried, such as that of a gang's member, and
        undone by `released`. Called as well for everything that runs already when the object comes into use.
        The views may or may not contain the task yet: count from the arguments only, regardless of order.

        Returns None, or the domains other than the node's own in which a refusal may have ended; or a
        constant of `Where`.
        """
        return None

    def released(self, task: Task, node: Node) -> Changed:
        """Remove a task from the books; undoes `placed` with the same task and node.

        Returns None, or the domains other than the node's own in which a refusal may have ended.
        """
        return None

    def node_added(self, node: Node) -> Changed:
        """Add a node, which runs no task yet; only called for classes that keep books.

        A node whose attributes change is removed with the tasks on it, and added again.
        Returns None, or the domains other than the node's own in which a refusal may have ended.
        """
        return None

    def node_removed(self, node: Node) -> Changed:
        """Remove a node, which runs no task any more; only called for classes that keep books.

        Returns None, or the domains other than the node's own in which a refusal may have ended.
        """
        return None

    def domain(self, node: Node) -> Hashable:
        """Return the part of the cluster that decides about the node, from its attributes only.

        For predicates that keep books and implement `ask_class`: all nodes of a domain then get the same
        answer. A refusal is remembered until a task with one of the request's `subjects` is released in the
        domain, or until `placed` or `released` returns the domain.
        """
        return None

    def scope(self, ask: Ask, node: Node) -> Hashable:
        """Return which attributes of the node the refusal of a request depends on, such as names of labels.

        For predicates whose domains depend on the request: implement `domain_in` instead of `domain`. Called
        after `check` has refused the request on the node. All nodes that are in one domain for the scope
        refuse the request for the same reason. There should be few scopes: each has a domain for every node.
        """
        return None

    def domain_in(self, node: Node, scope: Hashable) -> Hashable:
        """Return the part of the cluster that has one refusal of a scope, from the node's attributes only.

        Implemented together with `scope`. `placed` and others return constants of `Where`.
        """
        return None

    def subjects(self, task: Task) -> Iterable[Hashable]:
        """Return what the answer for a request depends on, and what a task changes, such as labels.

        The release of a task may only end refusals of requests that have a subject in common with it. By
        default all tasks and requests have one subject in common.
        """
        return (None,)
