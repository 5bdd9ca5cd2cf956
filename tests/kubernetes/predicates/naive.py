"""The rules of topology spread and inter-pod affinity, computed from scratch over all nodes and pods.

The functions follow the text of the rules, without books.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.node_affinity import NodeAffinity
from yunikorn_kubernetes.predicates.taints import TaintToleration
from yunikorn_testing import AskSample, NodeSample, ask

Pod = tuple[Mapping[str, str], NodeSample]
"""Tags of a running pod, and its node."""


def constraints(tags: Mapping[str, str]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(tags.get(names.TAG_CONSTRAINTS, "{}"))
    return found


def labels(tags: Mapping[str, str]) -> dict[str, str]:
    start = names.TAG_LABEL
    return {key[len(start) :]: value for key, value in tags.items() if key.startswith(start)}


def meets(found: Mapping[str, str], one: Mapping[str, Any]) -> bool:
    key, values = one["key"], one.get("values", [])
    match one["operator"]:
        case "In":
            return key in found and found[key] in values
        case "NotIn":
            return key not in found or found[key] not in values
        case "Exists":
            return key in found
        case "DoesNotExist":
            return key not in found
    raise AssertionError(one)


def selects(selector: Mapping[str, Any] | None, found: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    return all(found.get(key) == value for key, value in selector.get("matchLabels", {}).items()) and all(
        meets(found, one) for one in selector.get("matchExpressions", [])
    )


def admitted(tags: Mapping[str, str], node: NodeSample) -> bool:
    """Return True if node selector and node affinity admit the node."""
    return NodeAffinity().check(ask("pod", tags=tags), node) is None


def tolerated(tags: Mapping[str, str], node: NodeSample) -> bool:
    """Return True if all taints are tolerated."""
    return TaintToleration().check(ask("pod", tags=tags), node) is None


def spread_refuses(
    asked: Mapping[str, str], node: NodeSample, nodes: Sequence[NodeSample], pods: Iterable[Pod]
) -> bool:
    found = constraints(asked).get("topologySpread", [])
    keys = [one["topologyKey"] for one in found]
    running = [pod for pod in pods if names.TAG_TERMINATING not in pod[0]]
    for one in found:
        selector = dict(one["labelSelector"]) if one.get("labelSelector") is not None else None
        if selector is not None:
            own = labels(asked)
            same = {key: own[key] for key in one.get("matchLabelKeys", []) if key in own}
            expressions = [{"key": key, "operator": "In", "values": [same[key]]} for key in same]
            selector["matchExpressions"] = [*selector.get("matchExpressions", []), *expressions]
        counted = bool(selector and (selector.get("matchLabels") or selector.get("matchExpressions")))
        counts: dict[str, int] = {}
        for host in nodes:
            if any(key not in host.attributes for key in keys):
                continue
            if one.get("nodeAffinityPolicy", "Honor") == "Honor" and not admitted(asked, host):
                continue
            if one.get("nodeTaintsPolicy", "Ignore") == "Honor" and not tolerated(asked, host):
                continue
            here = sum(
                counted
                and at is host
                and tags[names.TAG_NAMESPACE] == asked[names.TAG_NAMESPACE]
                and selects(selector, labels(tags))
                for tags, at in running
            )
            value = host.attributes[one["topologyKey"]]
            counts[value] = counts.get(value, 0) + here
        value = node.attributes.get(one["topologyKey"], "")
        if one["topologyKey"] not in node.attributes:
            return True
        least = 0 if len(counts) < one.get("minDomains", 1) else min(counts.values(), default=0)
        if counts.get(value, 0) + selects(selector, labels(asked)) - least > one["maxSkew"]:
            return True
    return False


def about(term: Mapping[str, Any], owner: Mapping[str, str], pod: Mapping[str, str]) -> bool:
    """Return True if a term of `owner` is about a pod."""
    named, chosen = term.get("namespaces", []), term.get("namespaceSelector")
    if not named and chosen is None:
        named = [owner[names.TAG_NAMESPACE]]
    of_namespace = json.loads(pod.get(names.TAG_NAMESPACE_LABELS, "{}"))
    if pod[names.TAG_NAMESPACE] not in named and not selects(chosen, of_namespace):
        return False
    return selects(term.get("labelSelector"), labels(pod))


def affinity_refuses(
    asked: Mapping[str, str], node: NodeSample, nodes: Sequence[NodeSample], pods: Iterable[Pod]
) -> bool:
    running = list(pods)
    wanted = constraints(asked)

    def near(host: NodeSample, key: str) -> bool:
        return key in node.attributes and host.attributes.get(key) == node.attributes[key]

    needed = wanted.get("podAffinity", [])
    if any(term["topologyKey"] not in node.attributes for term in needed):
        return True
    alike = [(tags, at) for tags, at in running if all(about(term, asked, tags) for term in needed)]
    if not all(any(near(at, term["topologyKey"]) for _, at in alike) for term in needed):
        known = any(term["topologyKey"] in at.attributes for _, at in alike for term in needed)
        if known or not all(about(term, asked, asked) for term in needed):
            return True
    for term in wanted.get("podAntiAffinity", []):
        if any(about(term, asked, tags) and near(at, term["topologyKey"]) for tags, at in running):
            return True
    return any(
        about(term, tags, asked) and near(at, term["topologyKey"])
        for tags, at in running
        for term in constraints(tags).get("podAntiAffinity", [])
    )


Refuses = Callable[[Mapping[str, str], NodeSample, Sequence[NodeSample], Iterable[Pod]], bool]


def accepted(
    refuses: Refuses, asked: AskSample, nodes: Sequence[NodeSample], pods: Sequence[Pod]
) -> list[bool]:
    """Return for each node whether a pod may run there."""
    return [not refuses(asked.tags, node, nodes, pods) for node in nodes]
