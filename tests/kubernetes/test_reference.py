"""The reference program: each plugin refuses what it is for, first refusals first, and defaults are set."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes.cluster import Obj
from tests.kubernetes.cluster.objects import container, namespace, node, pod
from tests.kubernetes.reference import Reference, ReferenceError

ZONE = "topology.kubernetes.io/zone"


def refusals(reference: Reference, asked: Obj, **cluster: list[Obj]) -> list[str]:
    """Return the plugins that refuse the node `a`, the deciding one first."""
    return [refusal.plugin for refusal in reference.ask(asked, cluster)["a"]]


def bound(name: str, to: str, **arguments: Any) -> Obj:
    """Return a pod on a node."""
    return pod(name, nodeName=to, **arguments)


def term(key: str, **labels: str) -> Obj:
    """Return an affinity term."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def claim(name: str, **spec: Any) -> Obj:
    """Return a claim of a volume."""
    fields = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": fields}


def volume(name: str, of: str, **spec: Any) -> Obj:
    """Return a volume that is bound to a claim."""
    fields = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "claimRef": {"namespace": "default", "name": of, "uid": "claim-0"},
        **spec,
    }
    return {"metadata": {"name": name}, "spec": fields, "status": {"phase": "Bound"}}


def with_claim(name: str) -> Obj:
    """Return the field of a pod that names a claim."""
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


@pytest.mark.parametrize(
    ("fields", "place", "expected"),
    [
        ({}, {}, []),
        ({}, {"unschedulable": True}, ["NodeUnschedulable"]),
        ({"nodeName": "b"}, {}, ["NodeName"]),
        ({}, {"taints": [{"key": "k", "effect": "NoSchedule"}]}, ["TaintToleration"]),
        ({"nodeSelector": {"gpu": "yes"}}, {}, ["NodeAffinity"]),
        ({"nodeSelector": {"gpu": "yes"}}, {"labels": {"gpu": "yes"}}, []),
        ({"cpu": "17"}, {}, ["NodeResourcesFit"]),
        (
            {"cpu": "17", "nodeSelector": {"gpu": "yes"}},
            {"unschedulable": True},
            ["NodeUnschedulable", "NodeAffinity", "NodeResourcesFit"],
        ),
    ],
)
def test_plugins_that_look_at_one_node(
    fields: Obj, place: Obj, expected: list[str], reference: Reference
) -> None:
    assert refusals(reference, pod("asked", **fields), nodes=[node("a", **place)]) == expected


def test_host_ports(reference: Reference) -> None:
    # No protocol: the defaults of the API server are set.
    asked = pod("asked", containers=[container(ports=[{"containerPort": 80, "hostPort": 80}])])
    other = container(ports=[{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}])
    places = [node("a"), node("b")]
    verdicts = reference.ask(asked, {"nodes": places, "pods": [bound("other", "a", containers=[other])]})
    assert {name: [one.plugin for one in found] for name, found in verdicts.items()} == {
        "a": ["NodePorts"],
        "b": [],
    }


def test_topology_spread(reference: Reference) -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    places = [node("a", labels={ZONE: "1"}), node("b", labels={ZONE: "2"}), node("c")]
    asked = pod("asked", labels={"app": "web"}, topologySpreadConstraints=[constraint])
    others = [bound("other", "a", labels={"app": "web"})]
    verdicts = reference.ask(asked, {"nodes": places, "pods": others})
    assert [one.plugin for one in verdicts["a"]] == ["PodTopologySpread"]
    assert verdicts["a"][0].resolvable
    assert verdicts["b"] == []
    assert (
        verdicts["c"][0].message
        == "node(s) didn't match pod topology spread constraints (missing required label)"
    )
    assert not verdicts["c"][0].resolvable


def test_affinity_between_pods(reference: Reference) -> None:
    places = [node("a", labels={ZONE: "1"}), node("b", labels={ZONE: "2"})]
    others = [bound("other", "a", labels={"app": "web"})]
    for kind, refused in (("podAffinity", "b"), ("podAntiAffinity", "a")):
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term(ZONE, app="web")]}
        verdicts = reference.ask(pod("asked", affinity={kind: rule}), {"nodes": places, "pods": others})
        assert [name for name, found in verdicts.items() if found] == [refused]
        assert verdicts[refused][0].plugin == "InterPodAffinity"


def test_affinity_to_namespaces(reference: Reference) -> None:
    selector = {**term(ZONE, app="web"), "namespaceSelector": {"matchLabels": {"team": "a"}}}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [selector]}
    asked = pod("asked", affinity={"podAntiAffinity": rule})
    other = bound("other", "a", labels={"app": "web"}, namespace="web")
    cluster = {"nodes": [node("a", labels={ZONE: "1"})], "pods": [other]}
    assert refusals(reference, asked, **cluster, namespaces=[namespace("web")]) == []
    labelled = [namespace("web", labels={"team": "a"})]
    assert refusals(reference, asked, **cluster, namespaces=labelled) == ["InterPodAffinity"]


def test_ended_and_waiting_pods_do_not_count(reference: Reference) -> None:
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term(ZONE, app="web")]}
    asked = pod("asked", affinity={"podAntiAffinity": rule})
    ended = {**bound("ended", "a", labels={"app": "web"}), "status": {"phase": "Succeeded"}}
    waiting = pod("waiting", labels={"app": "web"})
    places = [node("a", labels={ZONE: "1"})]
    assert refusals(reference, asked, nodes=places, pods=[ended, waiting]) == []


def test_an_unknown_claim_refuses_all_nodes(reference: Reference) -> None:
    verdicts = reference.ask(pod("asked", **with_claim("none")), {"nodes": [node("a"), node("b")]})
    for found in verdicts.values():
        assert [(one.plugin, one.stage) for one in found] == [
            ("VolumeRestrictions", "PreFilter"),
            ("VolumeBinding", "PreFilter"),
            ("VolumeZone", "PreFilter"),
            # Its PreFilter accepts what it does not find.
            ("NodeVolumeLimits", "Filter"),
        ]
        assert found[0].message == 'persistentvolumeclaim "none" not found'


def test_a_bound_volume_of_another_node_and_zone(reference: Reference) -> None:
    asked = pod("asked", **with_claim("data"))
    places = [node("a", labels={ZONE: "1", "disk": "a"}), node("b", labels={ZONE: "2", "disk": "b"})]
    wanted = claim("data", volumeName="disk", storageClassName="")
    wanted["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    on_b = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["b"]}]}
    local = volume(
        "disk", "data", local={"path": "/d"}, nodeAffinity={"required": {"nodeSelectorTerms": [on_b]}}
    )
    cluster = {"nodes": places, "pvcs": [wanted], "pvs": [local]}
    verdicts = reference.ask(asked, cluster)
    assert [one.plugin for one in verdicts["a"]] == ["VolumeBinding"]
    assert verdicts["b"] == []
    in_zone = volume("disk", "data", hostPath={"path": "/d"})
    in_zone["metadata"]["labels"] = {ZONE: "2"}
    verdicts = reference.ask(asked, {**cluster, "pvs": [in_zone]})
    assert [one.plugin for one in verdicts["a"]] == ["VolumeZone"]
    assert verdicts["b"] == []


def test_volumes_that_wait_for_their_first_consumer(reference: Reference) -> None:
    asked = pod("asked", **with_claim("data"))
    late: Obj = {
        "metadata": {"name": "late"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    on_b = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["b"]}]}
    free = volume(
        "disk",
        "",
        storageClassName="late",
        local={"path": "/d"},
        nodeAffinity={"required": {"nodeSelectorTerms": [on_b]}},
    )
    del free["spec"]["claimRef"]
    free["status"] = {"phase": "Available"}
    places = [node("a", labels={"disk": "a"}), node("b", labels={"disk": "b"})]
    cluster = {"nodes": places, "pvs": [free], "pvcs": [claim("data", storageClassName="late")]}
    verdicts = reference.ask(asked, {**cluster, "storageclasses": [late]})
    assert [one.plugin for one in verdicts["a"]] == ["VolumeBinding"]
    assert verdicts["b"] == []
    # Any provisioner may make a volume, wherever the topology of its class allows.
    dynamic = {
        **late,
        "provisioner": "disks.example.com",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "disk", "values": ["a"]}]}],
    }
    verdicts = reference.ask(asked, {**cluster, "pvs": [], "storageclasses": [dynamic]})
    assert verdicts["a"] == []
    assert [one.plugin for one in verdicts["b"]] == ["VolumeBinding"]


def test_limits_of_volumes(reference: Reference) -> None:
    def disk(number: int) -> tuple[Obj, Obj]:
        wanted = claim(f"data-{number}", volumeName=f"disk-{number}", storageClassName="")
        wanted["metadata"] |= {
            "uid": f"claim-{number}",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        }
        csi = {"driver": "disks.example.com", "volumeHandle": f"handle-{number}"}
        made = volume(f"disk-{number}", f"data-{number}", csi=csi)
        made["spec"]["claimRef"]["uid"] = f"claim-{number}"
        return wanted, made

    claims, volumes = zip(*(disk(number) for number in range(2)), strict=True)
    drivers = [{"name": "disks.example.com", "nodeID": "a", "allocatable": {"count": 1}}]
    limits = [{"metadata": {"name": "a"}, "spec": {"drivers": drivers}}]
    asked = pod("asked", **with_claim("data-0"))
    cluster = {"nodes": [node("a")], "pvcs": list(claims), "pvs": list(volumes), "csinodes": limits}
    assert refusals(reference, asked, **cluster) == []
    other = bound("other", "a", **with_claim("data-1"))
    assert refusals(reference, asked, **cluster, pods=[other]) == ["NodeVolumeLimits"]
    # The same volume counts once.
    other = bound("other", "a", **with_claim("data-0"))
    assert refusals(reference, asked, **cluster, pods=[other]) == []


def test_a_volume_of_one_pod_only(reference: Reference) -> None:
    wanted = claim("data", volumeName="disk", storageClassName="", accessModes=["ReadWriteOncePod"])
    wanted["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    cluster = {
        "nodes": [node("a"), node("b")],
        "pvcs": [wanted],
        "pvs": [volume("disk", "data", hostPath={"path": "/d"}, accessModes=["ReadWriteOncePod"])],
        "pods": [bound("other", "a", **with_claim("data"))],
    }
    assert refusals(reference, pod("asked", **with_claim("data")), **cluster) == ["VolumeRestrictions"]


def test_the_cluster_of_the_previous_request_remains(reference: Reference) -> None:
    assert refusals(reference, pod("asked"), nodes=[node("a", unschedulable=True)]) == ["NodeUnschedulable"]
    assert [one.plugin for one in reference.ask(pod("next", cpu="99"))["a"]] == [
        "NodeUnschedulable",
        "NodeResourcesFit",
    ]


def test_reservations_do_not_ask_for_resources(reference: Reference) -> None:
    asked = pod("asked", cpu="99", **with_claim("none"))
    verdicts = reference.ask(asked, {"nodes": [node("a", unschedulable=True)]}, phase="reserve")
    assert [one.plugin for one in verdicts["a"]] == ["NodeUnschedulable"]


def test_a_request_that_cannot_be_read_is_an_error(reference: Reference) -> None:
    with pytest.raises(ReferenceError, match="quantities must match"):
        reference.ask(pod("asked", cpu="many"), {"nodes": [node("a")]})
    assert refusals(reference, pod("asked"), nodes=[node("a")]) == []
