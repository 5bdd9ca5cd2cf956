"""Shares of applications that met or missed the wait target of their queue.

The wait of an application lasts from its submission to the start of its last task. An application without
that start has missed the target if its wait until its end, or the end of the simulation, exceeds the target;
else it is undecided. The share is that of the decided applications.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn.text import suggest
from yunikorn_lab.reporting.observations import ApplicationRow
from yunikorn_lab.simulation.scenario_values import parse_time
from yunikorn_lab.simulation.statistics import DIGITS, seconds


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
    problems = []
    for text in texts:
        queue, sign, time = text.rpartition("=")
        queue = queue.strip().lower()
        try:
            if not sign or not queue:
                raise ValueError("expected QUEUE=TIME, such as root.web=5m")
            if queue in found:
                raise ValueError(f"queue {queue} has two targets; give one")
            if queue not in paths and (are_all or not queue.startswith("root.")):
                raise ValueError(f"unknown queue '{queue}'{suggest(queue, paths)}")
            found[queue] = parse_time(time.strip())
            if found[queue] > 9_000_000_000 * SECOND:
                raise ValueError("the target is too long")
        except ValueError as error:
            problems.append(f"--slo {text}: {error}")
    if problems:
        raise UsageError("\n".join(problems))
    return found
