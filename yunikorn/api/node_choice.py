"""Base classes of plugins that decide whether a request may use a node."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from yunikorn.api.base import Plugin
from yunikorn.api.views import Ask, Node


class Predicate(Plugin):
    """Base class of conditions that a node must meet for a request, in addition to free resources.

    By default a predicate is called for every pair of request and node. A predicate that declares classes is
    called once per class: implement `ask_class` if the answer depends only on the class of the request and
    on this node, and also `node_class` if it depends on nothing else of the node. A predicate whose answer
    depends on anything else, such as allocations on other nodes, must implement neither.
    """

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if the request may be allocated on the node, else the reason why not."""
        raise TypeError(f"{type(self).__name__} has no check(ask, node)")

    def check_reservation(self, ask: Ask, node: Node) -> str | None:
        """Return None if the node may be reserved for the request, else the reason why not.

        Calls `check` by default. A predicate that overrides this method is called for every pair of request
        and node; its class declarations are ignored.
        """
        return self.check(ask, node)

    def check_nodes(self, ask: Ask, nodes: Sequence[Node], *, allocate: bool) -> Sequence[str | None]:
        """Return the answers for several nodes, one per node, in order.

        Override for predicates that ask a remote service. The core then calls this method instead of `check`
        (`allocate` is True) and `check_reservation` (`allocate` is False), also for nodes whose answer may
        turn out not to be needed.
        """
        one = self.check if allocate else self.check_reservation
        return [one(ask, node) for node in nodes]

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

    def node_class(self, node: Node) -> Hashable:
        """Return the class of a node, from its attributes only; nodes of equal classes get equal answers."""
        return None

    def wanted(self, ask: Ask) -> str | None:
        """Return the requirement as text, such as `attribute zone=b`, or None.

        The text only explains why a request is pending; no scheduling decision depends on it.
        """
        return None
