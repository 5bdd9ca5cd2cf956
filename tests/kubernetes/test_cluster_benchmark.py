"""The benchmark in a cluster: rules of its kinds of pods, and one small run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent.parent
if str(CHECKOUT) not in sys.path:
    # The benchmarks live in the checkout only; their path comes after all installed packages.
    sys.path.append(str(CHECKOUT))

from benchmarks.cluster.contenders import CONTENDERS  # noqa: E402
from benchmarks.cluster.kinds import KINDS, node_objects  # noqa: E402
from benchmarks.cluster.restarts import COLUMNS as RESTART_COLUMNS  # noqa: E402
from benchmarks.cluster.restarts import measure as measure_restart  # noqa: E402
from benchmarks.cluster.run import COLUMNS, Plan, measure  # noqa: E402
from benchmarks.failure import BenchmarkFailure  # noqa: E402
from tests.kubernetes.cluster import Cluster  # noqa: E402

GENERAL, BATCH = "n-1", "n-4"


@pytest.mark.parametrize(
    ("kind", "places", "problem"),
    [
        ("plain", ["n-1"] * 33, "was given 33 pods"),
        ("plain", [BATCH], "do not tolerate the taint of node n-4"),
        ("selector", [BATCH, GENERAL], "1 pods are outside of the nodes they select"),
        ("spread", ["n-1", "n-11", "n-2"], "group 0 are spread unevenly"),
        ("apart", ["n-1", "n-2", "n-1"], "several pods of group 0 are on one node"),
    ],
)
def test_wrong_decisions_fail(kind: str, places: list[str], problem: str) -> None:
    with pytest.raises(BenchmarkFailure, match=problem):
        KINDS[kind].verify({f"{kind}-0-{number}": place for number, place in enumerate(places)}, 40)


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        ("plain", ["n-1"] * 32),
        ("selector", ["n-0", "n-4"]),
        ("spread", [f"n-{number}" for number in (1, 2, 3, 5, 6, 7, 9, 10, 14, 18, 22)]),
        ("apart", ["n-1", "n-2"]),
    ],
)
def test_right_decisions_pass(kind: str, places: list[str]) -> None:
    KINDS[kind].verify({f"{kind}-0-{number}": place for number, place in enumerate(places)}, 40)


@pytest.mark.parametrize("kind", KINDS)
def test_pods_of_a_kind_have_the_scheduler_and_distinct_names(kind: str) -> None:
    pods = [*KINDS[kind].pods("yunikorn", 50, 100)]

    assert len({pod["metadata"]["name"] for pod in pods}) == 100
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"yunikorn"}
    assert {pod["metadata"]["labels"]["group"] for pod in pods} == {f"{kind}-0", f"{kind}-1"}


def test_a_small_run_has_all_figures(cluster: Cluster) -> None:
    for node in node_objects(40):
        cluster.kubectl.create(node)
    kind = KINDS["plain"]
    contender = CONTENDERS["yunikorn"]
    plan = Plan(
        kinds=(kind,),
        contenders=(contender,),
        nodes=40,
        pods=20,
        rate=50.0,
        seconds=0.2,
        running=0,
        kubelets=True,
        limit=60.0,
    )

    result = measure(cluster, plan, kind, contender)

    assert len(result.cells()) == len(COLUMNS)
    figures = json.loads(result.to_json())
    assert (figures["pods"], figures["late"]) == (20, 10)
    assert 0 < figures["latency_p50_s"] <= figures["latency_p99_s"]
    assert all(figures[name] > 0 for name in ("pods_per_s", "cpu_s", "server_cpu_s", "start_to_last_s"))


def test_a_start_has_all_figures(cluster: Cluster, tmp_path: Path) -> None:
    for node in node_objects(5):
        cluster.kubectl.create(node)

    result = measure_restart(cluster, 1, str(tmp_path))

    assert len(result.cells()) == len(RESTART_COLUMNS)
    assert json.loads(result.to_json())["number"] == 1
    assert 0 < result.first_s <= result.last_s
    assert result.cpu_s > 0
