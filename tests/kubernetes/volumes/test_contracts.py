"""The contracts of `yunikorn_testing` for the four predicates of volumes."""

from __future__ import annotations

from collections.abc import Sequence

from tests.kubernetes.volumes.kit import Cluster
from tests.kubernetes.volumes.objects import (
    MANY,
    ZONE,
    claim,
    csi_node,
    host,
    on_label,
    pod,
    storage_class,
    volume,
)
from yunikorn_kubernetes.names import (
    NODE_FREE_VOLUMES,
    NODE_VOLUME_LIMITS,
    TAG_VOLUME_CANDIDATES,
    TAG_VOLUMES,
)
from yunikorn_kubernetes.predicates.node_volume_limits import NodeVolumeLimits
from yunikorn_kubernetes.predicates.volume_binding import VolumeBinding
from yunikorn_kubernetes.predicates.volume_restrictions import VolumeRestrictions
from yunikorn_kubernetes.predicates.volume_zone import VolumeZone
from yunikorn_testing import PredicateContract
from yunikorn_testing.samples import AskSample, NodeSample, ask, node

GCE = {"gcePersistentDisk": {"pdName": "a"}}


def lab() -> Cluster:
    """Return a cluster with pods that use volumes of all kinds."""
    cluster = Cluster(
        storage_class(),
        storage_class(
            "fast",
            "disk.csi",
            allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}],
        ),
        host("n1", zone="a"),
        host("n2", zone="b"),
        host("n3"),
        csi_node("n1", disk_csi=3),
        csi_node("n2", disk_csi=1),
    )
    for number, name in enumerate(["n1", "n1", "n2"]):
        cluster.add(volume(f"local{number}", host=name))
    cluster.add(volume("net", modes=[MANY, "ReadWriteOnce"], nodeAffinity=on_label(ZONE, "a", "b")))
    cluster.add(volume("disk", csi={"driver": "disk.csi", "volumeHandle": "d"}, labels={ZONE: "a"}))
    cluster.add(claim("bound", bound="disk", modes=["ReadWriteOncePod"]), claim("made", storage_class="fast"))
    cluster.add(claim("shared", modes=[MANY]), *(claim(f"c{number}") for number in range(4)))
    pods = [
        pod("bound", "bound"),
        pod("made", "made"),
        pod("sharing", "shared"),
        pod("shared", "shared", "c3"),
        pod("one", "c0"),
        pod("two", "c1", "c2"),
        pod("inline", volumes=[GCE]),
    ]
    cluster.add(*pods)
    return cluster


class VolumeContract(PredicateContract):
    """Asks and nodes of the contracts below."""

    def asks(self) -> Sequence[AskSample]:
        """Return pods with and without volumes, and pods whose tags cannot be read."""
        cluster = lab()
        names = ("bound", "made", "sharing", "shared", "one", "two", "inline")
        return [
            ask("none"),
            *(cluster.ask(name) for name in names),
            ask("broken", tags={TAG_VOLUMES: '{"claims": [{}]}'}),
            ask("odd", tags={**cluster.ask("one").tags, TAG_VOLUME_CANDIDATES: "?"}),
        ]

    def requests(self) -> Sequence[AskSample]:
        """Return the asks whose tasks enter the books."""
        return self.asks()

    def nodes(self) -> Sequence[NodeSample]:
        """Return nodes with and without volumes, and nodes whose attributes cannot be read."""
        cluster = lab()
        return [
            *(cluster.node(name) for name in ("n1", "n2", "n3")),
            node("broken", {NODE_FREE_VOLUMES: "?", NODE_VOLUME_LIMITS: "[]"}),
            node("plain"),
        ]

    def hosts(self) -> Sequence[NodeSample]:
        """Return the nodes in the books."""
        return self.nodes()


class TestVolumeBinding(VolumeContract):
    predicate = VolumeBinding()


class TestVolumeZone(VolumeContract):
    predicate = VolumeZone()


class TestVolumeRestrictions(VolumeContract):
    predicate = VolumeRestrictions()


class TestNodeVolumeLimits(VolumeContract):
    predicate = NodeVolumeLimits()


del VolumeContract, PredicateContract
