"""Figures and distributions that the full report adds to the plain report."""

from __future__ import annotations

import attrs

from yunikorn_lab.reporting.calibration import Calibration, CalibrationCurves
from yunikorn_lab.reporting.group_counts import GroupReport
from yunikorn_lab.reporting.idle_capacity import IdleReport
from yunikorn_lab.reporting.observations import Fragmentation
from yunikorn_lab.reporting.topology_rooms import TopologyReport
from yunikorn_lab.reporting.wait_targets import WaitTarget
from yunikorn_lab.simulation.statistics import Summary


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
