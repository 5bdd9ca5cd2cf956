"""Predicate `pod-topology-spread`: constraints in tables, contracts, and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.kubernetes.predicates.pods import host, pod, running
from yunikorn_kubernetes.predicates.topology_spread import PodTopologySpread
from yunikorn_testing import AskSample, NodeSample, PredicateContract

WEB = {"app": "web"}


def over(key: str, skew: int = 1, **more: Any) -> dict[str, Any]:
    """Return a constraint for the pods with the label app=web."""
    return {"topologyKey": key, "maxSkew": skew, "labelSelector": {"matchLabels": WEB}, **more}


def placed(nodes: Mapping[str, NodeSample], pods: str, **of_pod: Any) -> PodTopologySpread:
    """Return the predicate with pods of app=web on nodes: `"a1 a1 b1"`."""
    predicate = PodTopologySpread()
    for node in nodes.values():
        predicate.node_added(node)
    for name in pods.split():
        sample = pod(**{"labels": WEB, **of_pod})
        predicate.placed(running(sample, nodes[name]), nodes[name])
    return predicate


ZONES = {
    name: host(name, {"zone": name[0], "host": name} if name != "x" else {"host": name})
    for name in ("a1", "a2", "b1", "c1", "x")
}
NOT_A = [{"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}]

# Pods that run, constraints of the pod, other fields of the pod, and the nodes that accept it.
SPREADS: list[tuple[str, list[dict[str, Any]], dict[str, Any], str]] = [
    ("", [over("zone")], {}, "a1 a2 b1 c1"),
    ("a1", [over("zone")], {}, "b1 c1"),
    ("a1 b1", [over("zone")], {}, "c1"),
    ("a1 b1 c1", [over("zone")], {}, "a1 a2 b1 c1"),
    ("a1", [over("zone", 2)], {}, "a1 a2 b1 c1"),
    ("a1 a2", [over("zone", 2)], {}, "b1 c1"),
    # Pods on nodes without the label do not count, and such nodes are refused.
    ("x", [over("zone")], {}, "a1 a2 b1 c1"),
    # Two constraints: both count only nodes with both labels.
    ("a1", [over("zone"), over("host")], {}, "b1 c1"),
    ("a1 b1 c1", [over("zone"), over("host")], {}, "a2"),
    ("x", [over("host"), over("zone")], {}, "a1 a2 b1 c1"),
    # The pod counts only if it matches itself.
    ("a1", [over("zone")], {"labels": {"app": "db"}}, "a1 a2 b1 c1"),
    ("a1 a2", [over("zone")], {"labels": {"app": "db"}}, "b1 c1"),
    # With fewer values than minDomains, the smallest number is 0.
    ("a1 b1 c1", [over("zone", minDomains=3)], {}, "a1 a2 b1 c1"),
    ("a1 b1 c1", [over("zone", minDomains=4)], {}, ""),
    ("", [over("zone", minDomains=4)], {}, "a1 a2 b1 c1"),
    # Node affinity is honoured: zone a has no number that counts, unless the policy says otherwise.
    ("b1", [over("zone")], {"nodeAffinity": NOT_A}, "a1 a2 c1"),
    ("a1 b1 c1", [over("zone")], {"nodeAffinity": NOT_A}, "a1 a2 b1 c1"),
    ("b1 c1", [over("zone", nodeAffinityPolicy="Ignore")], {"nodeAffinity": NOT_A}, "a1 a2"),
    # Without a selector no pod counts; an empty one counts none either.
    ("a1 a1 a1", [{"topologyKey": "zone", "maxSkew": 1}], {}, "a1 a2 b1 c1"),
    ("a1 a1 a1", [{"topologyKey": "zone", "maxSkew": 1, "labelSelector": {}}], {}, "a1 a2 b1 c1"),
    # Labels of the pod become part of the selector.
    ("a1", [over("zone", matchLabelKeys=["version"])], {"labels": {**WEB, "version": "2"}}, "a1 a2 b1 c1"),
    ("a1", [over("zone", matchLabelKeys=["none"])], {}, "b1 c1"),
    # Pods of another namespace do not count, and other constraints than DoNotSchedule do not refuse.
    ("a1", [over("zone")], {"namespace": "other"}, "a1 a2 b1 c1"),
    ("a1", [over("zone", whenUnsatisfiable="ScheduleAnyway")], {}, "a1 a2 b1 c1 x"),
]


@pytest.mark.parametrize(("pods", "spread", "of_pod", "accepting"), SPREADS)
def test_spreads(pods: str, spread: list[dict[str, Any]], of_pod: dict[str, Any], accepting: str) -> None:
    predicate = placed(ZONES, pods)
    asked = pod(topologySpread=spread, **{"labels": WEB, **of_pod})
    found = [name for name, node in ZONES.items() if predicate.check(asked, node) is None]
    assert found == accepting.split()


def test_taints_are_ignored_unless_the_policy_honours_them() -> None:
    nodes = {"a": host("a", {"zone": "a"}), "b": host("b", {"zone": "b"}, taints=["gpu:NoSchedule"])}
    predicate = placed(nodes, "a")
    assert predicate.check(pod(labels=WEB, topologySpread=[over("zone")]), nodes["a"]) is not None
    honoured = [over("zone", nodeTaintsPolicy="Honor")]
    assert predicate.check(pod(labels=WEB, topologySpread=honoured), nodes["a"]) is None
    tolerations = [{"operator": "Exists"}]
    tolerating = pod(labels=WEB, topologySpread=honoured, tolerations=tolerations)
    assert predicate.check(tolerating, nodes["a"]) is not None


def test_pods_that_are_being_deleted_do_not_count() -> None:
    predicate = placed(ZONES, "a1", terminating=True)
    assert predicate.check(pod(labels=WEB, topologySpread=[over("zone")]), ZONES["a1"]) is None


@pytest.mark.parametrize(
    ("spread", "fault"),
    [
        ({}, "topologySpread is {} instead of a list"),
        ([over("zone", "1")], "maxSkew is '1' instead of a whole number"),  # type: ignore[arg-type]
        ([over("zone", nodeTaintsPolicy="Never")], "nodeTaintsPolicy is 'Never' instead of Honor or Ignore"),
        ([over("zone", labelSelector={"matchLabels": {"app": "!"}})], "'!' is not the value of a label"),
        ([over("zone", matchLabelKeys=[1])], "an entry of matchLabelKeys is 1 instead of a text"),
    ],
)
def test_unreadable_constraints_refuse_the_pod(spread: Any, fault: str) -> None:
    predicate = placed(ZONES, "")
    asked = pod(topologySpread=spread)
    assert fault in str(predicate.check(asked, ZONES["a1"]))
    assert "the pod's topology spread cannot be read" in str(predicate.check(asked, ZONES["a1"]))
    assert predicate.wanted(asked) is None


def test_texts() -> None:
    predicate, asked = placed(ZONES, "a1"), pod(labels=WEB, topologySpread=[over("zone")])
    spread = "node(s) didn't match pod topology spread constraints"
    assert predicate.check(asked, ZONES["a2"]) == f"{spread}: the pod would exceed the skew of 1 over zone"
    assert predicate.check(asked, ZONES["x"]) == (
        f"{spread} (missing required label): the node has no label zone"
    )
    assert predicate.wanted(asked) == "room by the topology spread over zone (maxSkew 1)"
    assert predicate.wanted(pod()) is None


def test_counts_of_dropped_groups_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yunikorn_kubernetes.predicates.topology_spread.MOST_GROUPS", 4)
    predicate = placed(ZONES, "a1")
    for skew in range(1, 12):
        asked = pod(labels=WEB, topologySpread=[over("zone", skew)])
        assert (predicate.check(asked, ZONES["a1"]) is None) is (skew > 1)
    sample = running(pod(labels=WEB), ZONES["b1"])
    assert predicate.placed(sample, ZONES["b1"]) is not None, "refusals may have ended unnoticed"
    asked = pod(labels=WEB, topologySpread=[over("zone")])
    assert [name for name in ZONES if predicate.check(asked, ZONES[name]) is None] == ["c1"]


class TestPodTopologySpread(PredicateContract):
    predicate = PodTopologySpread()

    def asks(self) -> Sequence[AskSample]:
        return [
            pod("plain", labels=WEB),
            pod("zone", labels=WEB, topologySpread=[over("zone")]),
            pod("both", labels=WEB, topologySpread=[over("zone", 2), over("host")]),
            pod("domains", labels=WEB, topologySpread=[over("zone", minDomains=3)]),
            pod("other", labels={"app": "db"}, topologySpread=[over("zone")]),
            pod("exists", topologySpread=[over("zone", labelSelector=EXISTS)]),
            pod("bad", topologySpread=[7]),
        ]

    def nodes(self) -> Sequence[NodeSample]:
        return list(ZONES.values())


EXISTS = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
