"""The process of the scheduler: its end by a signal, its successor, and clusters without ConfigMaps."""

from __future__ import annotations

from pathlib import Path

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.cluster.objects import config_map, deployment, node, pod
from tests.kubernetes.deployment import NAMESPACE
from tests.kubernetes.scheduling import CONFIGS, QUEUES, scheduling


def test_a_signal_ends_the_scheduler_and_its_successor_continues(cluster: Cluster, tmp_path: Path) -> None:
    with scheduling(cluster, tmp_path, leader_election=True, is_forked=False) as first:
        first.make_nodes(node("only", cpu="2"))
        first.create(deployment("web", replicas=3))
        before = first.running(2)
        assert first.scheduler.stop() == 0
    with scheduling(cluster, tmp_path, leader_election=True) as second:
        assert second.running(2) == before
        second.make_nodes(node("more"))
        assert second.running(3).items() > before.items()


def test_without_config_maps_pods_use_a_queue_of_their_namespace(cluster: Cluster, tmp_path: Path) -> None:
    with scheduling(cluster, tmp_path, config_maps=False) as running:
        assert not running.kubectl.find("ConfigMap", CONFIGS, NAMESPACE)
        running.make_nodes(node("only"))
        running.create(pod("first"))
        running.running(1)
        root = running.rest("/ws/v1/partition/default/queues")
        assert [one["queuename"] for one in root["children"]] == ["root.default"]
        running.create(config_map(CONFIGS, {"queues.yaml": QUEUES}, NAMESPACE))
        running.events("ConfigurationUpdated", regarding=CONFIGS, namespace=NAMESPACE)
