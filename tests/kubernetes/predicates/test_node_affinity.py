"""Predicate `node-affinity`: selectors, terms, operators, and what cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.kubernetes.predicates.pods import host, pod
from yunikorn_kubernetes.predicates.node_affinity import NodeAffinity
from yunikorn_testing import AskSample, NodeSample, PredicateContract

NODE = {"zone": "a", "cpus": "16", "example.com/disk": "ssd", "empty": ""}


def requirement(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


# One requirement on the labels of NODE, and True if the node meets it.
REQUIREMENTS: list[tuple[str, str, list[str], bool]] = [
    ("zone", "In", ["a", "b"], True),
    ("zone", "In", ["b"], False),
    ("rack", "In", ["a"], False),
    ("empty", "In", [""], True),
    ("rack", "In", [""], False),
    ("zone", "NotIn", ["a"], False),
    ("zone", "NotIn", ["b"], True),
    ("rack", "NotIn", ["b"], True),
    ("zone", "Exists", [], True),
    ("rack", "Exists", [], False),
    ("empty", "Exists", [], True),
    ("zone", "DoesNotExist", [], False),
    ("rack", "DoesNotExist", [], True),
    ("cpus", "Gt", ["15"], True),
    ("cpus", "Gt", ["16"], False),
    ("cpus", "Lt", ["17"], True),
    ("cpus", "Lt", ["16"], False),
    ("cpus", "Gt", ["0015"], True),
    ("rack", "Gt", ["1"], False),
    ("rack", "Lt", ["1"], False),
    ("zone", "Gt", ["1"], False),  # the label is no number
    ("zone", "Lt", ["1"], False),
    # What the API server refuses matches nothing.
    ("cpus", "Gt", ["15", "16"], False),
    ("cpus", "Gt", [], False),
    ("cpus", "Gt", ["x"], False),
    ("cpus", "Gt", ["-1"], False),  # not the value of a label
    ("cpus", "Gt", ["9" * 19], False),
    ("cpus", "Lt", ["9" * 18], True),
    ("zone", "In", [], False),
    ("rack", "NotIn", [], False),
    ("zone", "Exists", ["a"], False),
    ("rack", "DoesNotExist", ["a"], False),
    ("zone", "in", ["a"], False),
    ("zone", "", ["a"], False),
    ("", "DoesNotExist", [], False),
    ("-zone", "DoesNotExist", [], False),
    ("Example.com/disk", "DoesNotExist", [], False),
    ("a/b/c", "DoesNotExist", [], False),
    ("zone", "In", ["a", "b!"], False),
    ("zone", "NotIn", ["-"], False),
    ("zone", "In", ["a", "x" * 64], False),
    # Attributes of the scheduler are no labels.
    ("si.io/hostname", "Exists", [], False),
    ("si.io/hostname", "DoesNotExist", [], True),
    ("yunikorn.apache.org/taints", "DoesNotExist", [], True),
]


@pytest.mark.parametrize(("key", "operator", "values", "met"), REQUIREMENTS)
def test_requirements(key: str, operator: str, values: list[str], met: bool) -> None:
    term = {"matchExpressions": [requirement(key, operator, *values)]}
    answer = NodeAffinity().check(pod(nodeAffinity=[term]), host(labels=NODE))
    assert (answer is None) is met


A, B = requirement("zone", "In", "a"), requirement("zone", "In", "b")
SSD, BAD = requirement("example.com/disk", "In", "ssd"), requirement("zone", "Near", "a")
HERE, THERE = requirement("metadata.name", "In", "n1"), requirement("metadata.name", "In", "n2")

# Terms, of which one must match, and True if NODE with the name n1 is admitted.
TERMS: list[tuple[list[dict[str, Any]], bool]] = [
    ([], False),
    ([{}], False),
    ([{"matchExpressions": [], "matchFields": []}], False),
    ([{}, {"matchExpressions": [A]}], True),
    ([{"matchExpressions": [B]}, {"matchExpressions": [A]}], True),
    ([{"matchExpressions": [A, SSD]}], True),
    ([{"matchExpressions": [B, SSD]}], False),
    # A term that cannot be read is left out.
    ([{"matchExpressions": [BAD]}], False),
    ([{"matchExpressions": [A, BAD]}], False),
    ([{"matchExpressions": [BAD]}, {"matchExpressions": [A]}], True),
    ([{"matchExpressions": 7}], False),
    # Fields: only the name, with exactly one value.
    ([{"matchFields": [HERE]}], True),
    ([{"matchFields": [THERE]}], False),
    ([{"matchFields": [requirement("metadata.name", "NotIn", "n2")]}], True),
    ([{"matchFields": [requirement("metadata.name", "NotIn", "n1")]}], False),
    ([{"matchFields": [requirement("metadata.name", "In", "n1", "n2")]}], False),
    ([{"matchFields": [requirement("metadata.name", "Exists")]}], False),
    ([{"matchFields": [requirement("spec.x", "In", "")]}], True),
    ([{"matchFields": [requirement("spec.x", "NotIn", "")]}], False),
    ([{"matchFields": [HERE], "matchExpressions": [A]}], True),
    ([{"matchFields": [HERE], "matchExpressions": [B]}], False),
    ([{"matchFields": [HERE, THERE]}], False),
]


@pytest.mark.parametrize(("terms", "admitted"), TERMS)
def test_terms(terms: list[dict[str, Any]], admitted: bool) -> None:
    assert (NodeAffinity().check(pod(nodeAffinity=terms), host(labels=NODE)) is None) is admitted


def test_selector_and_affinity_must_both_match() -> None:
    predicate, node = NodeAffinity(), host(labels=NODE)
    matching, other = [{"matchExpressions": [A]}], [{"matchExpressions": [B]}]
    assert predicate.check(pod(nodeSelector={"zone": "a"}), node) is None
    assert predicate.check(pod(nodeSelector={"zone": "a"}, nodeAffinity=matching), node) is None
    assert predicate.check(pod(nodeSelector={"zone": "a", "rack": ""}, nodeAffinity=matching), node) == (
        "node(s) didn't match Pod's node affinity/selector: the pod's node selector requires rack="
    )
    assert predicate.check(pod(nodeSelector={"zone": "a"}, nodeAffinity=other), node) == (
        "node(s) didn't match Pod's node affinity/selector:"
        " the node matches no term of the pod's node affinity"
    )


def test_values_of_a_selector_may_be_anything() -> None:
    """The API server does not check them, so that they simply match no node."""
    answer = NodeAffinity().check(pod(nodeSelector={"zone": "not a label value!"}), host(labels=NODE))
    assert str(answer).endswith("the pod's node selector requires zone=not a label value!")


def test_faults_of_terms_are_named() -> None:
    answer = NodeAffinity().check(pod(nodeAffinity=[{"matchExpressions": [BAD]}]), host(labels=NODE))
    assert answer is not None
    assert "of which some cannot be read: 'Near' is not an operator; known: In, NotIn, " in answer
    answer = NodeAffinity().check(pod(nodeAffinity={}), host(labels=NODE))
    assert answer is not None
    assert "node affinity cannot be read: nodeAffinity is {} instead of a list" in answer


def test_requirement_in_words() -> None:
    terms = [{"matchExpressions": [A, requirement("cpus", "Gt", "4")]}, {"matchFields": [THERE]}]
    wanted = pod(nodeSelector={"gpu": "yes"}, nodeAffinity=terms)
    assert NodeAffinity().wanted(wanted) == "labels gpu=yes, (zone=a, cpus>4 or metadata.name=n2)"
    assert NodeAffinity().wanted(pod()) is None


class TestNodeAffinity(PredicateContract):
    predicate = NodeAffinity()

    def asks(self) -> Sequence[AskSample]:
        return [
            pod("plain"),
            pod("selector", nodeSelector={"zone": "a"}),
            pod("term", nodeAffinity=[{"matchExpressions": [A]}, {"matchFields": [THERE]}]),
            pod("both", nodeSelector={"zone": "a"}, nodeAffinity=[{"matchExpressions": [SSD]}]),
            pod("bad", nodeAffinity=[{"matchExpressions": [BAD]}]),
            pod("odd", nodeSelector=["zone"]),
        ]

    def nodes(self) -> Sequence[NodeSample]:
        return [host("n0"), host("n1", NODE), host("n2", NODE), host("n3", {"zone": "b"})]
