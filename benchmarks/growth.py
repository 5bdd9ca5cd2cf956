"""Growth: cost of a decision when the number of nodes, tasks, queues, applications or sizes doubles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs

from benchmarks.cases import OWN
from benchmarks.measurement import Measurement
from benchmarks.new_process import run_in_new_process

BASE: Mapping[str, int | str] = {
    "nodes": 4_000,
    "tasks": 20_000,
    "queues": 16,
    "applications": 128,
    "sizes": 20,
    "app_sort": "fair",
}
"""Constant dimensions while one of them grows; command-line options replace them."""
STEPS: Mapping[str, tuple[int, ...]] = {
    "nodes": (1_000, 2_000, 4_000, 8_000, 16_000),
    "tasks": (10_000, 20_000, 40_000, 80_000, 160_000),
    "queues": (16, 32, 64, 128, 256, 512, 1_024),
    "applications": (128, 256, 512, 1_024, 2_048, 4_096, 8_192),
    "sizes": (10, 20, 40, 80, 160, 320, 640),
}
"""Values of each growing dimension; each value is twice the previous one."""
PROMISED = ("nodes", "tasks", "queues", "applications")
"""Dimensions whose doubling may raise the cost of a decision by at most the factor `MOST`."""
MOST = 1.25
NODE_SORTS = ("fair", "binpacking")
HEAD = (
    f"{'what grows':>12}  {'to':>7}  {'nodes by':>10}  {'µs/decision':>11}  {'ratio':>6}  "
    f"{'µs/task':>8}  {'peak MB':>8}  {'yardstick':>9}"
)


@attrs.frozen
class Step:
    """Cost of a decision at one value."""

    axis: str
    value: int
    node_sort: str
    decision: float
    """Average CPU seconds per decision, from a registered ask to its allocation in the callback."""
    task: float
    """Average CPU seconds per task, which include the registration of the ask."""
    peak_mb: float
    yardstick: float

    @classmethod
    def of(cls, axis: str, found: Measurement) -> Step:
        """Return the step of a measurement."""
        tasks, value, node_sort = (found.shape[name] for name in ("tasks", axis, "node_sort"))
        took = {name: found.figures[f"{name}_s"] for name in ("take_in", "decide", "cpu")}
        # Scale elapsed time to CPU time, to exclude the time of other processes.
        own = took["cpu"] / (took["take_in"] + took["decide"])
        return cls(
            axis,
            int(value),
            str(node_sort),
            took["decide"] * own / int(tasks),
            took["cpu"] / int(tasks),
            found.peak_mb,
            found.yardstick,
        )

    def line(self, before: Step | None) -> str:
        """Return the line of the table; the ratio is to the step at half the value."""
        ratio = f"{self.decision / before.decision:.2f}" if before else ""
        return (
            f"{self.axis:>12}  {self.value:>7,}  {self.node_sort:>10}  {self.decision * 1e6:>11.1f}  "
            f"{ratio:>6}  {self.task * 1e6:>8.1f}  {self.peak_mb:>8.0f}  {self.yardstick:>9.2f}"
        )


Run = Callable[[Mapping[str, object]], Measurement]


def grow(
    axes: Iterable[str], options: Mapping[str, object], limit: float | None, repeat: int
) -> Iterator[Step]:
    """Measure every step of `axes`, for both node orders unless `options` has one."""

    def run(workload: Mapping[str, object]) -> Measurement:
        runs = (run_in_new_process(OWN, workload, limit) for _ in range(repeat))
        return min(runs, key=lambda found: found.figures["cpu_s"])

    sorts = [options["node_sort"]] if "node_sort" in options else NODE_SORTS
    for axis in axes:
        for node_sort in sorts:
            for value in STEPS[axis]:
                yield Step.of(axis, run({**BASE, **options, "node_sort": node_sort, axis: value}))


def table(steps: Iterable[Step]) -> Iterator[str]:
    """Yield the lines of the table as steps arrive."""
    yield HEAD
    before: Step | None = None
    for step in steps:
        same = before is not None and (before.axis, before.node_sort) == (step.axis, step.node_sort)
        yield step.line(before if same else None)
        before = step
