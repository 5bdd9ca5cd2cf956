"""Comparison of our decisions about PodGroups with those of kube-scheduler, each in a real cluster.

`python -m tests.kubernetes.reference.gang_cycle` draws gangs and prints how many of them each scheduler
places. kube-scheduler decides several times, because ties and the order of its placements are random.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.kubernetes.cluster import Cluster, Kubectl, Obj
from tests.kubernetes.cluster.cluster import FEATURES, SCHEDULER
from tests.kubernetes.cluster.objects import namespace, node_is_ready, node_of
from tests.kubernetes.reference.gang_cases import GROUP, RACK, GangCase, any_gang, tight_gang
from tests.kubernetes.scheduling import QUEUES, Scheduled, scheduling

RACKS = QUEUES.replace("    queues:", f"    topology: [{RACK}]\n    queues:")
OURS, THEIRS = "yunikorn", "default-scheduler"
WRITERS = 4


@dataclass
class Verdicts:
    """Decisions about gangs."""

    ours: dict[str, dict[int, str]] = field(default_factory=dict)
    """Nodes of the members by their number, by gang."""
    theirs: dict[str, list[bool]] = field(default_factory=dict)
    """Results of each run of kube-scheduler, by gang."""

    def can(self, case: GangCase) -> bool:
        """Return True if kube-scheduler has placed a gang in one of its runs."""
        return any(self.theirs[case.name])

    def lacking(self, cases: Iterable[GangCase]) -> list[GangCase]:
        """Return the gangs that kube-scheduler has placed, and we have not."""
        return [case for case in cases if self.can(case) and not self.ours[case.name]]

    def gained(self, cases: Iterable[GangCase]) -> list[GangCase]:
        """Return the gangs that we have placed, and kube-scheduler in none of its runs."""
        return [case for case in cases if self.ours[case.name] and not self.can(case)]


def draw(
    count: int, seed: int, kind: Callable[[str, random.Random], GangCase], prefix: str
) -> list[GangCase]:
    """Return gangs of a kind."""
    return [kind(f"{prefix}{number}", random.Random(f"{seed} {number}")) for number in range(count)]


def prepare(kubectl: Kubectl, cases: Sequence[GangCase]) -> None:
    """Make the nodes, and the pods that run there."""
    made = [one for case in cases for one in case.nodes()]
    create(kubectl, made)
    names = {one["metadata"]["name"] for one in made}
    kubectl.wait("Node", lambda found: sum(map(node_is_ready, found)) == len(names))
    create(kubectl, [one for case in cases for one in case.fillers()])


def create(kubectl: Kubectl, objects: Sequence[Obj]) -> None:
    """Create objects with several connections, in any order."""
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(kubectl.create, objects))


def submit(kubectl: Kubectl, cases: Sequence[GangCase], place: str, scheduler: str) -> None:
    """Make the pods of each gang in their order, then its PodGroup, so that all are decided about at once."""
    kubectl.create(namespace(place))
    kubectl.wait_for("ServiceAccount", "default", lambda _: True, place)

    def make(case: GangCase) -> None:
        kubectl.create_all([*case.pods(place, scheduler), case.group(place)])

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(make, cases))


def status(group: Obj) -> str:
    """Return the status of the condition of a PodGroup; empty before the first decision."""
    conditions = group.get("status", {}).get("conditions") or ()
    return next((one["status"] for one in conditions if one["type"] == "PodGroupScheduled"), "")


def await_decisions(kubectl: Kubectl, place: str, wanted: set[str]) -> dict[str, bool]:
    """Wait for a decision about each gang, and for the placement of the wanted ones; return who is placed.

    A wanted gang without a placement after the time of a wait is none that is placed.
    """
    seen: dict[str, str] = {}

    def decided(groups: list[Obj]) -> bool:
        seen.update((one["metadata"]["name"], status(one)) for one in groups)
        return all(seen.values()) and all(seen[name] == "True" for name in wanted)

    try:
        kubectl.wait("PodGroup", decided, place)
    except AssertionError:
        undecided = [name for name, value in seen.items() if not value]
        assert not undecided, f"no decision about {undecided}"
    return {name: value == "True" for name, value in seen.items()}


def clear(kubectl: Kubectl, place: str) -> None:
    """Delete the gangs of a run, and wait until their pods are gone."""
    kubectl.delete_all("Pod", place)
    kubectl.delete_all("PodGroup", place)
    kubectl.wait("Pod", lambda found: not found, place)


def nodes_of(kubectl: Kubectl, case: GangCase, place: str, least: int) -> dict[int, str]:
    """Wait until enough members of a gang are bound; return their nodes by number."""

    def bound(pods: list[Obj]) -> dict[int, str] | None:
        found = {int(one["metadata"]["name"].split("-")[1]): node_of(one) for one in pods if node_of(one)}
        return found if len(found) >= least else None

    labels = f"{GROUP}={case.name}"
    return kubectl.wait("Pod", bound, place, labels=labels)


def start_reference(cluster: Cluster) -> None:
    """Start kube-scheduler with the feature gates of PodGroups."""
    cluster.start_scheduler(FEATURES)


def decide(cluster: Cluster, folder: Path, cases: Sequence[GangCase], runs: int = 5) -> Verdicts:
    """Let kube-scheduler decide about gangs several times, then us; assert that our placements are valid."""
    kubectl, found = cluster.kubectl, Verdicts()
    prepare(kubectl, cases)
    start_reference(cluster)
    for run in range(runs):
        place = f"theirs-{run}"
        submit(kubectl, cases, place, THEIRS)
        for name, is_placed in await_decisions(kubectl, place, set()).items():
            found.theirs.setdefault(name, []).append(is_placed)
        clear(kubectl, place)
    cluster.kill(SCHEDULER)
    with scheduling(cluster, folder, queues=RACKS) as scheduled:
        _decide_ours(scheduled, cases, found)
    return found


def _decide_ours(scheduled: Scheduled, cases: Sequence[GangCase], found: Verdicts) -> None:
    kubectl, place = scheduled.kubectl, "ours"
    submit(kubectl, cases, place, OURS)
    wanted = {case.name for case in cases if found.can(case) or case.is_feasible}
    placed = await_decisions(kubectl, place, wanted)
    for case in cases:
        found.ours[case.name] = nodes_of(kubectl, case, place, case.least) if placed[case.name] else {}
        faults = case.faults(found.ours[case.name])
        assert not faults, f"{case}: {found.ours[case.name]}: {faults}"


def replace_members(kubectl: Kubectl, cases: Sequence[GangCase], place: str, scheduler: str) -> None:
    """Let one member of each running gang succeed and another one be replaced; wait for a node of each."""
    for case in cases:
        name = f"{case.name}-0"
        kubectl.patch("Pod", name, {"status": {"phase": "Succeeded"}}, place, subresource="status")
        kubectl.delete("Pod", f"{case.name}-1", place)
    gone = {f"{case.name}-1" for case in cases}
    kubectl.wait("Pod", lambda found: gone.isdisjoint(map(_name, found)), place)
    again = [case.pod(1, place, scheduler, "-again") for case in cases]
    create(kubectl, again)
    names = {one["metadata"]["name"] for one in again}
    kubectl.wait("Pod", lambda found: names <= {_name(one) for one in found if node_of(one)}, place)


def _name(one: Obj) -> str:
    return str(one["metadata"]["name"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw gangs and print the numbers; return 1 if kube-scheduler places a gang that we do not place."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--gangs", type=int, default=100, help="number of gangs of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5, help="number of decisions of kube-scheduler")
    given = parser.parse_args(arguments)
    kinds = {"any": any_gang, "tight": tight_gang}
    drawn = {name: draw(given.gangs, given.seed, kind, name) for name, kind in kinds.items()}
    with Cluster() as cluster, tempfile.TemporaryDirectory() as folder:
        found = decide(
            cluster, Path(folder), [case for cases in drawn.values() for case in cases], given.runs
        )
    is_bad = False
    for name, cases in drawn.items():
        lacking = found.lacking(cases)
        is_bad = is_bad or bool(lacking)
        numbers = {
            "gangs": len(cases),
            "placed by kube-scheduler in some run": sum(map(found.can, cases)),
            "in every run": sum(all(found.theirs[case.name]) for case in cases),
            "placed by us": sum(bool(found.ours[case.name]) for case in cases),
            "only by us": len(found.gained(cases)),
            "only by kube-scheduler": [str(case) for case in lacking],
            "known to fit, and not placed by us": [
                str(case) for case in cases if case.is_feasible and not found.ours[case.name]
            ],
        }
        print(json.dumps({name: numbers}, indent=1))
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main())
