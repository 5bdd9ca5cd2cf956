"""Policies of others decide in the cluster: a package that is installed, named in the ConfigMap.

A deployment gets it as an image `FROM yunikorn` with `RUN pip install yunikorn-rack-spread`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.cluster.objects import deployment, node
from tests.kubernetes.scheduling import QUEUES, scheduling

EXAMPLES = Path(__file__).parents[3] / "examples"
RACKS = {"a0": "a", "a1": "a", "b0": "b", "b1": "b"}
SPREAD = QUEUES.replace(
    "    queues:", "    predicates: [{name: rack-spread, limits: {rack: 2}}]\n    queues:"
)


def test_an_installed_policy_decides_as_the_config_map_says(
    cluster: Cluster, tmp_path: Path, install_package: Callable[[Path], Path]
) -> None:
    package = install_package(EXAMPLES / "yunikorn-rack-spread")
    with scheduling(cluster, tmp_path, installed=package) as running:
        running.make_nodes(*(node(name, labels={"rack": rack}) for name, rack in RACKS.items()))
        with running.queues(SPREAD):
            running.create(deployment("web", replicas=6, application="limited"))
            placed = running.running(4)
            assert Counter(RACKS[where] for where in placed.values()) == {"a": 2, "b": 2}
            waiting = set(running.wait_pods(lambda pods: len(pods) == 6)) - set(placed)
            assert "rack" in running.pending(min(waiting))
            running.make_nodes(node("c0", labels={"rack": "c"}))
            running.running(6)
        # Without the policy, the predicates of Kubernetes are all that counts.
        running.kubectl.patch("Deployment", "web", {"spec": {"replicas": 12}})
        running.running(12)
