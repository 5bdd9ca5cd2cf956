"""Pods and nodes for tests of predicates: short forms in, samples with the tags of the shim out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from yunikorn_kubernetes import names
from yunikorn_testing import AskSample, NodeSample, allocation, ask, node
from yunikorn_testing.samples import AllocationSample


def compact(value: Any) -> str:
    """Return a value as JSON as the shim writes it."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def pod_tags(
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    namespace_labels: Mapping[str, str] | None = None,
    terminating: bool = False,
    required_node: str = "",
    **constraints: Any,
) -> dict[str, str]:
    """Return the tags of a pod; `constraints` are the sections of its constraints."""
    tags = {names.TAG_NAMESPACE: namespace}
    tags |= {names.TAG_LABEL + key: value for key, value in (labels or {}).items()}
    if constraints:
        tags[names.TAG_CONSTRAINTS] = compact(constraints)
    if namespace_labels:
        tags[names.TAG_NAMESPACE_LABELS] = compact(namespace_labels)
    if terminating:
        tags[names.TAG_TERMINATING] = "true"
    if required_node:
        tags[names.TAG_REQUIRED_NODE] = required_node
    return tags


def pod(key: str = "pod", **of_pod: Any) -> AskSample:
    """Return a pending pod."""
    return ask(key, vcore=1, tags=pod_tags(**of_pod))


def host(
    name: str = "n1",
    labels: Mapping[str, str] | None = None,
    *,
    taints: Sequence[str] = (),
    unschedulable: bool = False,
) -> NodeSample:
    """Return a node; a taint is `key=value:Effect`."""
    attributes = {names.NODE_HOSTNAME: name, names.NODE_RACK: names.DEFAULT_RACK, **(labels or {})}
    if taints:
        attributes[names.NODE_TAINTS] = compact([taint_of(text) for text in taints])
    if unschedulable:
        attributes[names.NODE_UNSCHEDULABLE] = "true"
    return node(name, attributes, capacity={"vcore": 10})


def taint_of(text: str) -> dict[str, str]:
    """Return a taint from `key=value:Effect` or `key:Effect`."""
    mark, _, effect = text.rpartition(":")
    key, _, value = mark.partition("=")
    return {"key": key, "value": value, "effect": effect} if value else {"key": key, "effect": effect}


def running(sample: AskSample, on: NodeSample) -> AllocationSample:
    """Return the pod as an allocation."""
    return allocation(sample, on)
