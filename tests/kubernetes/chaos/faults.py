"""Faults of a loaded cluster: the processes that fail, when they do, and what must hold afterwards."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.kubernetes.chaos.claim_rules import ClaimRules, Left
from tests.kubernetes.chaos.disorder import Disorder
from tests.kubernetes.chaos.invariants import Invariants, cause, is_ended, is_placeholder
from tests.kubernetes.chaos.load import NODES, QUEUES, QUOTAS, Load, cluster_nodes, foreign_pods
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.cluster.cluster import API_SERVER, CONTROLLERS, KUBELETS
from tests.kubernetes.cluster.objects import config_map, node_is_ready, node_of
from tests.kubernetes.deployment import NAMESPACE, apply, kubeconfig_of, manifests
from tests.kubernetes.forks import Forks
from tests.kubernetes.scheduler_process import SchedulerProcess, environment
from tests.kubernetes.scheduling import ACCOUNT, CONFIGS

MOMENTS = (
    *(["bound"], ["reserved"], ["freed"], ["placeholder"], ["deleting"], ["ended"], ["added"]),
    *(["marked"], ["allocated"], ["returned"]),
)
"""Kinds of changes after which the scheduler is killed."""
KILL = "kill"
FAULTS = (
    "restart-scheduler",
    "restart-server",
    "kill-server",
    "boot",
    "compaction",
    "outage",
    "disorder",
    "stop-leader",
    "kill-leader",
    "freeze-leader",
)
"""Faults beside the kills of a scheduler that runs alone."""
LEASE = "yunikorn-scheduler"
PROGRESS = 120.0
"""Seconds within which pods are bound again after a fault; far more than needed."""
DISORDERED = 10
"""Number of times that three more pods are bound while events are disordered."""


class Chaos:
    """A cluster under load, whose parts are made to fail.

    Attributes:
        counts: Number of faults by kind, and of kills before the scheduler was at work (`early`).
        starts: Seconds from the start of each scheduler to its first decisions.
    """

    def __init__(
        self,
        cluster: Cluster,
        kubeconfig: Path,
        invariants: Invariants,
        claims: ClaimRules,
        load: Load,
        forks: Forks,
        seed: int,
        *,
        outage: float,
        report: Callable[[str], object],
    ) -> None:
        """Create it for a cluster under load; `outage` is in seconds, `report` is called with each event."""
        self._cluster, self._kubeconfig, self._outage, self._report = cluster, kubeconfig, outage, report
        self._invariants, self._claims = invariants, claims
        self._load, self._forks, self._seed = load, forks, seed
        self._random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.starts: list[float] = []
        self._left = Left({}, {})
        self._recent: deque[SchedulerProcess] = deque(maxlen=3)
        """The latest processes, for their logs."""

    @property
    def changes(self) -> dict[str, int]:
        """Number of changes of pods by kind."""
        return dict(self._invariants.counts)

    # -- processes ------------------------------------------------------------------------------------

    def _scheduler(
        self,
        *,
        leader_election: bool | None = False,
        kubeconfig: Path | None = None,
    ) -> SchedulerProcess:
        given = ["--kubeconfig", str(kubeconfig or self._kubeconfig), "--namespace", NAMESPACE]
        start = self._forks.start
        made = SchedulerProcess(self._cluster, *given, leader_election=leader_election, start=start)
        self._recent.append(made)
        return made

    @contextmanager
    def _scheduling(self, kubeconfig: Path | None = None) -> Iterator[SchedulerProcess]:
        began = time.monotonic()
        with self._scheduler(kubeconfig=kubeconfig) as scheduler:
            scheduler.wait_until_at_work()
            self.starts.append(time.monotonic() - began)
            self._claims.until_recovered(self._left)
            yield scheduler
            _check_log(scheduler)

    def _progress(self) -> None:
        """Check the cluster, which must bind pods again."""
        found = self._invariants.wait_for(["bound", "reserved"], 3, PROGRESS)
        assert found, f"no pod was bound after a fault:\n{self._invariants.describe()}"
        self._invariants.check()

    # -- faults ---------------------------------------------------------------------------------------

    def run(self, faults: Sequence[str]) -> None:
        """Let these faults happen one after the other, with checks after each."""
        for number, name in enumerate(faults, 1):
            began = time.monotonic()
            try:
                note = self._kill() if name == KILL else self._others()[name]()
                self._invariants.check()
                self._claims.check()
            except AssertionError as error:
                logs = "\n\n".join(scheduler.log for scheduler in self._recent)
                raise AssertionError(f"in fault {number} ({name}): {error}\n{logs}") from error
            self.counts[name] += 1
            took = time.monotonic() - began
            live = self._invariants.live
            self._report(f"{number}/{len(faults)} {name}: {note} ({took:.1f} s, {live} pods)")

    def _others(self) -> dict[str, Callable[[], str]]:
        return {
            "restart-server": lambda: self._server_fault(self._cluster.restart_api_server),
            "kill-server": lambda: self._server_fault(lambda: self._cluster.restart_api_server(kill=True)),
            "compaction": lambda: self._server_fault(self._cluster.expire_watches),
            "outage": lambda: self._server_fault(self._stay_away),
            "disorder": self._disorder,
            "restart-scheduler": self._restart,
            "boot": self._boot,
            "stop-leader": lambda: self._leaders(_stop),
            "kill-leader": lambda: self._leaders(SchedulerProcess.kill),
            "freeze-leader": lambda: self._leaders(SchedulerProcess.freeze),
        }

    def _kill(self) -> str:
        """Kill a scheduler at a moment that changes of pods, lines of its log, or the time determine."""
        began = time.monotonic()
        with self._scheduler() as scheduler:
            if self._random.random() < 0.15:
                self.counts["early"] += 1
                lines = self._random.randint(1, 4)
                scheduler.wait_for_lines(lines, 10)
                threading.Event().wait(self._random.uniform(0, 0.5))
                moment = f"after {lines} lines of the log"
            else:
                scheduler.wait_until_at_work()
                self.starts.append(time.monotonic() - began)
                self._claims.until_recovered(self._left)
                kinds, count = self._random.choice(MOMENTS), self._random.randint(1, 10)
                self._invariants.wait_for(kinds, count, self._random.uniform(0.2, 3))
                moment = f"after {count} {kinds[0]}"
            _check_log(scheduler)
            scheduler.kill()
        self._left = self._claims.left()
        return moment

    def _server_fault(self, fault: Callable[[], object]) -> str:
        with self._scheduling():
            self._invariants.wait_for(["bound"], self._random.randint(1, 10), 3)
            fault()
            self._replace_clients()
            self._progress()
        return "goes on"

    def _replace_clients(self) -> None:
        """Start controllers and kubelets again, which would call the API server only every half a minute."""
        for name in (CONTROLLERS, KUBELETS):
            self._cluster.kill(name)
        self._cluster.start()

    def _stay_away(self) -> None:
        """Stop the API server for a while, in which etcd drops all history."""
        self._cluster.stop_api_server()
        self._cluster.compact()
        threading.Event().wait(self._outage)
        self._cluster.start_api_server()

    def _disorder(self) -> str:
        with Disorder(self._cluster, self._seed) as disorder:
            kubeconfig = disorder.kubeconfig(self._kubeconfig, self._kubeconfig.with_suffix(".disorder"))
            with self._scheduling(kubeconfig):
                for _ in range(DISORDERED):
                    self._progress()
            self.counts.update({f"disorder: {kind}": count for kind, count in disorder.counts.items()})
            return str(dict(disorder.counts))

    def _restart(self) -> str:
        """Stop a scheduler in order, with bindings under way; the next one continues."""
        with self._scheduling() as scheduler:
            self._invariants.wait_for(["bound"], self._random.randint(1, 10), 3)
            _stop(scheduler)
        with self._scheduling():
            self._progress()
        return "goes on"

    def _boot(self) -> str:
        """Kill scheduler and API server, and start both at once: the second refuses everything at first."""
        with self._scheduling():
            self._invariants.wait_for(["bound"], self._random.randint(1, 10), 3)
            self._cluster.kill(API_SERVER)
        with self._scheduler(leader_election=None) as scheduler:
            self._cluster.start_api_server()
            self._replace_clients()
            scheduler.wait_until_at_work()
            assert "no leader election" not in scheduler.log, scheduler.log
            self._progress()
            _check_log(scheduler)
            _stop(scheduler)
        return "goes on"

    def _leaders(self, lose: Callable[[SchedulerProcess], object]) -> str:
        """Stop, kill or freeze the leader of two replicas; a frozen one must not write when it continues.

        Unless the leader gave the Lease back, the standby must not take it before its duration is over.
        """
        began = time.monotonic()
        with ExitStack() as stack:
            proxy = stack.enter_context(Disorder(self._cluster, self._seed, disturbs=False))
            through = proxy.kubeconfig(self._kubeconfig, self._kubeconfig.with_suffix(".proxy"))
            leader = stack.enter_context(self._scheduler(leader_election=True, kubeconfig=through))
            leader.wait_until_at_work()
            standby = stack.enter_context(self._scheduler(leader_election=True))
            standby.wait_for(" waits")
            self._invariants.wait_for(["bound"], self._random.randint(1, 5), 5)
            lose(leader)
            lost, written = time.monotonic(), self._lease()
            standby.wait_until_at_work()
            took, lease = time.monotonic() - lost, self._lease()
            assert lease["leaseTransitions"] == written["leaseTransitions"] + 1
            if lose is not _stop:
                gap = datetime.fromisoformat(lease["acquireTime"]) - datetime.fromisoformat(
                    written["renewTime"]
                )
                assert gap.total_seconds() >= written["leaseDurationSeconds"], (
                    f"{written} is followed by {lease}"
                )
            if lose is SchedulerProcess.freeze:
                changes = [*proxy.changes]
                leader.thaw()
                assert leader.wait() != 0
                assert proxy.changes == changes, f"written after a freeze: {proxy.changes[len(changes) :]}"
            self._progress()
            _check_log(standby)
            _stop(standby)
        return f"the standby follows after {took:.1f} of {time.monotonic() - began:.1f} s"

    def _lease(self) -> dict[str, Any]:
        """Return the content of the Lease."""
        return dict(self._cluster.kubectl.get("Lease", LEASE, NAMESPACE)["spec"])

    # -- the end --------------------------------------------------------------------------------------

    def finish(self) -> None:
        """End the load, and check that nothing was lost: all pods run or have succeeded."""
        invariants, load = self._invariants, self._load
        with self._scheduling() as scheduler:
            load.stop()
            try:
                invariants.wait_until(
                    lambda pods: all(node_of(one) or cause(one) for one in pods),
                    "every pending pod has a cause",
                )
                load.shrink()
                invariants.wait_until(lambda _: not load.unfinished(), "all Jobs are complete")
                invariants.wait_until(lambda pods: all(map(node_of, pods)), "every pod is bound")
                invariants.wait_until(
                    lambda pods: not any(is_placeholder(one) and not is_ended(one) for one in pods),
                    "no placeholder is left of a finished gang",
                )
                load.end()
                self._claims.until_free()
            except AssertionError as error:
                raise AssertionError(f"{error}\n{load.unfinished()}\n{scheduler.log}") from error
            invariants.check()
            self._claims.check()
            _stop(scheduler)
        missing = {
            name: f"{len(invariants.created[name])} of {count} pods"
            for name, count in load.expected.items()
            if len(invariants.created[name]) != count
        }
        assert not missing, f"pods were lost and made again: {missing}"


def _stop(scheduler: SchedulerProcess) -> None:
    """End a scheduler in order."""
    status = scheduler.stop()
    assert status == 0, f"the scheduler has ended with {status}:\n{scheduler.log}"


def _check_log(scheduler: SchedulerProcess) -> None:
    """Raise `AssertionError` if the log of a scheduler reports a defect."""
    # Names of placeholders are random, and may have the letters of a word.
    found = [line for line in scheduler.lines if re.search(r"\bbug\b|\bTraceback\b", line)]
    assert not found, f"the scheduler reports a defect:\n{scheduler.log}"


@contextmanager
def chaos(
    cluster: Cluster,
    folder: Path,
    seed: int,
    *,
    outage: float = 3.0,
    report: Callable[[str], object] = lambda _: None,
) -> Iterator[Chaos]:
    """Put load on a cluster without nodes and pods, for faults to happen."""
    kubectl = cluster.kubectl
    with ExitStack() as stack:
        # It loads its modules while the cluster gets ready.
        forks = stack.enter_context(Forks(environment()))
        apply(kubectl, [one for one in manifests() if one["kind"] not in ("Deployment", "ConfigMap")])
        apply(kubectl, [config_map(CONFIGS, {"queues.yaml": QUEUES}, NAMESPACE)])
        kubectl.create_all(cluster_nodes())
        kubectl.wait("Node", lambda found: len(found) >= NODES and all(map(node_is_ready, found)))
        kubectl.create_all(foreign_pods())
        kubeconfig = kubeconfig_of(cluster, ACCOUNT, folder)
        invariants = stack.enter_context(Invariants(kubectl, QUOTAS))
        claims = stack.enter_context(ClaimRules(kubectl, invariants))
        load = stack.enter_context(Load(kubectl, invariants, seed))
        yield Chaos(cluster, kubeconfig, invariants, claims, load, forks, seed, outage=outage, report=report)
