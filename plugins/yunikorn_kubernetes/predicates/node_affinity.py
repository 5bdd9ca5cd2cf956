"""Predicate `node-affinity`: the node selector and the required node affinity of a pod.

Rules: Kubernetes documentation, "Assigning Pods to Nodes". A node must have all labels of the node selector,
and meet at least one term of the affinity. A term without conditions matches no node, and neither does a term
that cannot be read: the other terms still count, as in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from yunikorn.api import Ask, Node, Predicate, Task, hookimpl
from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence
from yunikorn_kubernetes.predicates.selectors import (
    IN,
    NOT_IN,
    OF_NODES,
    LabelRequirement,
    equalities,
    parse_requirement,
)
from yunikorn_kubernetes.predicates.tag_reading import (
    TEXTS,
    UnreadableText,
    invalid_constraints,
    load,
    section,
    table_of,
    tables_of,
    text_of,
    texts_of,
)

NODE_NAME = "metadata.name"
"""The only field of a node that exists in `matchFields`."""
NOT_LABELS = frozenset(
    {
        names.NODE_HOSTNAME,
        names.NODE_RACK,
        names.NODE_INSTANCE_TYPE,
        names.NODE_ZONE,
        names.NODE_REGION,
        names.NODE_TAINTS,
        names.NODE_SOFT_TAINTS,
        names.NODE_IMAGES,
        names.NODE_UNSCHEDULABLE,
        names.NODE_VOLUME_LIMITS,
    }
)
"""Attributes of nodes that are no labels; a requirement on one of them finds no label."""
_NO_LABEL = " (not a label)"
"""End of a key that no label has."""


class NodeTerm(NamedTuple):
    """Conditions on a node that must all be met."""

    labels: tuple[LabelRequirement, ...]
    fields: tuple[LabelRequirement, ...]
    fault: str = ""
    """Error text of a term that cannot be read; such a term matches no node."""

    def matches(self, name: str, attributes: Mapping[str, str]) -> bool:
        """Return True if the node with this name and these attributes meets all conditions."""
        if self.fault:
            return False
        for requirement in self.labels:
            if not requirement.is_met(attributes):
                return False
        for requirement in self.fields:
            found = name if requirement.key == NODE_NAME else ""
            if (found in requirement.values) is (requirement.operator == NOT_IN):
                return False
        return True

    def __str__(self) -> str:
        return ", ".join(map(str, (*self.labels, *self.fields)))


class NodeRequirements(NamedTuple):
    """Node selector and node affinity of a pod."""

    selector: tuple[LabelRequirement, ...]
    terms: tuple[NodeTerm, ...] | None
    """Terms of the affinity, of which one must match; None without affinity."""

    def match(self, node: Node) -> bool:
        """Return True if the node is admitted by both."""
        attributes = node.attributes
        for requirement in self.selector:
            if not requirement.is_met(attributes):
                return False
        terms = self.terms
        return terms is None or any(term.matches(node.id, attributes) for term in terms)


@lru_cache(maxsize=TEXTS)
def read_requirements(selector: str, affinity: str) -> NodeRequirements | str:
    """Return node selector and affinity, from two JSON texts that may be empty, or an error text."""
    try:
        wanted = equalities(load(selector), names.NODE_SELECTOR) if selector else ()
        terms = None
        if affinity:
            entries = [table_of(entry, "a term") for entry in tables_of(load(affinity), names.NODE_AFFINITY)]
            terms = tuple(
                parse_node_term(entry)
                for entry in entries
                if entry.get("matchExpressions") or entry.get("matchFields")
            )
    except UnreadableText as error:
        return invalid_constraints("node selector or node affinity", str(error))
    return NodeRequirements(tuple(map(_of_label, wanted)), terms)


def parse_node_term(entry: Mapping[str, Any]) -> NodeTerm:
    """Return a term of a node selector; one that cannot be read has a fault."""
    try:
        labels = [
            _of_label(parse_requirement(one, OF_NODES))
            for one in tables_of(entry.get("matchExpressions"), "matchExpressions")
        ]
        fields = [_of_field(one) for one in tables_of(entry.get("matchFields"), "matchFields")]
    except UnreadableText as error:
        return NodeTerm((), (), str(error))
    return NodeTerm(tuple(labels), tuple(fields))


def label_key(key: str) -> str:
    """Return the attribute that has a label of nodes: one that no node has if the attribute is no label."""
    return key + _NO_LABEL if key in NOT_LABELS else key


def _of_label(requirement: LabelRequirement) -> LabelRequirement:
    return requirement._replace(key=label_key(requirement.key))


def _of_field(entry: Mapping[str, Any]) -> LabelRequirement:
    operator, values = text_of(entry, "operator"), texts_of(entry.get("values"), "values")
    if operator not in (IN, NOT_IN) or len(values) != 1:
        raise UnreadableText(f"a field needs the operator {IN} or {NOT_IN}, and one value")
    return LabelRequirement(text_of(entry, "key"), operator, frozenset(values))


def requirements_of(task: Task) -> NodeRequirements | str | None:
    """Return what a pod requires of its node; an error text if unreadable, or None."""
    selector, affinity = section(task, names.NODE_SELECTOR), section(task, names.NODE_AFFINITY)
    return read_requirements(selector, affinity) if selector or affinity else None


class NodeAffinity(Predicate):
    """Only nodes that the node selector and the required node affinity of the pod admit."""

    name = "node-affinity"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return the first requirement that the node does not meet, or None."""
        required = requirements_of(ask)
        if required is None or isinstance(required, str):
            return required
        if required.match(node):
            return None
        for requirement in required.selector:
            if not requirement.is_met(node.attributes):
                detail = f"the pod's node selector requires {requirement}"
                return RefusalSentence.NODE_AFFINITY.because(detail)
        faults = "; ".join(term.fault for term in required.terms or () if term.fault)
        return RefusalSentence.NODE_AFFINITY.because(
            "the node matches no term of the pod's node affinity"
            + (f", of which some cannot be read: {faults}" if faults else "")
        )

    def ask_class(self, ask: Ask) -> Hashable:
        """Return selector and affinity as text; None without them."""
        selector, affinity = section(ask, names.NODE_SELECTOR), section(ask, names.NODE_AFFINITY)
        return (selector, affinity) if selector or affinity else None

    def node_class(self, node: Node) -> Hashable:
        """Return the name and all labels of the node."""
        return node.id, frozenset(node.attributes.items())

    def wanted(self, ask: Ask) -> str | None:
        """Return the required labels; None if they are invalid."""
        required = requirements_of(ask)
        if required is None or isinstance(required, str):
            return None
        texts = [str(requirement) for requirement in required.selector]
        if required.terms is not None:
            terms = [str(term) for term in required.terms if not term.fault]
            texts.append(" or ".join(terms) if len(terms) < 2 else f"({' or '.join(terms)})")
        return f"labels {', '.join(filter(None, texts))}" if any(texts) else None


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [NodeAffinity]
