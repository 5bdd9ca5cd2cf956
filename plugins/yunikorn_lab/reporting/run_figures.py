"""Figures and distributions that the full report adds to the plain report.

Shares of applications that met or missed the wait target of their queue.

The wait of an application lasts from its submission to the start of its last task. An application without
that start has missed the target if its wait until its end, or the end of the simulation, exceeds the target;
else it is undecided. The share is that of the decided applications.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from yunikorn.clock import SECOND
from yunikorn.text import suggest
from yunikorn_commands.input_source import InputChecks
from yunikorn_lab.reporting.calibration import Calibration, CalibrationCurves
from yunikorn_lab.reporting.group_counts import GroupReport
from yunikorn_lab.reporting.idle_capacity import IdleReport
from yunikorn_lab.reporting.observations import ApplicationRow, Fragmentation
from yunikorn_lab.reporting.topology_rooms import TopologyReport
from yunikorn_lab.simulation.scenario_values import parse_time
from yunikorn_lab.simulation.statistics import DIGITS, Summary, seconds


@attrs.frozen
class WaitTarget:
    """Applications of a queue and all queues below it, compared with a wait target."""

    queue: str
    target: float
    """Target in seconds; a wait of exactly this length meets it."""
    met: int
    missed: int
    undecided: int
    """Applications that have not started all tasks, and have waited no longer than the target."""
    share_met: float | None
    """Met part of the decided applications; None if none is decided."""


class WaitTargets:
    """Counters of the wait targets of one simulation."""

    def __init__(self, targets: Mapping[str, int]) -> None:
        """Create counters for targets (ns) by queue."""
        self._targets = {queue: seconds(target) for queue, target in sorted(targets.items())}
        self._counts = {queue: [0, 0, 0] for queue in self._targets}

    def add(self, row: ApplicationRow, now: float) -> None:
        """Count an application at its end, or at the end of the simulation, which is `now` (seconds)."""
        for queue, target in self._targets.items():
            if row.queue != queue and not row.queue.startswith(f"{queue}."):
                continue
            if row.whole_wait is not None:
                verdict = int(row.whole_wait > target)
            else:
                waited = (now if row.ended is None else row.ended) - row.submitted
                verdict = 1 if waited > target else 2
            self._counts[queue][verdict] += 1

    def report(self) -> list[WaitTarget]:
        """Return the figures, sorted by queue."""
        return [
            WaitTarget(
                queue,
                self._targets[queue],
                met,
                missed,
                undecided,
                round(met / (met + missed), DIGITS) if met + missed else None,
            )
            for queue, (met, missed, undecided) in self._counts.items()
        ]


def parse_targets(texts: Iterable[str], known: Iterable[str], *, are_all: bool) -> dict[str, int]:
    """Read targets such as `root.web=5m` as nanoseconds by queue; raises `UsageError` with all problems.

    `known` are the paths of the configured queues; other queues are accepted unless these `are_all`.
    """
    found: dict[str, int] = {}
    paths = sorted(set(known))
    checks = InputChecks()
    for text in texts:
        queue, sign, time = text.rpartition("=")
        queue = queue.strip().lower()
        with checks.part(f"--slo {text}: "):
            if not sign or not queue:
                raise ValueError("expected QUEUE=TIME, such as root.web=5m")
            if queue in found:
                raise ValueError(f"queue {queue} has two targets; give one")
            if queue not in paths and (are_all or not queue.startswith("root.")):
                raise ValueError(f"unknown queue '{queue}'{suggest(queue, paths)}")
            found[queue] = parse_time(time.strip())
            if found[queue] > 9_000_000_000 * SECOND:
                raise ValueError("the target is too long")
    checks.check()
    return found


@attrs.frozen
class Fairness:
    """Jain's index of the mean bounded slowdowns, and of the usages, of queues and of users.

    The slowdown considers queues and users with finished applications, the usage those with submitted
    applications. The index is None if there are none.
    """

    slowdown_of_queues: float | None
    slowdown_of_users: float | None
    use_of_queues: float | None
    use_of_users: float | None


@attrs.frozen
class Figures:
    """Figures that the full report adds to the plain report."""

    wait: Summary | None
    """Seconds from submission to the start of the first task, over all applications."""
    whole_wait: Summary | None
    """Seconds from submission to the start of the last task, over all applications."""
    slowdown: Summary | None
    """Bounded slowdown of the finished applications."""
    fairness: Fairness
    fragmentation: dict[str, dict[str, Fragmentation]]
    """Fragmentation by partition and resource type."""
    idle: dict[str, dict[str, IdleReport]]
    """Capacity that stood idle while work waited, by partition and resource type."""
    queues: list[GroupReport]
    """Leaf queues that had an application at any time."""
    users: list[GroupReport]
    sizes: list[GroupReport]
    """Size classes with applications, in ascending order of size."""
    use_at_end: dict[str, dict[str, float]] = attrs.Factory(dict)
    """Used part of the capacity at the end of the simulation, by partition and resource type."""
    slo: list[WaitTarget] = attrs.Factory(list)
    """Applications that met or missed the wait targets of `--slo`, by queue."""
    calibration: Calibration | None = None
    """Simulated and recorded waits; None if the workload has no recorded waits."""
    topology: dict[str, TopologyReport] = attrs.Factory(dict)
    """Domains by partition; left out of results of workloads without gangs that ask for domains."""


@attrs.frozen
class Curves:
    """Distributions for plots: numbers in ascending order."""

    waits: dict[str, list[float]]
    """Seconds from submission to the start of the last task, by queue."""
    slowdowns: dict[str, list[float]]
    all_waits: list[float]
    """Waits over all queues."""
    all_slowdowns: list[float]
    calibration: CalibrationCurves | None = None
    """Recorded and simulated waits of the same applications; None without recorded ones."""
