"""Predicates about one node: taints, unschedulable nodes, names, and dynamic resource allocation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.kubernetes.predicates.pods import host, pod
from yunikorn_kubernetes import names
from yunikorn_kubernetes.devices.dynamic_resources import DynamicResources
from yunikorn_kubernetes.predicates.node_name import NodeName
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence
from yunikorn_kubernetes.predicates.taints import NodeUnschedulable, TaintToleration
from yunikorn_testing import AskSample, NodeSample, PredicateContract, ask

EXISTS = {"operator": "Exists"}
GPU = {"key": "gpu", "operator": "Equal", "value": "a100", "effect": "NoSchedule"}


# Taints of the node, tolerations of the pod, and the taint that refuses the pod (empty if none does).
TAINTS: list[tuple[list[str], list[dict[str, Any]], str]] = [
    ([], [], ""),
    ([], [GPU], ""),
    (["gpu=a100:NoSchedule"], [], "gpu=a100:NoSchedule"),
    (["gpu=a100:NoSchedule"], [GPU], ""),
    (["gpu=h100:NoSchedule"], [GPU], "gpu=h100:NoSchedule"),
    (["gpu=a100:NoExecute"], [GPU], "gpu=a100:NoExecute"),
    (["tpu=a100:NoSchedule"], [GPU], "tpu=a100:NoSchedule"),
    # Effects: an empty effect of the toleration is every effect, and PreferNoSchedule refuses no pod.
    (["gpu=a100:NoExecute"], [{**GPU, "effect": ""}], ""),
    (["gpu=a100:NoExecute"], [{"key": "gpu", "value": "a100"}], ""),
    (["gpu=a100:PreferNoSchedule"], [], ""),
    # Operators: without one it is Equal; Exists ignores the value.
    (["gpu=a100:NoSchedule"], [{"key": "gpu"}], "gpu=a100:NoSchedule"),
    (["gpu:NoSchedule"], [{"key": "gpu"}], ""),
    (["gpu=a100:NoSchedule"], [{"key": "gpu", **EXISTS}], ""),
    (["gpu=a100:NoSchedule"], [{"key": "gpu", "operator": "exists"}], "gpu=a100:NoSchedule"),
    # Without a key, Exists tolerates everything, or everything with its effect.
    (["gpu=a100:NoSchedule", "old:NoExecute"], [EXISTS], ""),
    (["gpu=a100:NoSchedule", "old:NoExecute"], [{**EXISTS, "effect": "NoSchedule"}], "old:NoExecute"),
    # Every taint needs a toleration; the first without one is named.
    (["a:NoSchedule", "b:NoSchedule"], [{"key": "b", **EXISTS}], "a:NoSchedule"),
    (["a:NoSchedule", "b:NoSchedule"], [{"key": "a", **EXISTS}, {"key": "b", **EXISTS}], ""),
    # Numbers are compared by Lt and Gt: the taint must be less, or greater, than the toleration.
    (["sla=950:NoSchedule"], [{"key": "sla", "operator": "Gt", "value": "900"}], ""),
    (["sla=900:NoSchedule"], [{"key": "sla", "operator": "Gt", "value": "900"}], "sla=900:NoSchedule"),
    (["sla=-5:NoSchedule"], [{"key": "sla", "operator": "Lt", "value": "0"}], ""),
    (["sla=5:NoSchedule"], [{"key": "sla", "operator": "Lt", "value": "0"}], "sla=5:NoSchedule"),
    (["sla=high:NoSchedule"], [{"key": "sla", "operator": "Gt", "value": "1"}], "sla=high:NoSchedule"),
    (["sla=5:NoSchedule"], [{"key": "sla", "operator": "Gt", "value": "01"}], "sla=5:NoSchedule"),
    (["sla=5:NoSchedule"], [{"key": "sla", "operator": "Lt", "value": f"{2**63}"}], "sla=5:NoSchedule"),
]


@pytest.mark.parametrize(("taints", "tolerations", "refusing"), TAINTS)
def test_taints(taints: list[str], tolerations: list[dict[str, Any]], refusing: str) -> None:
    answer = TaintToleration().check(pod(tolerations=tolerations), host(taints=taints))
    assert answer == (RefusalSentence.TAINT.because(refusing) if refusing else None)


@pytest.mark.parametrize(
    ("tolerations", "runs"),
    [
        ([], False),
        ([EXISTS], True),
        ([{"key": "node.kubernetes.io/unschedulable", **EXISTS}], True),
        ([{"key": "node.kubernetes.io/unschedulable"}], True),
        ([{"key": "node.kubernetes.io/unschedulable", **EXISTS, "effect": "NoSchedule"}], True),
        ([{"key": "node.kubernetes.io/unschedulable", **EXISTS, "effect": "NoExecute"}], False),
        ([{"key": "node.kubernetes.io/not-ready", **EXISTS}], False),
    ],
)
def test_unschedulable_nodes(tolerations: list[dict[str, Any]], runs: bool) -> None:
    answer = NodeUnschedulable().check(pod(tolerations=tolerations), host(unschedulable=True))
    assert answer == (None if runs else "node(s) were unschedulable")
    assert NodeUnschedulable().check(pod(tolerations=tolerations), host()) is None


def test_node_name() -> None:
    wanted = pod(required_node="n1")
    assert NodeName().check(wanted, host("n1")) is None
    assert NodeName().check(wanted, host("n2")) == (
        "node(s) didn't match the requested node name: the pod requires the node n1"
    )
    assert NodeName().check(pod(), host("n2")) is None
    assert (NodeName().wanted(wanted), NodeName().wanted(pod())) == ("the name n1", None)


def test_pods_with_unknown_claims_are_refused_with_the_reason() -> None:
    assert DynamicResources().check(pod(resourceClaims=True), host()) == (
        "the pod uses dynamic resource allocation (spec.resourceClaims); its claims are not known"
    )
    assert DynamicResources().check(pod(), host()) is None
    assert DynamicResources().on_reservation


# -- what cannot be read ----------------------------------------------------------------------------------

UNREADABLE = [
    ("", None),
    ("{", "invalid JSON"),
    ("[]", "the constraints is [] instead of an object"),
    ("[" * 100_000, "invalid JSON"),
    ('{"tolerations":{}}', "the tolerations is {} instead of a list"),
    ('{"tolerations":[7]}', "an entry of the tolerations is 7 instead of an object"),
    ('{"tolerations":[{"key":7}]}', "key is 7 instead of a text"),
]


@pytest.mark.parametrize(("text", "fault"), UNREADABLE)
def test_unreadable_tolerations_refuse_the_pod_with_the_fault(text: str, fault: str | None) -> None:
    wanted = ask("pod", tags={names.TAG_CONSTRAINTS: text})
    for predicate in (TaintToleration(), NodeUnschedulable()):
        answer = predicate.check(wanted, host(taints=["a:NoSchedule"], unschedulable=True))
        assert answer is not None
        assert fault is None or fault in answer
        assert fault is None or "the pod's tolerations cannot be read" in answer
        assert predicate.check(wanted, host()) is None or fault is not None


def test_unreadable_constraints_of_one_kind_leave_the_others_in_force() -> None:
    wanted = pod(nodeSelector=7, tolerations=[EXISTS])
    assert TaintToleration().check(wanted, host(taints=["a:NoSchedule"])) is None


def test_unreadable_taints_refuse_every_pod() -> None:
    broken = NodeSample("n1", {names.NODE_TAINTS: "{"})
    assert "the node's taints cannot be read: invalid JSON" in str(TaintToleration().check(pod(), broken))


# -- texts for users --------------------------------------------------------------------------------------


def test_tolerated_taints_are_the_requirement() -> None:
    wanted = pod(tolerations=[GPU, {"key": "old", **EXISTS}, {"key": "sla", "operator": "Lt", "value": "9"}])
    assert TaintToleration().wanted(wanted) == "no taints except gpu=a100:NoSchedule, old, sla<9"
    assert TaintToleration().wanted(pod()) == "no taints"


# -- contracts --------------------------------------------------------------------------------------------


class OfPods(PredicateContract):
    """Contract with pods and nodes that matter to the predicates of this file."""

    def asks(self) -> Sequence[AskSample]:
        return [
            pod("plain"),
            pod("gpu", tolerations=[GPU]),
            pod("all", tolerations=[EXISTS]),
            pod("here", required_node="gpu"),
            pod("claims", resourceClaims=True),
            ask("broken", tags={names.TAG_CONSTRAINTS: "{"}),
        ]

    def nodes(self) -> Sequence[NodeSample]:
        return [
            host("plain"),
            host("gpu", taints=["gpu=a100:NoSchedule"]),
            host("old", taints=["gpu=a100:NoSchedule", "old:NoExecute"]),
            host("off", unschedulable=True),
            NodeSample("broken", {names.NODE_TAINTS: "{", names.NODE_UNSCHEDULABLE: "yes"}),
        ]


class TestTaintToleration(OfPods):
    predicate = TaintToleration()


class TestNodeUnschedulable(OfPods):
    predicate = NodeUnschedulable()


class TestNodeName(OfPods):
    predicate = NodeName()


class TestDynamicResources(OfPods):
    predicate = DynamicResources()
