"""Settings of a namespace that its annotations carry, as tags of the applications in it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import attrs

from yunikorn.errors import QuantityError
from yunikorn.resources import Tally
from yunikorn_kubernetes import names
from yunikorn_kubernetes.objects import Namespace
from yunikorn_kubernetes.translation.compact_json import compact_json
from yunikorn_kubernetes.translation.kubernetes_quantities import CPU, amounts_of

MEMORY = "memory"
LONGEST_COUNT = 10
"""Number of digits of the largest number of applications."""
QUOTAS = (
    (names.NAMESPACE_QUOTA, names.APP_TAG_QUOTA),
    (names.NAMESPACE_GUARANTEED, names.APP_TAG_GUARANTEED),
)
_EXPECTED = 'expected a JSON object of quantities in quotes, such as {"cpu": "10", "memory": "64Gi"}'


@attrs.frozen
class NamespaceTags:
    """Tags that a namespace gives its applications, and the annotations that are ignored."""

    tags: Mapping[str, str]
    problems: tuple[str, ...] = ()
    """One text for each annotation that cannot be used, and for each that another one replaces."""


def namespace_tags(namespace: Namespace) -> NamespaceTags:
    """Return the tags of the applications of a namespace.

    An annotation that cannot be read is left out as a whole, with a problem.
    """
    annotations = namespace.metadata.annotations
    tags: dict[str, str] = {}
    problems: list[str] = []
    for annotation, tag in QUOTAS:
        text = annotations.get(annotation, "")
        if text:
            _set_quota(tags, tag, annotation, text, problems)
    old = {
        CPU: annotations.get(names.NAMESPACE_MAX_CPU_OLD, ""),
        MEMORY: annotations.get(names.NAMESPACE_MAX_MEMORY_OLD, ""),
    }
    old_quota = {name: text for name, text in old.items() if text}
    shown = f"{names.NAMESPACE_MAX_CPU_OLD} and {names.NAMESPACE_MAX_MEMORY_OLD}"
    if old_quota and annotations.get(names.NAMESPACE_QUOTA):
        problems.append(f"{shown} are ignored, because {names.NAMESPACE_QUOTA} is set")
    elif old_quota:
        problems.append(f"{shown} are deprecated: use {names.NAMESPACE_QUOTA}")
        _set_amounts(tags, names.APP_TAG_QUOTA, old_quota, shown, problems)
    text = annotations.get(names.NAMESPACE_MAX_APPS, "")
    if text:
        if text.isascii() and text.isdecimal() and len(text) <= LONGEST_COUNT:
            tags[names.APP_TAG_MAX_APPS] = str(int(text))
        else:
            problems.append(
                f"{names.NAMESPACE_MAX_APPS} is ignored: expected a whole number, got {text[:40]!r}"
            )
    if annotations.get(names.NAMESPACE_PARENT_QUEUE):
        tags[names.APP_TAG_PARENT_QUEUE] = annotations[names.NAMESPACE_PARENT_QUEUE]
    return NamespaceTags(tags, tuple(problems))


def namespace_labels(namespace: Namespace | None) -> str:
    """Return the labels of a namespace as compact JSON, for the predicates; an empty text without labels."""
    return compact_json(namespace.metadata.labels) if namespace is not None else ""


def resource_tag(amounts: Mapping[str, int]) -> str:
    """Return an amount in the JSON form of the scheduler interface, which the core reads from tags."""
    return compact_json({"resources": {name: {"value": value} for name, value in amounts.items()}})


def _set_quota(tags: dict[str, str], tag: str, annotation: str, text: str, problems: list[str]) -> None:
    try:
        quantities = json.loads(text)
    except (ValueError, RecursionError) as error:
        problems.append(f"{annotation} is ignored: {error}: {_EXPECTED}")
        return
    if not isinstance(quantities, dict):
        problems.append(f"{annotation} is ignored: {_EXPECTED}")
        return
    plain = [name for name, value in quantities.items() if not isinstance(value, str)]
    if plain:
        problems.append(f"{annotation} is ignored: {', '.join(plain)}: {_EXPECTED}")
        return
    _set_amounts(tags, tag, quantities, annotation, problems)


def _set_amounts(
    tags: dict[str, str], tag: str, quantities: Mapping[str, str], what: str, problems: list[str]
) -> None:
    try:
        amounts: Tally = amounts_of(quantities, what)
    except QuantityError as error:
        problems.append(f"{what}: ignored, because of a quantity: {error}")
        return
    if amounts and (min(amounts.values()) < 0 or not max(amounts.values())):
        problems.append(f"{what}: ignored: no amount may be below 0, and one has to be above")
    elif amounts:
        tags[tag] = resource_tag(amounts)
