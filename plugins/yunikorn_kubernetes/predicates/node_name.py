"""Predicates `node-name` and `dynamic-resources`.

`node-name`: a pod that requires one node by name, such as that of a DaemonSet, runs on no other.

`dynamic-resources`: pods that use dynamic resource allocation (`spec.resourceClaims`) are refused with that
reason: this scheduler allocates no devices. The refusal also applies to reservations, because a node reserved
for such a pod would remain empty.
"""

from __future__ import annotations

from collections.abc import Hashable

from yunikorn.api import Ask, Node, Predicate, hookimpl
from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence
from yunikorn_kubernetes.predicates.tag_reading import section


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


class DynamicResources(Predicate):
    """No node for pods that use dynamic resource allocation."""

    name = "dynamic-resources"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None unless the pod has resource claims."""
        if not self.ask_class(ask):
            return None
        return "the pod uses dynamic resource allocation (spec.resourceClaims), which is not supported"

    def ask_class(self, ask: Ask) -> bool:
        """Return True if the pod has resource claims, or if its constraints cannot be read."""
        return section(ask, names.RESOURCE_CLAIMS) not in ("", "false", "null")

    def node_class(self, node: Node) -> Hashable:
        """Return the same for all nodes."""
        return None


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return both predicates."""
    return [NodeName, DynamicResources]
