"""Predicate `inter-pod-affinity`: terms in tables, contracts, classes, and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.kubernetes.predicates.pods import host, pod, running
from yunikorn.api import Where
from yunikorn_kubernetes.predicates.pod_affinity import InterPodAffinity
from yunikorn_testing import AskSample, NodeSample, PredicateContract
from yunikorn_testing.samples import foreign_task

WEB, DB = {"app": "web"}, {"app": "db"}
NODES = {
    name: host(name, {"zone": name[0], "host": name} if name != "x" else {"host": name})
    for name in ("a1", "a2", "b1", "x")
}
TEAM_A = {"matchLabels": {"team": "a"}}
EXISTS = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}


def near(key: str, app: str = "web", **more: Any) -> dict[str, Any]:
    """Return a term about the pods with this label."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def cluster(*tasks: tuple[str, dict[str, Any]]) -> InterPodAffinity:
    """Return the predicate with pods on nodes."""
    predicate = InterPodAffinity()
    for node in NODES.values():
        predicate.node_added(node)
    for name, of_pod in tasks:
        predicate.placed(running(pod(**of_pod), NODES[name]), NODES[name])
    return predicate


Task = tuple[str, dict[str, Any]]
ON_A: Task = ("a1", {"labels": WEB})
ON_X: Task = ("x", {"labels": WEB})
OF_TEAM: Task = ("a1", {"labels": WEB, "namespace": "t", "namespace_labels": {"team": "a"}})
AVOIDING: Task = ("a1", {"labels": DB, "podAntiAffinity": [near("zone")]})

# Pods that run, the asking pod, and the nodes that accept it.
TERMS: list[tuple[list[Task], dict[str, Any], str]] = [
    # Affinity: only near a match.
    ([], {"podAffinity": [near("zone")]}, ""),
    ([ON_A], {"podAffinity": [near("zone")]}, "a1 a2"),
    ([ON_A], {"podAffinity": [near("host")]}, "a1"),
    ([ON_A], {"podAffinity": [near("zone", "db")]}, ""),
    ([ON_X], {"podAffinity": [near("zone")]}, ""),
    # One pod must match all terms, but each label needs such a pod of its own.
    ([ON_A], {"podAffinity": [near("zone"), near("host")]}, "a1"),
    ([ON_A, ("b1", {"labels": DB})], {"podAffinity": [near("zone"), near("zone", "db")]}, ""),
    ([ON_A, ("a2", {"labels": WEB})], {"podAffinity": [near("zone"), near("host")]}, "a1 a2"),
    # The first pod of a series may run anywhere with the label; then the others follow.
    ([], {"labels": WEB, "podAffinity": [near("zone")]}, "a1 a2 b1"),
    ([ON_X], {"labels": WEB, "podAffinity": [near("zone")]}, "a1 a2 b1"),
    ([ON_A], {"labels": WEB, "podAffinity": [near("zone")]}, "a1 a2"),
    ([], {"labels": WEB, "podAffinity": [near("zone"), near("zone", "db")]}, ""),
    # Anti-affinity: not near a match; nodes without the label are near nothing.
    ([], {"podAntiAffinity": [near("zone")]}, "a1 a2 b1 x"),
    ([ON_A], {"podAntiAffinity": [near("zone")]}, "b1 x"),
    ([ON_A], {"podAntiAffinity": [near("host")]}, "a2 b1 x"),
    ([ON_A], {"podAntiAffinity": [near("zone", "db"), near("host")]}, "a2 b1 x"),
    # Pods that run avoid the pod, too.
    ([AVOIDING], {"labels": WEB}, "b1 x"),
    ([AVOIDING], {"labels": DB}, "a1 a2 b1 x"),
    ([AVOIDING], {"labels": WEB, "namespace": "other"}, "a1 a2 b1 x"),
    # Namespaces: that of the pod, unless the term names others or selects them by their labels.
    ([OF_TEAM], {"podAntiAffinity": [near("zone")]}, "a1 a2 b1 x"),
    ([OF_TEAM], {"podAntiAffinity": [near("zone", namespaces=["t"])]}, "b1 x"),
    ([ON_A], {"podAntiAffinity": [near("zone", namespaces=["t"])]}, "a1 a2 b1 x"),
    ([OF_TEAM], {"podAntiAffinity": [near("zone", namespaceSelector=TEAM_A)]}, "b1 x"),
    ([ON_A], {"podAntiAffinity": [near("zone", namespaceSelector=TEAM_A)]}, "a1 a2 b1 x"),
    ([OF_TEAM], {"podAntiAffinity": [near("zone", namespaceSelector={})]}, "b1 x"),
    ([ON_A], {"podAntiAffinity": [near("zone", namespaces=["default"], namespaceSelector=TEAM_A)]}, "b1 x"),
    # A selector that is missing matches nothing, and an empty one everything.
    ([ON_A], {"podAntiAffinity": [{"topologyKey": "zone"}]}, "a1 a2 b1 x"),
    ([ON_A], {"podAntiAffinity": [{"topologyKey": "zone", "labelSelector": {}}]}, "b1 x"),
    ([ON_A], {"podAffinity": [{"topologyKey": "zone", "labelSelector": EXISTS}]}, "a1 a2"),
    # Unlike for the spread, pods that are being deleted count.
    ([("a1", {"labels": WEB, "terminating": True})], {"podAntiAffinity": [near("zone")]}, "b1 x"),
]


@pytest.mark.parametrize(("tasks", "asking", "accepting"), TERMS)
def test_terms(tasks: list[Task], asking: dict[str, Any], accepting: str) -> None:
    predicate, asked = cluster(*tasks), pod(**asking)
    assert [name for name, node in NODES.items() if predicate.check(asked, node) is None] == accepting.split()


def test_foreign_pods_avoid_others() -> None:
    predicate = cluster()
    tags = pod(labels=DB, podAntiAffinity=[near("host")]).tags
    predicate.placed(foreign_task("agent", NODES["b1"], tags=tags), NODES["b1"])
    assert predicate.check(pod(labels=WEB), NODES["b1"]) is not None


def test_texts() -> None:
    predicate = cluster(ON_A, AVOIDING)
    needs, avoids = pod(podAffinity=[near("zone")]), pod(podAntiAffinity=[near("host")])
    assert [
        predicate.check(needs, NODES["x"]),
        predicate.check(needs, NODES["b1"]),
        predicate.check(avoids, NODES["a1"]),
        predicate.check(pod(labels=WEB), NODES["a2"]),
    ] == [
        "node(s) didn't match pod affinity rules: the node has no label zone, which the pod's affinity needs",
        "node(s) didn't match pod affinity rules: no pod that the pod's affinity needs runs in the same zone",
        "node(s) didn't match pod anti-affinity rules:"
        " the pod's anti-affinity excludes a pod in the same host",
        "node(s) didn't satisfy existing pods anti-affinity rules:"
        " a pod in the same zone excludes the pod by its anti-affinity",
    ]
    both = pod(podAffinity=[near("zone")], podAntiAffinity=[near("host", "db")])
    assert predicate.wanted(both) == "pods near (app=web by zone) and no pods near (app=db by host)"
    assert predicate.wanted(pod()) is None


@pytest.mark.parametrize("section", ["podAffinity", "podAntiAffinity"])
def test_unreadable_terms_refuse_the_pod_but_not_others(section: str) -> None:
    of_pod: dict[str, Any] = {"labels": WEB, section: [near("zone", namespaces="t")]}
    bad, predicate = pod(**of_pod), cluster(("a1", of_pod))
    reason = predicate.check(bad, NODES["b1"])
    assert reason is not None
    assert "the pod's affinity cannot be read: namespaces is 't' instead of a list" in reason
    assert predicate.check(pod(labels=WEB), NODES["a1"]) is None


# -- classes ------------------------------------------------------------------------------------------------


def test_labels_distinguish_requests_only_where_anti_affinity_reads_them() -> None:
    """Labels that differ from pod to pod, such as an index, would make every pod a class of its own."""
    predicate = cluster()
    one, two = (pod(labels={**WEB, "index": str(number)}) for number in range(2))
    other = pod(labels=DB)
    assert predicate.ask_class(one) == predicate.ask_class(two) == predicate.ask_class(other)
    before = predicate.classes_version
    predicate.ask_class(pod(podAntiAffinity=[near("zone")]))
    assert predicate.classes_version > before, "pending requests have other classes now"
    assert predicate.ask_class(one) == predicate.ask_class(two) != predicate.ask_class(other)
    again = predicate.classes_version
    predicate.ask_class(pod(podAntiAffinity=[near("host", "db")]))
    assert predicate.classes_version == again


def test_many_labels_in_anti_affinity_make_all_labels_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yunikorn_kubernetes.predicates.pod_affinity.MOST_KEYS", 3)
    predicate = cluster()
    for number in range(9):
        selector = {"matchLabels": {f"key-{number}": "x"}}
        predicate.ask_class(pod(podAntiAffinity=[{"topologyKey": "zone", "labelSelector": selector}]))
    assert predicate.classes_version == 4
    one, two = (pod(labels={"key-8": value}) for value in "xy")
    assert predicate.ask_class(one) != predicate.ask_class(two)


def test_counts_of_dropped_groups_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yunikorn_kubernetes.predicates.pod_affinity.MOST_GROUPS", 4)
    predicate = cluster(ON_A)
    for number in range(9):
        asked = pod(podAffinity=[near("zone", namespaces=["default", str(number)])])
        assert predicate.check(asked, NODES["a2"]) is None
    sample = running(pod(labels=DB), NODES["b1"])
    assert predicate.placed(sample, NODES["b1"]) is Where.EVERYWHERE, "refusals may have ended unnoticed"


class TestInterPodAffinity(PredicateContract):
    predicate = InterPodAffinity()

    def asks(self) -> Sequence[AskSample]:
        return [
            pod("web", labels=WEB),
            pod("needs", labels=DB, podAffinity=[near("zone")]),
            pod("series", labels=WEB, podAffinity=[near("zone"), near("host")]),
            pod("avoids", labels=WEB, podAntiAffinity=[near("host")]),
            pod("any", labels=DB, podAntiAffinity=[{"topologyKey": "zone", "labelSelector": EXISTS}]),
            pod("bad", podAffinity=[7]),
        ]

    def nodes(self) -> Sequence[NodeSample]:
        return list(NODES.values())
