"""Memory does not grow with the length of a workload, and long traces are stored as columns of numbers."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lab.simulation.test_replay import conserved
from yunikorn.framework.registry import Registry
from yunikorn_lab.simulation.engine import Progress
from yunikorn_lab.simulation.out_folder import FolderRecorder, OutFolder
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.scenario_writer import scenario_lines
from yunikorn_lab.simulation.swf_jobs import JobTable, SwfJob, parse_job, split_line
from yunikorn_lab.simulation.trace_line import BadLine

CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: a}]
"""
SCENARIO = """
seed: 3
nodes: [{name: n, count: 10, resources: {vcore: 16}}]
generate:
  - id: x
    count: 1500
    arrivals: {process: poisson, every: 10s}
    queue: root.a
    tasks:
      - count: {distribution: choice, values: [1, 2, 4]}
        resources: {vcore: 1}
        runtime: {distribution: exponential, mean: 3m}
"""


class Census:
    """Counts applications and tasks in memory at intervals, beyond those that earlier tests left."""

    def __init__(self) -> None:
        self.most: Counter[str] = Counter()
        self._steps = 0
        gc.collect()
        self._before = self._count()

    def __call__(self, progress: Progress) -> bool:
        self._steps += 1
        if self._steps % 400 == 0:
            self.most |= self._count() - self._before
        return True

    @staticmethod
    def _count() -> Counter[str]:
        names = (f"{type(each).__module__}.{type(each).__name__}" for each in gc.get_objects())
        return Counter(name for name in names if name in COUNTED)


COUNTED = {
    "yunikorn_lab.simulation.workload.WorkloadApplication",
    "yunikorn_lab.simulation.rm_state.Submitted",
    "yunikorn_lab.simulation.rm_state.Running",
    "yunikorn.model.application.Application",
    "yunikorn.interface.messages.Allocation",
}


@pytest.mark.parametrize("written", [False, True], ids=["drawn", "written"])
def test_memory_is_bounded_by_concurrent_applications(
    written: bool, tmp_path: Path, registry: Registry
) -> None:
    path = tmp_path / "short.yaml"
    path.write_text(SCENARIO, "utf-8")
    if written:
        text = "\n".join(scenario_lines(read_workload(path)))
        path = tmp_path / "long.yaml"
        path.write_text(text, "utf-8")
    census = Census()
    with OutFolder(tmp_path / "out") as out:
        report = simulate(CONFIG, read_workload(path), registry, recorder=FolderRecorder(out), watch=census)
    assert conserved(report)
    assert report.applications.finished == 1500
    # On average 18 applications with 42 tasks exist at a time, of 1,500 with 3,500 in all.
    assert set(census.most) == COUNTED
    assert all(10 < count < 200 for count in census.most.values()), census.most


numbers = st.integers(0, 30)
lines = st.builds(
    lambda number, submit, run: f"{number} {submit} -1 {run} 1 -1 -1 -1 -1 -1 1 7 3 5 1 2 -1 -1",
    numbers,
    st.one_of(numbers, st.floats(0, 30)),
    st.one_of(st.integers(-1, 9_000_000_000), st.floats(-1, 1e6)),
)


@given(st.lists(lines, max_size=12))
def test_columns_equal_lists(texts: list[str]) -> None:
    table, jobs = JobTable(), dict[int, tuple[SwfJob, int]]()
    for number, text in enumerate(texts, 1):
        job = parse_job(split_line(text))
        known = jobs.get(job.number)
        assert table.line_of(job.number) == (known[1] if known else None)
        if known is None:
            table.add(job, number)
            jobs[job.number] = (job, number)
    expected = sorted((job for job, _ in jobs.values()), key=lambda job: job.submit)
    assert list(table) == list(table) == expected
    assert len(table) == len(expected)
    found = [value for job in table for value in job if not isinstance(value, tuple)]
    assert all(isinstance(value, float) != float(value).is_integer() for value in found)
    if expected:
        assert table.earliest == expected[0].submit


def test_numbers_out_of_range_are_bad_lines() -> None:
    for text in ("9" * 30, "-" + "9" * 30, "1e300"):
        with pytest.raises(BadLine, match="expected a user that fits 64 bits in column 12"):
            parse_job(f"1 0 -1 1 1 -1 -1 -1 -1 -1 1 {text} 3 5 1 2 -1 -1".split())
