"""Simulations of rack loads under several policies, and their figures in one table."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence

import attrs

from benchmarks.example_packages import example_module
from benchmarks.failure import BenchmarkFailure
from benchmarks.racks import baselines
from benchmarks.racks.loads import configuration, rack_load
from yunikorn.framework.registry import Registry
from yunikorn_lab.reporting.full_report import study
from yunikorn_lab.reporting.observations import ApplicationRow
from yunikorn_lab.reporting.tables import duration, percent
from yunikorn_lab.simulation.statistics import Sample, nearest_rank
from yunikorn_lab.simulation.workload import Workload

SINGLE, IN_RACK, IN_BLOCK = "single tasks", "gangs of 2 to 16", "gangs of 32 and 64"
GROUPS = (SINGLE, IN_RACK, IN_BLOCK)
FIRST_SEED = 101
"""`best-fit` was chosen on the seeds up to 1700, and confirmed on 400 others."""
MINUTE = 60.0
RESAMPLES = 400
"""Number of random choices of loads, with replacement, from which an interval is estimated."""


@attrs.define
class PolicyFigures:
    """Figures of one policy over all loads."""

    policy: str
    waits: dict[str, Sample] = attrs.field(factory=lambda: {group: Sample() for group in GROUPS})
    placed: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(GROUPS, 0))
    in_one: dict[str, float] = attrs.field(factory=lambda: dict.fromkeys(GROUPS, 0.0))
    """Number of gangs in one domain of the level that they are meant for."""
    losses: dict[tuple[str, int], Sample] = attrs.Factory(dict)
    """Part of the room that gangs of a size cannot use, by level and size."""
    large: list[list[float]] = attrs.Factory(list)
    """Waits of gangs of 32 and 64 of each load."""
    use: Sample = attrs.Factory(Sample)
    decisions: int = 0
    seconds: float = 0.0

    def add(self, load: Workload, registry: Registry, patience: str) -> None:
        """Simulate a load under the policy."""
        self.large.append([])
        start = time.process_time()
        result = study(configuration(self.policy, patience), load, registry, rows=self._wait)
        self.seconds += time.process_time() - start
        self.decisions += result.report.decisions
        counts = result.report.applications
        if counts.finished != counts.submitted or result.report.plugin_faults:
            raise BenchmarkFailure(f"{self.policy}: {counts}, {result.report.plugin_faults}")
        found = result.figures.topology["default"]
        for gangs in found.gangs:
            group, level = (IN_RACK, "rack") if gangs.largest <= 16 else (IN_BLOCK, "block")
            self.placed[group] += gangs.placed
            self.in_one[group] += gangs.in_one[level] * gangs.placed
        for room in found.slices:
            self.losses.setdefault((room.level, room.size), Sample()).add(room.loss or 0.0)
        self.use.add(result.report.utilisation["default"]["gpu"])

    def _wait(self, row: ApplicationRow) -> None:
        group = SINGLE if row.tasks == 1 else IN_RACK if row.tasks <= 16 else IN_BLOCK
        assert row.whole_wait is not None
        self.waits[group].add(row.whole_wait)
        if group is IN_BLOCK:
            self.large[-1].append(row.whole_wait)

    def differences(self, first: PolicyFigures) -> Iterator[str]:
        """Yield the 95 % intervals of the differences to another policy in the waits of large gangs.

        Both policies have the same loads, of which some are drawn again and again, with replacement.
        """
        rng, count = random.Random(0), len(self.large)
        draws = [rng.choices(range(count), k=count) for _ in range(RESAMPLES)]
        for figure in LARGE.values():
            found = sorted(
                figure(sorted(wait for load in draw for wait in self.large[load]))
                - figure(sorted(wait for load in draw for wait in first.large[load]))
                for draw in draws
            )
            yield " to ".join(f"{nearest_rank(found, bound) / MINUTE:+.1f}" for bound in (3, 97))

    def cells(self, first: PolicyFigures) -> Iterator[str]:
        """Yield the cells of the row of the policy, `first` being that of the first row."""
        yield self.policy
        for group in GROUPS[:2]:
            yield " / ".join(duration(self.waits[group].percentile(percentage)) for percentage in (50, 99))
        large = sorted(wait for load in self.large for wait in load)
        yield " / ".join(duration(figure(large)) for figure in LARGE.values())
        yield from self.differences(first)
        for group in GROUPS[1:]:
            yield percent(self.in_one[group] / self.placed[group] if self.placed[group] else None)
        for key in (("rack", 16), ("block", 64)):
            yield percent(self.losses.get(key, Sample()).mean())
        yield percent(self.use.mean())
        yield f"{self.decisions / self.seconds:,.0f}"


LARGE: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda ordered: sum(ordered) / max(len(ordered), 1),
    "95 %": lambda ordered: nearest_rank(ordered, 95) if ordered else 0.0,
    "99 %": lambda ordered: nearest_rank(ordered, 99) if ordered else 0.0,
}
"""Figures of the waits of large gangs, of sorted numbers."""
HEAD = (
    "policy",
    *(f"{group}: median / 99 %" for group in GROUPS[:2]),
    f"{IN_BLOCK}: {' / '.join(LARGE)}",
    *(f"difference of the {name} (min)" for name in LARGE),
    "2 to 16 in one rack",
    "32 and 64 in one block",
    "lost in racks",
    "lost in blocks",
    "use",
    "decisions per CPU second",
)
"""Titles of the columns; the first ones are waits."""


def registry_of_baselines() -> Registry:
    """Return a registry with the default policies and the baselines."""
    registry = Registry.load(third_party=False)
    for module, name in ((baselines, "baselines"), (example_module("yunikorn-slurm-blocks"), "slurm-blocks")):
        if not registry.register(module, name):
            raise BenchmarkFailure(str(registry.broken[-1]))
    return registry


def compare(
    policies: Sequence[str], seeds: int, applications: int, *, patience: str, opposite: bool
) -> Iterator[PolicyFigures]:
    """Yield the figures of each policy over the same loads."""
    registry = registry_of_baselines()
    loads = [rack_load(FIRST_SEED + number, applications, opposite=opposite) for number in range(seeds)]
    for policy in policies:
        figures = PolicyFigures(policy)
        for load in loads:
            figures.add(load, registry, patience)
        yield figures
