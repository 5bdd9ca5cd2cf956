"""Pods that not every node suits: selectors, affinity, taints, names, ports, spreading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.kubernetes.cluster import Obj
from tests.kubernetes.cluster.objects import container, daemon_set, deployment, node, nodes, pod
from tests.kubernetes.scheduling import Scheduled

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def required(*terms: Obj) -> Obj:
    """Return a required node affinity with these terms."""
    selector = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def expression(key: str, operator: str, *values: str) -> Obj:
    """Return a requirement of a label."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def among_pods(kind: str, app: str, topology: str, **fields: Any) -> Obj:
    """Return a required affinity, or anti-affinity, to pods of an app."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": topology, **fields}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def with_port(number: int, **fields: str) -> list[Obj]:
    """Return containers that use a port of the node."""
    return [container(cpu="1", ports=[{"containerPort": 80, "hostPort": number, **fields}])]


def test_a_selector_is_obeyed_and_a_label_that_comes_later_counts(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(2))
    scheduled.create(pod("p", nodeSelector={"disk": "ssd"}))
    scheduled.pending("p", "disk=ssd")
    scheduled.kubectl.patch("Node", "node-1", {"metadata": {"labels": {"disk": "ssd"}}})
    assert scheduled.node_of("p") == "node-1"


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([[expression("size", "In", "m", "l")]], {"medium", "large"}),
        ([[expression("size", "NotIn", "m", "l")]], {"small", "plain"}),
        ([[expression("size", "Exists"), expression("cores", "Gt", "4")]], {"large"}),
        ([[expression("size", "DoesNotExist")], [expression("size", "In", "s")]], {"small", "plain"}),
    ],
)
def test_node_affinity_is_obeyed(
    terms: Sequence[Sequence[Obj]], expected: set[str], scheduled: Scheduled
) -> None:
    scheduled.make_nodes(
        node("small", pods=1, labels={"size": "s", "cores": "2"}),
        node("medium", pods=1, labels={"size": "m", "cores": "4"}),
        node("large", pods=1, labels={"size": "l", "cores": "8"}),
        node("plain", pods=1),
    )
    affinity = required(*({"matchExpressions": list(term)} for term in terms))
    scheduled.create(deployment("web", replicas=4, affinity=affinity))
    placed = scheduled.running(len(expected))
    assert set(placed.values()) == expected


def test_taints_keep_pods_away_that_do_not_tolerate_them(scheduled: Scheduled) -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    scheduled.make_nodes(node("tainted", taints=[taint]))
    scheduled.create(pod("plain"))
    scheduled.pending("plain", "gpu=yes:NoSchedule")
    scheduled.create(pod("tolerant", tolerations=[{"key": "gpu", "operator": "Exists"}]))
    assert scheduled.node_of("tolerant") == "tainted"
    scheduled.kubectl.patch("Node", "tainted", {"spec": {"taints": None}})
    assert scheduled.node_of("plain") == "tainted"


def test_a_preference_is_no_reason_to_wait(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("soft", taints=[{"key": "slow", "effect": "PreferNoSchedule"}]))
    wish = {"weight": 1, "preference": {"matchExpressions": [expression("disk", "Exists")]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    scheduled.create(pod("p", affinity=affinity))
    assert scheduled.node_of("p") == "soft"


def test_a_named_node_is_not_left_to_the_scheduler(scheduled: Scheduled) -> None:
    """The kubelet of the node runs such a pod; the scheduler only counts its room."""
    scheduled.make_nodes(*nodes(2, cpu="2"))
    scheduled.create(pod("named", nodeName="node-1", cpu="2"))
    scheduled.running(1)
    scheduled.create(pod("other", cpu="2"))
    assert scheduled.node_of("other") == "node-0"


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (with_port(80), with_port(80), False),
        (with_port(80), with_port(81), True),
        (with_port(80), with_port(80, protocol="UDP"), True),
        (with_port(80, hostIP="10.0.0.1"), with_port(80, hostIP="10.0.0.2"), True),
        (with_port(80, hostIP="10.0.0.1"), with_port(80), False),
    ],
    ids=["same", "other-port", "other-protocol", "other-address", "any-address"],
)
def test_host_ports_of_one_node_differ(
    first: list[Obj], second: list[Obj], together: bool, scheduled: Scheduled
) -> None:
    scheduled.make_nodes(node("only"))
    scheduled.create(pod("first", containers=first))
    scheduled.running(1)
    scheduled.create(pod("second", containers=second))
    if together:
        scheduled.running(2)
    else:
        scheduled.pending("second", "didn't have free ports for the requested pod ports")


def test_a_daemon_set_runs_on_all_nodes_that_suit_it(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(3, labels={"daemon": "yes"}), node("other"))
    scheduled.create(daemon_set("agent", nodeSelector={"daemon": "yes"}))
    assert set(scheduled.running(3).values()) == {"node-0", "node-1", "node-2"}
    scheduled.make_nodes(node("late", labels={"daemon": "yes"}))
    assert "late" in scheduled.running(4).values()


def test_pods_are_spread_evenly_over_zones(scheduled: Scheduled) -> None:
    zones = {f"{zone}{number}": zone for zone in "abc" for number in range(2)}
    scheduled.make_nodes(*(node(name, labels={ZONE: zone}) for name, zone in zones.items()))
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    scheduled.create(deployment("web", replicas=7, topologySpreadConstraints=[constraint]))
    placed = Counter(zones[where] for where in scheduled.running(7).values())
    assert sorted(placed.values()) == [2, 2, 3]


def test_spread_pods_wait_for_room_in_the_emptiest_zone(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("large", labels={ZONE: "a"}), node("small", cpu="1", labels={ZONE: "b"}))
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    scheduled.create(deployment("web", replicas=5, topologySpreadConstraints=[constraint]))
    scheduled.running(3)
    scheduled.make_nodes(node("more", labels={ZONE: "b"}))
    assert Counter(scheduled.running(5).values())["large"] in (2, 3)


def test_pods_that_repel_each_other_run_on_different_nodes(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(3))
    scheduled.create(deployment("web", replicas=4, affinity=among_pods("podAntiAffinity", "web", HOST)))
    placed = scheduled.running(3)
    assert sorted(placed.values()) == ["node-0", "node-1", "node-2"]
    scheduled.make_nodes(node("node-3"))
    assert len(set(scheduled.running(4).values())) == 4


def test_a_pod_that_is_repelled_by_one_that_runs_keeps_away(scheduled: Scheduled) -> None:
    """The term of the pod that runs counts, although the new pod has none."""
    scheduled.make_nodes(*nodes(2))
    scheduled.create(pod("loner", affinity=among_pods("podAntiAffinity", "web", HOST)))
    where = scheduled.node_of("loner")
    scheduled.create(deployment("web", replicas=3))
    assert set(scheduled.running(3, labels="app=web").values()) == {"node-0", "node-1"} - {where}


def test_pods_that_attract_each_other_run_in_one_zone(scheduled: Scheduled) -> None:
    zones = {f"{zone}{number}": zone for zone in "ab" for number in range(2)}
    scheduled.make_nodes(*(node(name, cpu="2", labels={ZONE: zone}) for name, zone in zones.items()))
    scheduled.create(deployment("web", replicas=5, affinity=among_pods("podAffinity", "web", ZONE)))
    placed = scheduled.running(4)
    assert len({zones[where] for where in placed.values()}) == 1
