"""Predicate `node-name`: pods that require a node by name, such as those of a DaemonSet, run there."""

from __future__ import annotations

from collections.abc import Hashable

from yunikorn.api import Ask, Node, Predicate, hookimpl
from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence


class NodeName(Predicate):
    """Only the node that the pod requires by name."""

    name = "node-name"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None on the required node, or if none is required."""
        required = ask.tags.get(names.TAG_REQUIRED_NODE)
        if not required or required == node.id:
            return None
        return RefusalSentence.NODE_NAME.because(f"the pod requires the node {required}")

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the required node."""
        return ask.tags.get(names.TAG_REQUIRED_NODE)

    def node_class(self, node: Node) -> Hashable:
        """Return the name of the node."""
        return node.id

    def wanted(self, ask: Ask) -> str | None:
        """Return the name of the required node."""
        required = ask.tags.get(names.TAG_REQUIRED_NODE)
        return f"the name {required}" if required else None


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [NodeName]
