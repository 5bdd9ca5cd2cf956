"""Label requirements of volumes: node affinity of a volume, topologies of a class, selector of a claim.

The rules are those of the Kubernetes API: `PersistentVolumeSpec.nodeAffinity`,
`StorageClass.allowedTopologies` and `LabelSelector`. A term that cannot be read matches nothing, so that a
volume is then refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from yunikorn_kubernetes.names import LABEL_HOSTNAME
from yunikorn_kubernetes.predicates.selectors import (
    IN,
    OF_NODES,
    LabelRequirement,
    Selector,
    parse_label_selector,
    parse_requirement,
)
from yunikorn_kubernetes.predicates.tag_reading import UnreadableText, tables_of

Labels = Mapping[str, str]
Term = tuple[LabelRequirement, ...]
"""Requirements that must all be met."""
Terms = tuple[Term, ...]
"""Terms of which one must be met."""


def read_requirements(given: Iterable[Mapping[str, Any]]) -> Term:
    """Return requirements on the labels of a node; one without operator is `In`. Raises `UnreadableText`."""
    return tuple(parse_requirement({"operator": IN, **one}, OF_NODES) for one in given)


def read_terms(given: Sequence[Any] | None, expressions: str = "matchExpressions") -> Terms | None:
    """Return terms from the API's JSON; None for no restriction.

    Terms without requirements match nothing and are left out, hence an empty result matches no node. Fields
    (`matchFields`) do not restrict volumes: Kubernetes compares the volume with the labels of the node only.
    """
    if given is None:
        return None
    found = []
    for term in given:
        wanted = term.get(expressions) or ()
        if wanted or term.get("matchFields"):
            try:
                found.append(read_requirements(tables_of(wanted, expressions)))
            except UnreadableText:
                continue
    return tuple(found)


def matches(terms: Terms | None, labels: Labels) -> bool:
    """Return True if labels meet one of the terms, or if there is no restriction."""
    if terms is None:
        return True
    return any(all(requirement.is_met(labels) for requirement in term) for term in terms)


def read_selector(given: Mapping[str, Any] | None) -> Selector | None:
    """Return the label selector of a claim; None for no selector. Raises `UnreadableText`."""
    return None if given is None else parse_label_selector(given, "the selector of a claim")


def only_host(terms: Terms | None) -> str | None:
    """Return the host name that all terms require, for a volume of one host; None for any other volume."""
    hosts = {
        next((one.values for one in term if one.key == LABEL_HOSTNAME and one.operator == IN), None)
        for term in terms or ()
    }
    if len(hosts) == 1:
        values = hosts.pop()
        if values is not None and len(values) == 1:
            return next(iter(values))
    return None
