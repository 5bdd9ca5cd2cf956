"""One of several replicas schedules; another follows when it ends, and one that lost its Lease ends."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kubernetes.cluster import Cluster, Obj
from tests.kubernetes.cluster.objects import deployment, node, pod
from tests.kubernetes.deployment import NAMESPACE, apply, manifests
from tests.kubernetes.forks import shared_forks
from tests.kubernetes.scheduler_process import SchedulerProcess
from tests.kubernetes.scheduling import ACCOUNT, Scheduled, free_port, scheduling

LEASE = "yunikorn-scheduler"
LEADER = "yunikorn.apache.org/leader"
WAITS = "waits"
"""End of the line of the log with which a standby reports who leads."""


@contextmanager
def standby(cluster: Cluster, folder: Path, *more: str) -> Iterator[Scheduled]:
    """Run a second replica, with the credentials of the first, until it waits for the Lease."""
    address = f"127.0.0.1:{free_port()}"
    given = [
        "--kubeconfig",
        str(folder / f"{ACCOUNT}.kubeconfig"),
        "--namespace",
        NAMESPACE,
        "--rest",
        address,
        *more,
    ]
    with SchedulerProcess(cluster, *given, leader_election=True, start=shared_forks().start) as process:
        process.wait_for(WAITS)
        yield Scheduled(cluster.kubectl, process, f"http://{address}")


def status(replica: Scheduled, path: str) -> tuple[int, str]:
    """Return status and text of the answer to a probe."""
    try:
        with urllib.request.urlopen(replica.address + path, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def lease(cluster: Cluster) -> Obj:
    """Return the content of the Lease."""
    found: Obj = cluster.kubectl.get("Lease", LEASE, NAMESPACE)["spec"]
    return found


def test_a_standby_is_not_ready_and_takes_over_after_a_kill(cluster: Cluster, tmp_path: Path) -> None:
    with scheduling(cluster, tmp_path, leader_election=True) as first:
        first.make_nodes(node("only", cpu="3"))
        first.create(deployment("web", replicas=2))
        before = first.running(2)
        with standby(cluster, tmp_path) as second:
            assert status(first, "/readyz")[0] == 200
            code, reason = status(second, "/readyz")
            assert code == 503
            assert "lead" in reason
            assert status(second, "/livez")[0] == 200
            held = lease(cluster)
            first.scheduler.kill()
            second.create(pod("next"))
            after = second.running(3)
            assert after.items() >= before.items()
            assert status(second, "/readyz")[0] == 200
            taken = lease(cluster)
            assert taken["holderIdentity"] != held["holderIdentity"]
            assert taken["leaseTransitions"] == held["leaseTransitions"] + 1


def marked(cluster: Cluster) -> set[str]:
    """Return the names of the pods with the label of the leader."""
    return {
        one["metadata"]["name"]
        for one in cluster.kubectl.list("Pod", NAMESPACE)
        if LEADER in (one["metadata"].get("labels") or {})
    }


def test_a_leader_that_ends_in_order_gives_the_lease_and_its_label_back(
    cluster: Cluster, tmp_path: Path
) -> None:
    apply(cluster.kubectl, [one for one in manifests() if one["kind"] in ("Namespace", "ServiceAccount")])
    # Earlier processes of both pods were killed while they led.
    for name in ("one", "two"):
        left = {LEADER: "true"}
        cluster.kubectl.create(
            pod(name, NAMESPACE, labels=left, scheduler="none", serviceAccountName=ACCOUNT)
        )
    with scheduling(cluster, tmp_path, "--pod", "one", leader_election=True) as first:
        first.make_nodes(node("only"))
        with standby(cluster, tmp_path, "--pod", "two") as second:
            cluster.kubectl.wait("Pod", lambda _: marked(cluster) == {"one"}, NAMESPACE)
            # A standby is ready where services select the label, so that a rollout goes on.
            assert status(second, "/readyz")[0] == 200
            assert first.scheduler.stop() == 0
            assert "one" not in marked(cluster)
            second.scheduler.wait_until_at_work()
            second.create(pod("next"))
            assert second.node_of("next") == "only"
            cluster.kubectl.wait("Pod", lambda _: marked(cluster) == {"two"}, NAMESPACE)


def test_a_leader_whose_lease_is_taken_ends(cluster: Cluster, tmp_path: Path) -> None:
    with scheduling(cluster, tmp_path, leader_election=True) as first:
        first.make_nodes(node("only"))
        first.create(pod("one"))
        first.running(1)
        # A replica that could not see the renewals has the Lease now.
        cluster.kubectl.patch("Lease", LEASE, {"spec": {"holderIdentity": "another"}}, NAMESPACE)
        assert first.scheduler.wait() == 1
        assert "another" in first.scheduler.log
        # What was placed stays, and nothing more is.
        first.running(1)
        assert lease(cluster)["holderIdentity"] == "another"
