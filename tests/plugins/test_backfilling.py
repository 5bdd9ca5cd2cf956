"""Backfilling: what may start before a request that waits, and what it waits for."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
import yaml

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import RunTime, RunTimeEstimator, Task
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import Allocation, NodeAction, UpdateNodeInfo, UpdateRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.yardstick import EasyMachine, RigidJob, easy_waits
from yunikorn_policies.expected_ends import NEVER
from yunikorn_policies.pooled_room import PooledRoom
from yunikorn_snapshots.restored_snapshot import restored_scheduler
from yunikorn_snapshots.snapshots import take_snapshot
from yunikorn_testing import (
    Cluster,
    MakeScheduler,
    application,
    ask,
    assert_pending_because,
    assert_placed,
    node,
)
from yunikorn_testing.cluster import RM_ID

LIMIT = "yunikorn.apache.org/run-time-limit"
both = pytest.mark.parametrize("policy", ["easy", "conservative"])


def queues(policy: str, leaf: dict[str, object] | None = None, **options: object) -> str:
    """Return a configuration with one queue in order of submission, which has the properties of `leaf`."""
    batch = {"name": "batch", "properties": {"application.sort.policy": "fifo"}, **(leaf or {})}
    partition = {
        "name": "default",
        "estimators": ["request"],
        "reservations": {"policy": policy, **options},
        "queues": [{"name": "root", "submitacl": "*", "queues": [batch]}],
    }
    return yaml.safe_dump({"partitions": [partition]})


def submit(cluster: Cluster, name: str, cores: int, seconds: int | None, tasks: int = 0) -> None:
    """Submit a job: one task, or a gang of `tasks`; `seconds` is its time limit, if it has one."""
    tags = {} if seconds is None else {LIMIT: str(seconds)}
    if not tasks:
        cluster.submit(application(name, "root.batch", tags=tags), ask(vcore=cores))
    else:
        gang = application(name, "root.batch", tags=tags, gang="Atomic", gang_size={"vcore": cores * tasks})
        cluster.submit(gang, ask("member", tasks, task_group="workers", vcore=cores))
    cluster.run()
    cluster.advance(1)


def started(cluster: Cluster) -> set[str]:
    """Return the applications that have started."""
    return {one.application for one in cluster.placements}


@both
def test_later_request_starts_only_if_it_delays_no_earlier_one(policy: str, scheduler: MakeScheduler) -> None:
    cluster = scheduler(queues(policy), node("n1", vcore=4))
    submit(cluster, "running", 3, 100)
    submit(cluster, "large", 4, 100)
    submit(cluster, "long", 1, 200)
    submit(cluster, "short", 1, 90)
    assert started(cluster) == {"running", "short"}
    reason = "waits behind application large, which is expected to start at 0h01m40s"
    if policy == "conservative":
        reason = "waits behind application large, and is expected to start at 0h03m20s"
    assert_pending_because(cluster, "long", reason)
    for name in ("running", "short"):
        cluster.finish(name)
    cluster.run()
    assert started(cluster) == {"running", "short", "large"}


def test_room_that_is_left_when_the_first_one_starts_is_open_to_all(scheduler: MakeScheduler) -> None:
    cluster = scheduler(queues("easy"), node("n1", vcore=4), node("n2", vcore=4))
    submit(cluster, "running", 3, 100)
    submit(cluster, "other", 4, 50)
    submit(cluster, "gang", 3, 100, tasks=2)
    # At 100 s the gang takes three cores of each node; one core of each is left.
    submit(cluster, "long", 1, 1000)
    assert_placed(cluster, "long", on="n1")
    submit(cluster, "longer", 1, 1000)
    assert started(cluster) == {"running", "other", "long"}
    cluster.finish("other")
    cluster.run()
    assert_placed(cluster, "longer", on="n2")
    cluster.finish("running")
    cluster.run()
    assert_placed(cluster, "gang", count=2)


@both
def test_gangs_are_backfilled_as_a_whole(policy: str, scheduler: MakeScheduler) -> None:
    cluster = scheduler(queues(policy), node("n1", vcore=4), node("n2", vcore=4))
    submit(cluster, "running", 4, 500)
    submit(cluster, "large", 4, 100, tasks=2)
    submit(cluster, "too-long", 2, 600, tasks=2)
    submit(cluster, "fits", 2, 300, tasks=2)
    assert_placed(cluster, "fits", count=2, on="n2")
    assert started(cluster) == {"running", "fits"}
    reason = "is the first that waits for room, and is expected to start at 0h08m20s"
    assert_pending_because(cluster, "large", reason)


@both
def test_waiting_gang_holds_back_others_no_longer_than_the_policy(
    policy: str, scheduler: MakeScheduler
) -> None:
    cluster = scheduler(queues(policy), node("n1", vcore=4), node("n2", vcore=4))
    submit(cluster, "running", 4, 50_000)
    submit(cluster, "large", 4, 100, tasks=2)
    cluster.advance(7200)
    submit(cluster, "short", 4, 1000)
    assert_placed(cluster, "short", on="n2")


@both
@pytest.mark.parametrize(
    "leaf",
    [
        {"resources": {"max": {"vcore": 4}}},
        {"limits": [{"limit": "each", "users": ["*"], "maxresources": {"vcore": 4}}]},
    ],
    ids=["quota", "limit"],
)
def test_gang_that_waits_for_a_quota_or_limit_does_not_starve(
    leaf: dict[str, object], policy: str, scheduler: MakeScheduler
) -> None:
    cluster = scheduler(queues(policy, leaf), node("n1", vcore=16))
    submit(cluster, "small-0", 1, 60)
    submit(cluster, "small-1", 1, 60)
    submit(cluster, "gang", 1, 60, tasks=4)
    for number in range(2, 30):
        submit(cluster, f"small-{number}", 1, 60)
        cluster.advance(29)
        if f"small-{number - 2}" in started(cluster):
            cluster.finish(f"small-{number - 2}")
        cluster.run()
    assert_placed(cluster, "gang", count=4)


@both
def test_task_that_exceeds_its_estimate_only_delays_others(policy: str, scheduler: MakeScheduler) -> None:
    cluster = scheduler(queues(policy), node("n1", vcore=4))
    submit(cluster, "running", 3, 100)
    submit(cluster, "large", 4, 100)
    cluster.advance(150)
    submit(cluster, "long", 1, 3000)
    submit(cluster, "short", 1, 40)
    assert started(cluster) == {"running", "short"}
    assert_placed(cluster, "running")


@both
def test_withdrawal_of_the_first_one_lets_others_start(policy: str, scheduler: MakeScheduler) -> None:
    cluster = scheduler(queues(policy), node("n1", vcore=4))
    submit(cluster, "running", 3, 100)
    submit(cluster, "large", 4, 100)
    submit(cluster, "long", 1, 3000)
    assert started(cluster) == {"running"}
    cluster.withdraw("large")
    cluster.run()
    assert started(cluster) == {"running", "long"}


@both
def test_request_that_never_fits_holds_back_nothing(policy: str, scheduler: MakeScheduler) -> None:
    cluster = scheduler(queues(policy), node("n1", vcore=4))
    submit(cluster, "running", 3, 100)
    submit(cluster, "huge", 4, 100, tasks=2)
    submit(cluster, "long", 1, 3000)
    assert started(cluster) == {"running", "long"}


def test_conservative_counts_with_the_room_of_each_node(scheduler: MakeScheduler) -> None:
    cluster = scheduler(queues("conservative"), node("n1", vcore=4), node("n2", vcore=4))
    submit(cluster, "too-large", 5, 100)
    submit(cluster, "first", 2, 100)
    submit(cluster, "second", 2, 100)
    submit(cluster, "whole", 4, 50)
    # All nodes together have four free cores, but the node of "first" is kept for "whole".
    submit(cluster, "long", 1, 1000)
    submit(cluster, "longer", 1, 1000)
    assert started(cluster) == {"first", "second", "long", "longer"}
    cluster.finish("first")
    cluster.run()
    assert_placed(cluster, "whole")


@both
def test_room_on_a_drained_node_is_not_expected(policy: str, scheduler: MakeScheduler) -> None:
    cluster = scheduler(queues(policy), node("n1", vcore=4), node("n2", vcore=8))
    submit(cluster, "running", 3, 5000)
    submit(cluster, "leaving", 8, 5000)
    drain = UpdateNodeInfo("n2", NodeAction.DRAIN_NODE)
    cluster.scheduler.update(UpdateRequest(RM_ID, updated_nodes=[drain]))
    submit(cluster, "large", 6, 100, tasks=2)
    submit(cluster, "long", 1, 9000)
    assert started(cluster) == {"running", "leaving", "long"}


@both
def test_guaranteed_request_preempts_also_if_it_is_not_the_first_one(
    policy: str, scheduler: MakeScheduler
) -> None:
    guaranteed = {"guaranteed": {"vcore": 4}}
    partition = yaml.safe_load(queues(policy, {"resources": guaranteed}))
    partition["partitions"][0]["queues"][0]["queues"].append({"name": "other", "resources": guaranteed})
    cluster = scheduler(yaml.safe_dump(partition), node("n1", vcore=8))
    for number in range(7):
        cluster.submit(application(f"victim-{number}", "root.other"), ask(vcore=1))
        cluster.run()
    submit(cluster, "large", 5, 9000)
    submit(cluster, "guaranteed", 4, 100_000)
    for _ in range(5):
        cluster.advance(30)
        cluster.run()
    assert_placed(cluster, "guaranteed")
    assert len(cluster.preempted) == 3


def test_explanation_changes_no_decision(scheduler: MakeScheduler) -> None:
    def placements(explains: bool) -> list[tuple[str, str]]:
        draw = random.Random(1)
        text = yaml.safe_load(queues("conservative"))
        text["partitions"][0]["queues"][0]["queues"].append({"name": "b", "resources": {"max": {"vcore": 9}}})
        cluster = scheduler(yaml.safe_dump(text), *[node(f"n{number}", vcore=4) for number in range(4)])
        for number in range(40):
            tags = {LIMIT: str(draw.choice([50, 100, 500, 1000]))}
            app = application(f"job-{number}", draw.choice(["root.batch", "root.b"]), tags=tags)
            cluster.submit(app, ask(vcore=draw.randint(1, 4)))
            cluster.run()
            cluster.advance(draw.randint(1, 40))
            for name in sorted({one.application for one in cluster.running()}):
                if draw.random() < 0.3:
                    cluster.finish(name)
            if explains:
                for name in {f"job-{each}" for each in range(number + 1)} - started(cluster):
                    cluster.why(name)
            cluster.run()
        return [(one.application, one.node) for one in cluster.placements]

    assert placements(explains=True) == placements(explains=False)


@both
def test_plan_outlives_the_moment_if_nothing_else_happens_than_it_says(policy: str) -> None:
    class Counting(RunTimeEstimator):
        """One hour for each task."""

        name = "counting"
        asked: ClassVar[list[str]] = []

        def estimate(self, task: Task, age: float) -> RunTime | None:
            self.asked.append(task.app.id)
            return RunTime(3600, 3600, 3600)

    text = queues(policy).replace("- request", "- counting")
    cluster = Cluster(text, with_plugins(run_time_estimators=[Counting]), [node("n1", vcore=40)])
    for number in range(30):
        submit(cluster, f"running-{number}", 1, None)
    submit(cluster, "large", 40, None)
    for number in range(20):
        submit(cluster, f"long-{number}", 1, None)
        cluster.advance(60)
        cluster.run()
    assert started(cluster) == {f"running-{number}" for number in range(30)}
    times = Counter(name.partition("-")[0] for name in Counting.asked)
    # Once each as a class of requests, at least once when a decision needs it, and once when it starts.
    assert times["running"] <= 4 * 30


@both
def test_equal_request_of_higher_priority_is_judged_by_itself(policy: str, scheduler: MakeScheduler) -> None:
    text = queues(policy).replace("application.sort.policy: fifo", "application.sort.priority: enabled")
    cluster = scheduler(text, node("n1", vcore=4))
    submit(cluster, "running", 3, 100)
    submit(cluster, "large", 4, 100)
    submit(cluster, "long", 1, 1000)
    assert started(cluster) == {"running"}
    urgent = application("urgent", "root.batch", tags={LIMIT: "1000"})
    cluster.submit(urgent, attrs.evolve(ask(vcore=1), priority=10))
    cluster.run()
    assert started(cluster) == {"running", "urgent"}


def test_tasks_that_no_estimator_knows_have_an_assumed_run_time(scheduler: MakeScheduler) -> None:
    cluster = scheduler(queues("easy", assumed=100), node("n1", vcore=4))
    submit(cluster, "running", 3, None)
    submit(cluster, "large", 4, None)
    submit(cluster, "short", 1, 90)
    submit(cluster, "long", 1, None)
    assert started(cluster) == {"running", "short"}


def test_pool_takes_the_earliest_time_with_room_for_the_whole_duration() -> None:
    pool = PooledRoom(0, {"vcore": 2}, [(10, {"vcore": 2}), (20, {"vcore": 4})])

    def take(cores: int, time: int) -> int:
        begin = pool.begin({"vcore": cores}, time)
        if begin < NEVER:
            pool.take({"vcore": cores}, time, begin)
        return begin

    assert take(4, 5) == 10
    assert take(2, 10) == 0
    assert take(1, 3) == 15
    assert take(8, 100) == 20
    assert take(1, 3) == 15
    assert take(9, 1) == NEVER
    assert pool.begin({"vcore": 1}, 3, 17) == 17


# -- conservative backfilling and first come, first served ---------------------------------------------


@attrs.define
class Starts(Recorder):
    """Times at which applications started (s)."""

    found: dict[str, float] = attrs.Factory(dict)

    def allocated(self, moment: int, allocation: Allocation) -> None:
        self.found.setdefault(allocation.application_id, moment / 10**9)


@attrs.frozen
class Job:
    """A rigid job of a random workload."""

    name: str
    submit: int
    cores: int
    seconds: int


def random_jobs(seed: int, cores: int) -> list[Job]:
    """Return jobs for a machine that they keep busy."""
    draw = random.Random(seed)
    time, found = 0, []
    for number in range(40):
        time += draw.randint(0, 40)
        wide = draw.random() < 0.3
        found.append(Job(f"job-{number}", time, draw.randint(1, cores if wide else 3), draw.randint(1, 200)))
    return found


def in_order(jobs: list[Job], cores: int) -> dict[str, float]:
    """Return the starts of jobs that start one after the other, each as soon as there is room."""
    free, now = cores, 0
    ends: list[tuple[int, int]] = []
    found: dict[str, float] = {}
    for job in jobs:
        now = max(now, job.submit)
        while (ends and ends[0][0] <= now) or free < job.cores:
            end, given = heapq.heappop(ends)
            now, free = max(now, end), free + given
        found[job.name] = now
        free -= job.cores
        heapq.heappush(ends, (now + job.seconds, job.cores))
    return found


def simulated(jobs: list[Job], cores: int, policy: str, registry: Registry, folder: Path) -> dict[str, float]:
    """Return the starts of jobs under a policy, which knows their run times."""
    apps: list[dict[str, Any]] = [
        {
            "id": job.name,
            "submit": job.submit,
            "queue": "root.batch",
            "gang": "Atomic",
            "tags": {LIMIT: str(job.seconds)},
            "tasks": [{"count": job.cores, "resources": {"vcore": 1}, "runtime": job.seconds}],
        }
        for job in jobs
    ]
    file = folder / f"{policy}.yaml"
    nodes = [{"name": "n", "resources": {"vcore": cores}}]
    file.write_text(yaml.safe_dump({"nodes": nodes, "applications": apps}), "utf-8")
    starts = Starts()
    report = simulate(queues(policy), read_workload(file), registry, recorder=starts)
    assert report.applications.finished == len(jobs)
    assert not report.plugin_faults
    return starts.found


@pytest.mark.parametrize("seed", range(8))
def test_conservative_with_exact_estimates_starts_no_job_later_than_in_order(
    seed: int, registry: Registry, tmp_path: Path
) -> None:
    jobs = random_jobs(seed, 8)
    reference = in_order(jobs, 8)
    found = simulated(jobs, 8, "conservative", registry, tmp_path)
    late = {name: (start, reference[name]) for name, start in found.items() if start > reference[name]}
    assert not late
    assert sum(found.values()) < sum(reference.values()), "some started earlier"


@pytest.mark.parametrize("seed", range(3))
def test_easy_decides_as_a_plain_simulation_of_a_pool_does(
    seed: int, registry: Registry, tmp_path: Path
) -> None:
    jobs = random_jobs(seed, 8)
    machine = EasyMachine(8)
    rigid = {RigidJob(job.submit, job.cores, job.seconds, job.seconds): job.name for job in jobs}
    plain = {rigid[one]: float(start) for one, start in machine.starts(rigid)}
    found = simulated(jobs, 8, "easy", registry, tmp_path)
    assert found == plain
    assert sum(found.values()) < sum(in_order(jobs, 8).values())


def test_simulation_of_rigid_jobs_reports_the_waits_under_easy(registry: Registry, tmp_path: Path) -> None:
    jobs = random_jobs(1, 8)
    simulated(jobs, 8, "easy", registry, tmp_path)
    workload = read_workload(tmp_path / "easy.yaml")
    under = {policy: simulate(queues(policy), workload, registry) for policy in ("standard", "easy")}
    assert under["easy"].easy_wait == under["easy"].application_wait
    assert under["standard"].easy_wait == under["easy"].easy_wait
    said = [attrs.evolve(app, tags={LIMIT: f"{app.tags[LIMIT]}s"}) for app in workload.applications]
    assert easy_waits(attrs.evolve(workload, applications=said)) == under["easy"].easy_wait, "another form"
    wide = next(app for app in workload.applications if app.size > 1)
    other = attrs.evolve(workload, applications=[attrs.evolve(wide, gang="")])
    assert easy_waits(other) is None, "tasks that start one by one"


@both
def test_snapshot_keeps_what_waits_for_whom_and_what_was_learned(policy: str, tmp_path: Path) -> None:
    text = configuration(
        queue("a", properties={"application.sort.policy": "fifo"}),
        estimators=["request", {"name": "learned", "fewest": 1}],
        reservations={"policy": policy},
    )
    rm = RM(text)
    rm.node(vcore=4)
    for name, cores, limit in (("done", 4, 60), ("running", 3, 100), ("large", 4, 100), ("long", 1, 500)):
        rm.app_tagged(name, "root.a", {LIMIT: str(limit)})
        rm.ask(name, vcore=cores)
        rm.schedule()
        if name == "done":
            rm.pass_time(20)
            (uuid,) = rm.running
            rm.release("done", uuid)
    take_snapshot(rm.scheduler, tmp_path / "snapshot")
    other = restored_scheduler(tmp_path / "snapshot", Registry.load(third_party=False), rm.clock)

    def run_times(scheduler: Scheduler) -> Any:
        ((_, partition),) = scheduler.all_partitions()
        app = partition.partition.applications["long"]
        return [partition.policies.run_times.of(one) for one in app.asks.values()]

    assert run_times(other) == run_times(rm.scheduler)
    assert other.explain(rm.rm_id, "default", "long") == rm.scheduler.explain(rm.rm_id, "default", "long")
