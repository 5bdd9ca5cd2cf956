"""Estimates of starts: from a scheduler, on a workload, and as texts of the command."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Run
from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.resources import Resource
from yunikorn_foresight.arrivals_to_come import DAY, PastArrivals, first_id
from yunikorn_foresight.drawn_run_times import DrawnRunTimes, KnownSpreads, RunTimeSpread, even_share
from yunikorn_foresight.estimate_calibration import calibrate
from yunikorn_foresight.estimate_scores import scores_of
from yunikorn_foresight.estimate_texts import EstimateTexts
from yunikorn_foresight.forked_work import ForesightError, begin
from yunikorn_foresight.interval_calibration import Ensemble, IntervalCalibration, Quantiles
from yunikorn_foresight.start_estimates import EstimateOptions, StartEstimate, start_estimates
from yunikorn_lab.simulation.rng import streams
from yunikorn_lab.simulation.workload import (
    Workload,
    WorkloadApplication,
    WorkloadNode,
    WorkloadTaskGroup,
)
from yunikorn_plugins.run_time_estimators import LIMIT_TAG
from yunikorn_snapshots.snapshots import take_snapshot
from yunikorn_testing import Cluster, application, ask, node

QUEUES = """
partitions:
  - name: default
    estimators: [request, learned]
    queues: [{name: root, submitacl: "*", queues: [{name: team}]}]
"""
FAST = EstimateOptions(replays=4, jobs=1)


def full_cluster(registry: Registry, *, limit: str = "3600") -> Cluster:
    """Return a cluster with one node, a job that occupies it since 600 s, and two more that wait."""
    cluster = Cluster(QUEUES, registry)
    cluster.add(node("n1", vcore=1))
    for name in ("runs", "next", "last"):
        tags = {LIMIT_TAG: limit} if limit else {}
        cluster.submit(application(name, "root.team", tags=tags), ask("task", 1, vcore=1))
    cluster.run()
    cluster.clock.set(600 * SECOND)
    return cluster


def test_intervals_and_limits(registry: Registry) -> None:
    found = start_estimates(full_cluster(registry).scheduler, (), FAST)
    first, last = found.applications
    assert (first.application, last.application, found.replays) == ("next", "last", 4)
    assert (first.latest, last.latest) == (3000, 3000 + 3600)
    assert 0 < first.first.low < first.first.median < first.first.high < math.inf
    assert first.first == first.whole
    assert last.first.median > first.first.median
    assert found.notes == [
        "too few past arrivals are known: the estimates are for the case that nothing else arrives"
    ]


def test_estimates_leave_the_scheduler_as_it_is_and_are_repeatable(registry: Registry) -> None:
    cluster = full_cluster(registry)
    found = start_estimates(cluster.scheduler, ("last",), FAST)
    assert cluster.scheduler.schedule() == 0
    assert cluster.clock.now() == 600 * SECOND
    assert start_estimates(cluster.scheduler, ("last",), FAST) == found


def test_without_limits_and_run_times_nothing_is_promised(registry: Registry) -> None:
    found = start_estimates(full_cluster(registry, limit="").scheduler, (), FAST)
    assert [one.latest for one in found.applications] == [None, None]
    assert {one.first.low for one in found.applications} == {math.inf}
    assert found.notes[0] == (
        "no estimator knows the run times of 3 requests and tasks, which are taken never to end:"
        " name estimators in the configuration, or give --assume-runtime"
    )


def test_applications_that_do_not_wait_are_named(registry: Registry) -> None:
    with pytest.raises(UsageError) as caught:
        start_estimates(full_cluster(registry).scheduler, ("next", "runs", "lost"), FAST)
    assert str(caught.value).splitlines() == [
        "no application 'runs' waits for room",
        "no application 'lost' waits for room, did you mean 'last'?",
    ]


def test_an_error_of_a_child_is_told() -> None:
    def fail() -> None:
        raise UsageError("out of order")

    with pytest.raises(ForesightError, match="out of order"):
        begin(fail).result()


# -- draws -------------------------------------------------------------------------------------------------


def test_one_in_ten_draws_is_beyond_each_quantile() -> None:
    spread = RunTimeSpread(60, 600, 1200, 5000)
    random = Random(7)
    deviations = [random.gauss(0, 1) for _ in range(4000)]
    drawn = [spread.at(one) for one in deviations]
    assert [sum(one < edge for one in drawn) / len(drawn) for edge in (60, 600, 1200)] == pytest.approx(
        [0.1, 0.5, 0.9], abs=0.03
    )
    assert max(drawn) <= 5000


def test_tasks_of_one_user_are_drawn_alike(registry: Registry) -> None:
    cluster = Cluster(QUEUES, registry)
    tags = {LIMIT_TAG: "3600"}
    for number in range(40):
        who = "ann" if number % 2 else f"user-{number}"
        cluster.submit(application(f"a{number}", "root.team", user=who, tags=tags), ask("t", 1, vcore=1))
    at = cluster.scheduler.all_partitions()[0][1]
    spreads = KnownSpreads()

    def shares(of: range) -> float:
        """Return by how much the share of long run times differs between replays."""
        apps = [at.partition.applications[f"a{number}"] for number in of]
        means = []
        for replay in range(60):
            draws = DrawnRunTimes(spreads, 1, replay, 60)
            times = [draws.left(at, app.asks["t"], 0) for app in apps]
            means.append(sum(time > 1440 * SECOND for time in times) / len(times))
        mean = sum(means) / len(means)
        return sum((one - mean) ** 2 for one in means) / len(means)

    assert shares(range(1, 40, 2)) > 3 * shares(range(0, 40, 2))


@given(count=st.integers(1, 40), seed=st.integers(0, 99))
def test_what_is_drawn_for_all_replays_is_spread_evenly(count: int, seed: int) -> None:
    shares = sorted(even_share(streams(seed)("user ann"), number, count) for number in range(count))
    assert [int(share * count) for share in shares] == list(range(count))


def test_arrivals_come_again_at_their_time_of_day() -> None:
    apps = [
        WorkloadApplication(f"a{number}", -number * DAY // 4, (), user="ann") for number in range(12, 0, -1)
    ]
    past = PastArrivals(apps)
    times = {one.id: one.submit for one in apps}
    for replay in range(3):
        again = list(past.again(1, replay, 3, 5 * DAY))
        assert len(again) == 20
        assert {(one.submit - times[first_id(one)]) % DAY for one in again} == {0}
        assert all(0 < one.submit <= 5 * DAY for one in again)
    assert list(PastArrivals(apps[:4]).again(1, 1, 3, DAY)) == []


# -- calibration -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bias", "spread"), [(0.0, 1.0), (1.5, 0.5), (-1.0, 2.5)])
def test_intervals_adapt_to_errors_of_replays(bias: float, spread: float) -> None:
    random, calibration, held, below = Random("errors"), IntervalCalibration(), 0, 0
    for number in range(600):
        middle = random.uniform(4, 11)
        replays = [math.exp(random.gauss(middle, 0.6)) for _ in range(10)]
        wait = math.exp(random.gauss(middle + bias, 0.6 * spread))
        ensemble = Ensemble.of(replays)
        given = calibration.quantiles(ensemble)
        if number >= 100:
            held += given.holds(wait)
            below += wait < given.median
        calibration.score(ensemble, given, wait)
    assert 0.75 <= held / 500 <= 0.85
    assert 0.4 <= below / 500 <= 0.6
    copy = IntervalCalibration()
    copy.restored(json.loads(json.dumps(calibration.saved())))
    assert copy.quantiles(ensemble) == calibration.quantiles(ensemble)


def test_replays_beyond_the_horizon_leave_the_end_open() -> None:
    calibration = IntervalCalibration()
    assert calibration.quantiles(Ensemble.of([math.inf] * 3)).low == math.inf
    given = calibration.quantiles(Ensemble.of([100.0, 200.0, 300.0, math.inf]))
    assert 0 < given.low < given.median < given.high < math.inf


def jobs(count: int) -> Workload:
    """Return jobs of three users on two cores, which run for minutes to hours."""
    random, applications, moment = Random("jobs"), [], 0
    for number in range(count):
        moment += round(random.expovariate(1 / 1500)) * SECOND
        user = random.choice("abc")
        runtime = round(random.lognormvariate(6 + "abc".index(user), 0.5)) * SECOND
        group = WorkloadTaskGroup("task", 1, Resource(vcore=1000), runtime, tags={LIMIT_TAG: "30000"})
        applications.append(WorkloadApplication(f"j-{number}", moment, (group,), "root.team", user))
    nodes = [WorkloadNode(name, Resource(vcore=1000)) for name in ("n1", "n2")]
    return Workload("jobs", "scenario", nodes, applications)


def test_estimates_of_a_workload_are_scored_beside_simple_predictors(registry: Registry) -> None:
    found = calibrate(QUEUES, jobs(80), registry, replays=3, most=12, seed=1, jobs=1)
    assert all(one.replays is None or len(one.replays) == 3 for one in found)
    scores = scores_of(found)
    assert (scores.told_at_once or 0) > 0.9
    assert scores.waits > 8
    ours, last_waits, _ = scores.predictors
    assert (ours.within_two or 0) > max(last_waits.within_two or 0, 0.5)


# -- the command -------------------------------------------------------------------------------------------


def test_command(registry: Registry, tmp_path: Path, run: Run) -> None:
    file = tmp_path / "state.snapshot"
    take_snapshot(full_cluster(registry).scheduler, file)
    status, out, _ = run("estimate", "--snapshot", str(file), "--replays", "4")
    assert status == 0
    titles, first, last = out.splitlines()
    assert titles.split()[:3] == ["APPLICATION", "QUEUE", "USER"]
    assert (first.split()[0], first.rsplit("  ", 1)[1]) == ("next", "in 50m")
    assert (last.split()[0], last.rsplit("  ", 1)[1]) == ("last", "in 1h50m")
    _, out, _ = run("estimate", "next", "--snapshot", str(file), "--replays", "4")
    assert out.startswith("next: starts between in ")
    assert out.endswith(" (80 %), at the latest in 50m if everything runs to its limit\n")
    _, out, _ = run("estimate", "next", "--snapshot", str(file), "--replays", "4", "--json")
    record = json.loads(out)
    assert (record["application"], record["latest"], record["waiting"]) == ("next", 3000, 1)
    assert record["first"]["low"] < record["first"]["high"]


@pytest.mark.parametrize(
    ("first", "latest", "text"),
    [
        (
            (3000, 4000, 5700),
            15_600.0,
            "starts between 10:20 and 11:05 (80 %), at the latest 13:50 if everything runs to its limit",
        ),
        ((3000, 4000, 60_000), None, "starts between 10:20 and 2026-11-24 02:10 (80 %)"),
        ((3000, math.inf, math.inf), None, "starts after 10:20 (90 %)"),
        ((math.inf,) * 3, None, "starts later than in 168h"),
        ((0, 0, 0), None, "starts now"),
        ((-9, -9, -9), None, "runs; its last task starts at 10:36"),
    ],
)
def test_texts(first: tuple[float, float, float], latest: float | None, text: str) -> None:
    moment = 1_795_426_200 * SECOND  # 2026-11-23 at 9:30 in UTC
    whole = Quantiles(3000, 4000, 5700)
    one = StartEstimate("rm", "default", "a", "root.team", "ann", 1, Quantiles(*first), whole, latest)
    assert EstimateTexts(moment, 7 * 86400).sentence(one) == text
