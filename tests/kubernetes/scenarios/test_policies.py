"""Policies of others decide in the cluster: from an installed package, or from a file beside a configuration.

A deployment gets a package with an image `FROM yunikorn` and `RUN pip install yunikorn-rack-spread`, and
files with a volume.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.cluster.objects import deployment, node, pod
from tests.kubernetes.scheduling import QUEUES, scheduling

EXAMPLES = Path(__file__).parents[3] / "examples"
RACKS = {"a0": "a", "a1": "a", "b0": "b", "b1": "b"}
SPREAD = QUEUES.replace(
    "    queues:", "    predicates: [{name: rack-spread, limits: {rack: 2}}]\n    queues:"
)
FAULTY = """
from yunikorn.api import Ask, Node, Predicate, hookimpl


class Faulty(Predicate):
    name = "faulty"

    def check(self, ask: Ask, node: Node) -> str | None:
        match ask.tags.get("kubernetes.io/label/misdeed"):
            case "raises":
                raise ValueError("no such shelf")
            case "exits":
                raise SystemExit(0)
            case "interrupts":
                raise KeyboardInterrupt
            case "refuses":
                return f"{node.id} is not on the shelf"
        return None


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    return [Faulty]
"""
"""Policy with defects that depend on a label of the pod."""


def test_an_installed_policy_decides_as_the_config_map_says(
    cluster: Cluster, tmp_path: Path, install_packages: Callable[..., Path]
) -> None:
    package = install_packages(EXAMPLES / "yunikorn-rack-spread")
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


def mount(folder: Path, version: int, files: Mapping[str, str]) -> None:
    """Show files in a folder as the kubelet does, which replaces all of them at once."""
    (folder / f"..{version}").mkdir(parents=True)
    for name, text in files.items():
        (folder / f"..{version}" / name).write_text(text, "utf-8")
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    (folder / "..new").symlink_to(f"..{version}")
    (folder / "..new").replace(folder / "..data")


def test_a_policy_from_a_volume_that_fails_stops_only_its_own_pods(cluster: Cluster, tmp_path: Path) -> None:
    named = SPREAD.replace("{name: rack-spread, limits: {rack: 2}}", "faulty")
    queues = f"plugins: {{load: [./faulty.py]}}\n{named}"
    volume = tmp_path / "policies"
    mount(volume, 1, {"queues.yaml": queues, "faulty.py": FAULTY})
    given = "--config", str(volume / "queues.yaml")
    with scheduling(cluster, tmp_path, *given, config_maps=False) as running:
        running.make_nodes(node("only", cpu="8"))
        misdeeds = ("refuses", "raises", "exits", "interrupts")
        running.create(*(pod(one, application=one, labels={"misdeed": one}) for one in misdeeds))
        running.create(pod("plain"))
        assert running.node_of("plain") == "only"
        assert "only is not on the shelf" in running.pending("refuses")
        for misdeed in misdeeds[1:]:
            assert "faulty" in running.pending(misdeed)
        assert "no such shelf" in running.scheduler.log
        # A repaired version is used without a restart.
        repaired = FAULTY.replace("kubernetes.io/label/misdeed", "nothing")
        mount(volume, 2, {"queues.yaml": queues, "faulty.py": repaired})
        running.running(5)
