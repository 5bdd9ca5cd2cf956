"""Requirements on labels: the operators of node affinity and of label selectors.

Rules: Kubernetes API reference, NodeSelectorRequirement and LabelSelector. A requirement that the API server
would not accept matches nothing, as in kube-scheduler; see `parse_requirement`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from yunikorn_kubernetes.predicates.tag_reading import (
    UnreadableText,
    pairs_of,
    table_of,
    tables_of,
    text_of,
    texts_of,
)

IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GREATER, LESS = "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"
OF_NODES = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GREATER, LESS)
OF_PODS = OF_NODES[:4]
NO_VALUES: frozenset[str] = frozenset()
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_WHOLE = re.compile(r"[-+]?[0-9]{1,30}")
_INT64 = 1 << 63


class LabelRequirement(NamedTuple):
    """Condition on one label."""

    key: str
    operator: str
    values: frozenset[str] = NO_VALUES
    bound: int = 0
    """Number that a label is compared with by `Gt` and `Lt`."""

    def is_met(self, labels: Mapping[str, str]) -> bool:
        """Return True if the labels meet the condition."""
        found, operator = labels.get(self.key), self.operator
        if operator == IN:
            return found in self.values
        if operator == NOT_IN:
            return found not in self.values
        if operator == EXISTS:
            return found is not None
        if operator == DOES_NOT_EXIST:
            return found is None
        number = None if found is None else whole(found)
        if number is None:
            return False
        return number > self.bound if operator == GREATER else number < self.bound

    def __str__(self) -> str:
        if self.operator in (EXISTS, DOES_NOT_EXIST):
            return f"{'!' if self.operator == DOES_NOT_EXIST else ''}{self.key}"
        if self.operator in (GREATER, LESS):
            return f"{self.key}{'>' if self.operator == GREATER else '<'}{self.bound}"
        values = sorted(self.values)
        if len(values) == 1:
            return f"{self.key}{'!=' if self.operator == NOT_IN else '='}{values[0]}"
        return f"{self.key} {'notin' if self.operator == NOT_IN else 'in'} ({', '.join(values)})"


class Selector(NamedTuple):
    """Conditions that must all be met."""

    requirements: tuple[LabelRequirement, ...]
    matches_nothing: bool = False

    @property
    def is_empty(self) -> bool:
        """True if the selector has no condition and matches everything."""
        return not self.requirements and not self.matches_nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return True if all conditions are met."""
        if self.matches_nothing:
            return False
        for requirement in self.requirements:
            if not requirement.is_met(labels):
                return False
        return True

    def __str__(self) -> str:
        return ", ".join(map(str, self.requirements)) if not self.matches_nothing else "none"


NOTHING = Selector((), matches_nothing=True)
EVERYTHING = Selector(())


def whole(text: str) -> int | None:
    """Return a decimal number of 64 bits; None for another text."""
    if not text.isascii() or not _WHOLE.fullmatch(text):
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


def is_label_key(key: str) -> bool:
    """Return True for a valid name of a label."""
    domain, slash, name = key.rpartition("/")
    if slash and (len(domain) > 253 or not _DOMAIN.fullmatch(domain)):
        return False
    return _NAME.fullmatch(name) is not None


def parse_requirement(entry: Mapping[str, Any], operators: Iterable[str]) -> LabelRequirement:
    """Return the requirement of a JSON object with `key`, `operator` and `values`.

    Raises `UnreadableText` for what the API server refuses: another operator, an invalid key or value, `In`
    and `NotIn` without values, `Exists` and `DoesNotExist` with values, `Gt` and `Lt` without one whole
    number.
    """
    key, operator = text_of(entry, "key"), text_of(entry, "operator")
    values = texts_of(entry.get("values"), "values")
    if operator not in operators:
        raise UnreadableText(f"'{operator}' is not an operator; known: {', '.join(operators)}")
    if not is_label_key(key):
        raise UnreadableText(f"'{key}' is not the name of a label")
    for value in values:
        if value and not _NAME.fullmatch(value):
            raise UnreadableText(f"'{value}' is not the value of a label")
    if operator in (IN, NOT_IN) and not values:
        raise UnreadableText(f"the operator {operator} needs values")
    if operator in (EXISTS, DOES_NOT_EXIST) and values:
        raise UnreadableText(f"the operator {operator} has no values")
    bound = 0
    if operator in (GREATER, LESS):
        number = whole(values[0]) if len(values) == 1 else None
        if number is None:
            raise UnreadableText(f"the operator {operator} needs one whole number")
        bound = number
    return LabelRequirement(key, operator, frozenset(values), bound)


def equalities(value: Any, what: str) -> list[LabelRequirement]:
    """Return a requirement for each entry of a JSON object. Raises `UnreadableText`."""
    return [LabelRequirement(key, IN, frozenset((wanted,))) for key, wanted in pairs_of(value, what)]


def parse_label_selector(value: Any, what: str) -> Selector:
    """Return a selector of pods or namespaces; null matches nothing, `{}` everything.

    Raises `UnreadableText`.
    """
    if value is None:
        return NOTHING
    table = table_of(value, what)
    found = [
        parse_requirement({"key": one.key, "operator": IN, "values": list(one.values)}, OF_PODS)
        for one in equalities(table.get("matchLabels"), "matchLabels")
    ]
    for entry in tables_of(table.get("matchExpressions"), "matchExpressions"):
        found.append(parse_requirement(entry, OF_PODS))
    return Selector(tuple(sorted(found, key=_order)))


def with_prefix(selector: Selector, prefix: str) -> Selector:
    """Return a selector of tags instead of labels: `prefix` is put before each key."""
    return selector._replace(
        requirements=tuple(one._replace(key=prefix + one.key) for one in selector.requirements)
    )


def _order(one: LabelRequirement) -> tuple[str, str, list[str]]:
    return one.key, one.operator, sorted(one.values)
