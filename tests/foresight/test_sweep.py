"""`yunikorn sweep`: points, searches, the journal, files, and a real Dask cluster that loses a worker."""

from __future__ import annotations

import csv
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.cli.main import main
from yunikorn_foresight import sweep_runs
from yunikorn_foresight.dask_executor import DaskExecutor
from yunikorn_foresight.sweep_points import SweepPoint
from yunikorn_foresight.sweep_result import Objective, SweptPoint, pareto_front
from yunikorn_foresight.sweep_search import rounds, search_points
from yunikorn_lab.reporting.report_assertions import parse_figure

CONFIG = """
partitions:
  - name: default
    queues: [{name: root, submitacl: "*", queues: [{name: web}, {name: batch}]}]
"""
WORKLOAD = """
nodes: [{name: n, count: 3, resources: {vcore: 1}}]
generate:
  - {id: b, count: 9, arrivals: {process: poisson, every: 10s}, queue: root.batch,
     tasks: [{resources: {vcore: 1}, runtime: {distribution: exponential, mean: 60s}}]}
  - {id: w, count: 6, arrivals: {process: poisson, every: 15s}, queue: root.web,
     tasks: [{resources: {vcore: 1}, runtime: 20s}]}
"""
LIMIT = "root.batch.resources.max.vcore"
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run `yunikorn sweep` in this process; return exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    Path("queues.yaml").write_text(CONFIG, "utf-8")
    Path("day.yaml").write_text(WORKLOAD, "utf-8")

    def run(*options: str) -> tuple[int, str, str]:
        status = main(["sweep", "--config", "queues.yaml", "--workload", "day.yaml", "--jobs", "1", *options])
        return status, *capsys.readouterr()

    return run


def rows(name: str) -> list[dict[str, str]]:
    with Path(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_grid_has_all_combinations_and_the_unchanged_configuration(call: Call) -> None:
    options = ("--set", f"{LIMIT}=1,2", "--set", "root.batch.properties.application.sort.policy=fifo,fair")
    goals = ("--minimise", "root.web.wait.mean", "--maximise", "use.vcore")
    status, out, _ = call(*options, *goals, "--seeds", "1-3", "--out", "found")
    assert status == 0
    points = rows("found/points.csv")
    assert [(one[LIMIT], one["runs"]) for one in points] == [("", "3"), *[("1", "3")] * 2, *[("2", "3")] * 2]
    assert len(rows("found/runs.csv")) == 15
    by_limit = {one[LIMIT]: float(one["root.web.wait.mean"]) for one in points}
    assert by_limit["1"] < by_limit[""]  # web work waits less where batch work has a limit
    assert "max.vcore=1 fifo" in out
    assert Path("found/front.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(Path("found/sweep.json").read_text("utf-8"))
    assert found["objectives"][1] == {"figure": "use.vcore", "direction": "maximise"}


def test_mean_of_a_point_is_that_of_its_runs(call: Call) -> None:
    call("--set", f"{LIMIT}=1", "--seeds", "1-4", "--out", "found")
    runs = [float(one["wait.mean"]) for one in rows("found/runs.csv") if one["point"] == "1"]
    assert float(rows("found/points.csv")[1]["wait.mean"]) == pytest.approx(sum(runs) / len(runs))


def test_a_further_trace_is_swept_as_well(call: Call) -> None:
    Path("night.yaml").write_text(WORKLOAD.replace("count: 9", "count: 2"), "utf-8")
    call("--set", f"{LIMIT}=1", "--seeds", "1-2", "--trace", "night.yaml", "--out", "found")
    found = [(one["workload"], one["seed"]) for one in rows("found/runs.csv") if one["point"] == "0"]
    assert found == [("day.yaml", "1"), ("night.yaml", "1"), ("day.yaml", "2"), ("night.yaml", "2")]


def test_drawn_points_are_within_their_ranges_and_depend_on_the_seed_only(call: Call) -> None:
    options = ("--search", "random", "--points", "3", "--set", f"{LIMIT}=log(1..64)", "--out")
    call(*options, "one")
    call(*options, "same")
    call(*options, "other", "--point-seed", "2")
    drawn = [[one[LIMIT] for one in rows(f"{name}/points.csv")[1:]] for name in ("one", "same", "other")]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 3
    assert all(1 <= int(value) <= 64 for value in drawn[0])


def test_the_same_call_repeats_no_finished_run(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--set", f"{LIMIT}=1,2", "--seeds", "1-2", "--out", "found")
    call(*options)
    before = Path("found/points.csv").read_bytes()
    journal = Path("found/runs.jsonl")
    whole = journal.read_bytes()
    journal.write_bytes(whole[: len(whole) - 40])  # killed while it wrote
    made: list[int] = []
    measure = sweep_runs.measure

    def counted(order: Any, source: Any) -> Any:
        made.append(order.point)
        return measure(order, source)

    monkeypatch.setattr(sweep_runs, "measure", counted)
    call(*options)
    assert len(made) == 1
    assert Path("found/points.csv").read_bytes() == before


def test_another_input_repeats_all_runs(call: Call) -> None:
    options = ("--set", f"{LIMIT}=1", "--out", "found")
    call(*options)
    Path("day.yaml").write_text(WORKLOAD.replace("20s", "30s"), "utf-8")
    _, _, err = call(*options)
    assert "taken over" not in err


def test_parquet_has_the_same_rows(call: Call) -> None:
    import pyarrow.parquet as pq

    call("--set", f"{LIMIT}=1,2", "--out", "found")
    expected = rows("found/points.csv")
    call("--set", f"{LIMIT}=1,2", "--out", "found", "--rows", "parquet")
    found = pq.read_table("found/points.parquet").to_pylist()
    assert [str(one["wait.mean"]) for one in found] == [one["wait.mean"] for one in expected]
    assert not Path("found/points.csv").exists()


def test_all_problems_of_the_options_in_one_pass(call: Call) -> None:
    status, out, err = call(
        *("--search", "halving", "--seeds", "1-2", "--set", "root.bach.maxapplications=1"),
        *("--minimise", "root.web.wait.men", "--trace", "absent.yaml"),
    )
    assert (status, out) == (2, "")
    for part in ("--search halving: needs at least three seeds", "root.bach", "wait.men", "absent.yaml"):
        assert part in err


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--set", f"{LIMIT}=1..4"), "a grid needs values"),
        (("--set", f"{LIMIT}=4..1", "--search", "random", "--points", "2"), "4 is not below 1"),
        (("--set", f"{LIMIT}=log(0..1)", "--search", "random", "--points", "2"), "begins above 0"),
        (("--set", f"{LIMIT}=1Gi..2Mi", "--search", "random", "--points", "2"), "same unit"),
        (("--search", "grid"), "nothing to sweep"),
        (("--set", f"{LIMIT}=1", "--search", "random"), "give the number of points"),
        (("--set", f"{LIMIT}=1", "--minimise", "use", "--maximise", "use"), "given twice"),
    ],
)
def test_bad_options(call: Call, options: tuple[str, ...], part: str) -> None:
    status, _, err = call(*options)
    assert status == 2
    assert part in err


def test_wait_that_never_ends_is_worse_than_any(call: Call) -> None:
    _, out, _ = call("--set", f"{LIMIT}=100m,1", "--json")
    means = [one["figures"]["wait.mean"]["mean"] for one in json.loads(out)["points"]]
    assert means[1] == "never"
    assert all(isinstance(mean, float) for mean in (means[0], means[2]))


# -- searches ------------------------------------------------------------------------------------------

COST = Objective(parse_figure("wait.mean"))
GAIN = Objective(parse_figure("use"), is_maximised=True)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12))
def test_front_has_exactly_the_points_that_no_other_one_beats(values: list[tuple[int, int]]) -> None:
    points = [
        SweptPoint(SweepPoint(number, (), ""), {(0, None): {"wait.mean": cost, "use": gain}})
        for number, (cost, gain) in enumerate(sorted(values, key=lambda one: (one[0], -one[1])))
    ]
    found = {
        (one.runs[0, None]["wait.mean"], one.runs[0, None]["use"])
        for one in pareto_front(points, (COST, GAIN))
    }
    assert found == {
        (cost, gain)
        for cost, gain in values
        if not any(a <= cost and b >= gain and (a, b) != (cost, gain) for a, b in values)
    }


@given(points=st.integers(2, 60), draws=st.integers(3, 40))
def test_halving_keeps_the_best_and_gives_it_all_draws(points: int, draws: int) -> None:
    made = [SweepPoint(number, (), "") for number in range(points)]
    asked: list[tuple[int, int]] = []

    def evaluate(some: Any, drawn: Any) -> Any:
        asked.append((len(some), len(drawn)))
        return {
            (one.number, draw): {"wait.mean": float(one.number * 7 % points)}
            for one in some
            for draw in drawn
        }

    swept = search_points("halving", made, [(0, seed) for seed in range(draws)], [COST], evaluate)
    best = min(swept[1:], key=lambda one: (one.point.number * 7 % points, one.point.number))
    assert len(best.runs) == len(swept[0].runs) == draws
    assert [count for _, count in asked] == rounds(points, draws)
    assert [count for count, _ in asked] == sorted((count for count, _ in asked), reverse=True)
    assert all(one.is_dropped == (len(one.runs) < draws) for one in swept)


# -- Dask ----------------------------------------------------------------------------------------------


@attrs.define
class DaskCluster:
    """A scheduler and its workers, as processes on loopback."""

    address: str
    processes: list[subprocess.Popen[bytes]]
    log: Any

    def add(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a process of the cluster."""
        self.processes.append(
            subprocess.Popen([sys.executable, "-m", *command], stdout=self.log, stderr=self.log)
        )
        return self.processes[-1]

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker with one thread."""
        place = ("--host", "127.0.0.1", "--no-dashboard", "--no-nanny", "--nthreads", "1")
        return self.add("distributed.cli.dask_worker", self.address, *place)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with (tmp_path / "dask.log").open("wb") as log:
        found = DaskCluster(f"tcp://127.0.0.1:{port}", [], log)
        try:
            found.add(
                "distributed.cli.dask_scheduler",
                *("--host", "127.0.0.1", "--port", str(port), "--no-dashboard"),
            )
            yield found
        finally:
            for process in found.processes:
                process.kill()
                process.wait()


def wait_for_workers(cluster: DaskCluster, count: int) -> None:
    from distributed import Client

    client: Any = Client
    with client(cluster.address, timeout=60, set_as_default=False) as connection:
        if count:
            connection.wait_for_workers(count, timeout=60)


@pytest.mark.slow
def test_dask_cluster_that_loses_a_worker_gives_the_same_result(
    cluster: DaskCluster, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = cluster.add_worker()
    cluster.add_worker()
    wait_for_workers(cluster, 2)
    options = ["--set", f"{LIMIT}=1,2", "--seeds", "1-3"]
    add = sweep_runs.RunJournal.add

    def add_and_kill(self: Any, order: Any, run: Any) -> None:
        add(self, order, run)
        victim.send_signal(signal.SIGKILL)

    monkeypatch.setattr(sweep_runs.RunJournal, "add", add_and_kill)
    inputs = ["--config", "queues.yaml", "--workload", "day.yaml", "--out", "far", "--dask", cluster.address]
    assert main(["sweep", *inputs, *options]) == 0
    assert victim.wait(60) == -signal.SIGKILL
    monkeypatch.setattr(sweep_runs.RunJournal, "add", add)
    assert call(*options, "--out", "near")[0] == 0
    for name in ("sweep.json", "runs.csv", "points.csv"):
        assert Path("far", name).read_bytes() == Path("near", name).read_bytes()


@pytest.mark.slow
def test_dask_scheduler_that_dies_or_has_no_workers_is_one_error(
    cluster: DaskCluster, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    wait_for_workers(cluster, 0)
    arguments = ["sweep", "--config", "queues.yaml", "--workload", "day.yaml", "--set", f"{LIMIT}=1,2"]
    assert main([*arguments, "--dask", cluster.address]) == 2
    assert "has no workers" in capsys.readouterr().err
    cluster.add_worker()
    wait_for_workers(cluster, 1)
    with DaskExecutor(cluster.address) as executor:
        future = executor.submit(sum, [1, 2])
        assert future.result(60) == 3
        waiting = executor.submit(signal.pause)
        cluster.processes[0].kill()
        with pytest.raises(Exception, match="connection was lost"):
            waiting.result(60)
