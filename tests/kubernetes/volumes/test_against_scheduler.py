"""The four predicates of volumes agree with the filter plugins of kube-scheduler on random clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tests.kubernetes.predicates.test_against_kube_scheduler import OF_VOLUMES
from tests.kubernetes.reference import Reference, ReferenceError, Refusal, Verdicts
from tests.kubernetes.volumes.kit import Cluster
from tests.kubernetes.volumes.random_clusters import Obj, RandomCluster
from yunikorn_kubernetes.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
)
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence

PLUGINS = {
    "VolumeRestrictions": "volume-restrictions",
    "NodeVolumeLimits": "node-volume-limits",
    "VolumeBinding": "volume-binding",
    "VolumeZone": "volume-zone",
}
STRUCTS = {
    "nodes": Node,
    "pvs": PersistentVolume,
    "pvcs": PersistentVolumeClaim,
    "storageclasses": StorageClass,
    "csinodes": CSINode,
    "csidrivers": CSIDriver,
    "csistoragecapacities": CSIStorageCapacity,
    "volumeattachments": VolumeAttachment,
}
OPEN = {RefusalSentence.NO_VOLUME, RefusalSentence.NO_STORAGE}
"""Sentences for claims without a volume."""
CLUSTERS = 100


def loaded(made: RandomCluster) -> Cluster:
    """Return the cluster as the shim sees it, with the books of the running pods."""
    cluster = Cluster()
    for kind, struct in STRUCTS.items():
        cluster.add(*(msgspec.convert(one, struct) for one in made.cluster[kind]))
    cluster.add(*(msgspec.convert(one, Pod) for one in made.running))
    for one in made.running:
        cluster.place(one["metadata"]["uid"], one["spec"]["nodeName"])
    return cluster


def refusing(cluster: Cluster, pod: Obj, node: str) -> dict[str, str]:
    """Return the refusals of a node for a pod, by predicate."""
    ask, at = cluster.ask(pod["metadata"]["uid"]), cluster.node(node)
    found = {name: one.check(ask, at) for name, one in cluster.predicates.items()}
    return {name: reason for name, reason in found.items() if reason is not None}


def ask(reference: Reference, pod: Obj, cluster: Mapping[str, Sequence[Obj]] | None) -> Verdicts:
    """Return the verdicts about a pod; a plugin that fails because of a foreign claim refuses all nodes."""
    try:
        return reference.ask(pod, cluster)
    except ReferenceError as error:
        if "was not created for pod" not in str(error):
            raise
        refusal = Refusal("VolumeBinding", str(error), "Filter", False)
        return dict.fromkeys(("n1", "n2", "n3"), (refusal,))


def compare(
    cluster: Cluster, pod: Obj, node: str, verdict: Sequence[Refusal], counts: Counter[str], where: str
) -> None:
    """Compare the answers about a pod on a node, and count them by kind."""
    messages = {PLUGINS[one.plugin]: one.message for one in verdict if one.plugin in PLUGINS}
    theirs = set(messages)
    ours = refusing(cluster, pod, node)
    shown = f"{where}, {pod['metadata']['name']} on {node}: {ours} and {verdict}"
    if cluster.problems(pod["metadata"]["uid"]):
        counts["problem"] += 1
        assert theirs, shown
        assert "volume-binding" in ours, shown
    else:
        assert set(ours) == theirs, shown
        for name, reason in ours.items():
            sentence = reason.partition(": ")[0]
            counts[sentence] += 1
            # VolumeBinding names one of the claims for which there is no volume, in an order of its own.
            several = OPEN if len(pod["spec"].get("volumes", ())) > 1 else set()
            said = set(messages[name].split(", "))
            assert sentence in (said | several if said & several else said), shown
        counts["refused" if ours else "accepted"] += 1
        counts.update(theirs)


def test_verdicts_agree_on_random_clusters(reference: Reference) -> None:
    """Compare feasibility for all pairs, and the refusing plugins for pods whose claims have no problem."""
    counts: Counter[str] = Counter()
    for seed in range(CLUSTERS):
        made = RandomCluster(seed)
        cluster = loaded(made)
        for number, pod in enumerate(made.asked):
            cluster.add(msgspec.convert(pod, Pod))
            verdicts = ask(reference, pod, made.cluster if number == 0 else None)
            for node in ("n1", "n2", "n3"):
                compare(cluster, pod, node, verdicts[node], counts, f"seed {seed}")
            cluster.volumes.remove_pod(pod["metadata"]["uid"])
    pairs = counts["accepted"] + counts["refused"]
    assert pairs >= 500, counts
    assert min(counts["accepted"], *(counts[name] for name in PLUGINS.values())) >= 20, counts
    assert all(counts[sentence] for sentence in OF_VOLUMES), counts


def test_a_pod_whose_claims_compete_is_placed_where_a_choice_one_by_one_fails(reference: Reference) -> None:
    """Check the only known difference, see docs/decisions/archive/0126-matching-of-volumes.md."""
    made = RandomCluster(0)
    made.cluster["storageclasses"][:] = [
        {
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    ]
    for kind in ("pods", "pvs", "pvcs"):
        made.cluster[kind].clear()
    made.running.clear()
    for name, size, disk in (("small", "5Gi", "ssd"), ("large", "6Gi", "hdd")):
        spec: dict[str, Any] = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
        }
        labels = {"disk": disk}
        made.cluster["pvs"].append(
            {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"phase": "Available"}}
        )
    for name, selector in (("any", {}), ("ssd", {"selector": {"matchLabels": {"disk": "ssd"}}})):
        spec = {"resources": {"requests": {"storage": "5Gi"}}, "accessModes": ["ReadWriteOnce"]}
        spec |= {"storageClassName": "local", **selector}
        meta = {"name": name, "namespace": "default", "uid": name}
        made.cluster["pvcs"].append({"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("any", "ssd")]
    pod = {"metadata": {"name": "job", "namespace": "default", "uid": "job"}, "spec": {"volumes": volumes}}
    cluster = loaded(made)
    cluster.add(msgspec.convert(pod, Pod))
    assert {one.plugin for one in reference.ask(pod, made.cluster)["n1"]} == {"VolumeBinding"}
    assert refusing(cluster, pod, "n1") == {}
    assert cluster.volumes.assume("job", "n1").bindings == {"default/any": "large", "default/ssd": "small"}
