"""Predicates `node-unschedulable` and `taint-toleration`.

Rules: Kubernetes documentation, "Taints and Tolerations". A toleration without key tolerates every key, and
one without effect every effect. The operators are Equal (the default), Exists, and Lt and Gt, which compare
whole numbers (feature gate TaintTolerationComparisonOperators). Taints with the effect PreferNoSchedule
refuse no pod.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache
from typing import Any, NamedTuple

from yunikorn.api import Ask, Node, Predicate, Task, hookimpl
from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence
from yunikorn_kubernetes.predicates.selectors import whole
from yunikorn_kubernetes.predicates.tag_reading import (
    TEXTS,
    UnreadableText,
    invalid_constraints,
    load,
    section,
    tables_of,
    text_of,
)

EQUAL, EXISTS, LESS, GREATER = "Equal", "Exists", "Lt", "Gt"
REFUSING = ("NoSchedule", "NoExecute")
"""Effects of taints that refuse pods."""
_DECIMAL = re.compile(r"0|-?[1-9][0-9]*")
"""Numbers that may be compared: without leading zeros and plus sign."""


class Taint(NamedTuple):
    """Mark of a node that repels pods."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}{'=' if self.value else ''}{self.value}:{self.effect}"


UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""Taint that stands for `spec.unschedulable` of a node."""


class Toleration(NamedTuple):
    """Permission to run on nodes with some taints."""

    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        """Return True if the toleration matches the taint."""
        if (self.effect and self.effect != taint.effect) or (self.key and self.key != taint.key):
            return False
        if self.operator in ("", EQUAL):
            return self.value == taint.value
        if self.operator == EXISTS:
            return True
        wanted, found = _decimal(self.value), _decimal(taint.value)
        if wanted is None or found is None:
            return False
        return found < wanted if self.operator == LESS else self.operator == GREATER and found > wanted

    def __str__(self) -> str:
        sign = {LESS: "<", GREATER: ">"}.get(self.operator, "=")
        text = self.key or "*"
        if self.operator != EXISTS and (self.value or sign != "="):
            text += f"{sign}{self.value}"
        return f"{text}:{self.effect}" if self.effect else text


def _decimal(text: str) -> int | None:
    return whole(text) if _DECIMAL.fullmatch(text) else None


def parse_taints(value: Any) -> tuple[Taint, ...]:
    """Return the taints of a JSON list. Raises `UnreadableText`."""
    return tuple(
        Taint(text_of(entry, "key"), text_of(entry, "value"), text_of(entry, "effect"))
        for entry in tables_of(value, "the taints")
    )


@lru_cache(maxsize=TEXTS)
def read_taints(text: str) -> tuple[Taint, ...] | str:
    """Return the taints of a node that refuse pods, from a JSON list, or an error text."""
    try:
        found = parse_taints(load(text)) if text else ()
    except UnreadableText as error:
        return f"the node's taints cannot be read: {error} (attribute {names.NODE_TAINTS})"
    return tuple(taint for taint in found if taint.effect in REFUSING)


@lru_cache(maxsize=TEXTS)
def read_tolerations(text: str) -> tuple[Toleration, ...] | str:
    """Return the tolerations of a pod, from a JSON list, or an error text."""
    try:
        return parse_tolerations(load(text)) if text else ()
    except UnreadableText as error:
        return invalid_constraints("tolerations", str(error))


def parse_tolerations(value: Any) -> tuple[Toleration, ...]:
    """Return the tolerations of a JSON list. Raises `UnreadableText`."""
    return tuple(
        Toleration(*(text_of(entry, key) for key in ("key", "operator", "value", "effect")))
        for entry in tables_of(value, "the tolerations")
    )


@lru_cache(maxsize=TEXTS)
def untolerated(taints: str, tolerations: str) -> Taint | str | None:
    """Return the first taint that is not tolerated, or an error text, or None."""
    found, known = read_taints(taints), read_tolerations(tolerations)
    if isinstance(found, str):
        return found
    if isinstance(known, str):
        return known
    for taint in found:
        if not any(toleration.tolerates(taint) for toleration in known):
            return taint
    return None


def tolerations_of(task: Task) -> str:
    """Return the tolerations of a pod as JSON; empty without any."""
    return section(task, names.TOLERATIONS)


class NodeUnschedulable(Predicate):
    """No node with `spec.unschedulable`, unless the pod tolerates that."""

    name = "node-unschedulable"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if the node is schedulable or the pod tolerates that it is not."""
        if node.attributes.get(names.NODE_UNSCHEDULABLE) != "true":
            return None
        tolerated = self.ask_class(ask)
        if isinstance(tolerated, str):
            return tolerated
        return None if tolerated else str(RefusalSentence.UNSCHEDULABLE)

    def ask_class(self, ask: Ask) -> bool | str:
        """Return True if the pod tolerates unschedulable nodes; or the error text of its tolerations."""
        known = read_tolerations(tolerations_of(ask))
        return known if isinstance(known, str) else any(one.tolerates(UNSCHEDULABLE) for one in known)

    def node_class(self, node: Node) -> bool:
        """Return True if the node is unschedulable."""
        return node.attributes.get(names.NODE_UNSCHEDULABLE) == "true"

    def wanted(self, ask: Ask) -> str | None:
        """Return None: nearly all nodes are schedulable."""
        return None


class TaintToleration(Predicate):
    """No node with a taint that the pod does not tolerate."""

    name = "taint-toleration"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return the first taint that is not tolerated, or None."""
        found = untolerated(node.attributes.get(names.NODE_TAINTS, ""), tolerations_of(ask))
        if isinstance(found, Taint):
            return RefusalSentence.TAINT.because(str(found))
        return found

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the tolerations as text."""
        return tolerations_of(ask)

    def node_class(self, node: Node) -> Hashable:
        """Return the taints as text."""
        return node.attributes.get(names.NODE_TAINTS, "")

    def wanted(self, ask: Ask) -> str | None:
        """Return the tolerated taints as the requirement; None if the tolerations are invalid."""
        known = read_tolerations(tolerations_of(ask))
        if isinstance(known, str):
            return None
        return f"no taints except {', '.join(map(str, known))}" if known else "no taints"


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicates for unschedulable nodes and for taints."""
    return [NodeUnschedulable, TaintToleration]
