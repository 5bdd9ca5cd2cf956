"""Suggested fixes of what a verdict names: an option, a command or a page for each problem."""

from __future__ import annotations

from collections.abc import Mapping

from yunikorn_lab.reporting.idle_capacity import (
    DRAINED,
    FRAGMENTATION,
    GANG,
    PERMIT,
    PLACEHOLDERS,
    POLICY,
    PREDICATES,
    RESERVED,
    TOO_LARGE,
)
from yunikorn_lab.simulation.limit_waits import APPLICATIONS, LIMIT, QUOTA

NOTHING_SUBMITTED = "Check the times of the workload, and --until."
CUT = "Without --until, or with a later one, more of them end."
REJECTED = "`yunikorn place` shows where a configuration places an application."
FAILED = "applications.csv of --out has the reason of each."
FITS_NOWHERE = "Give larger nodes (--nodes), or smaller tasks."
WAITING = "--explain APP names the smallest change that lets an application run."
DOUBTFUL = "Check the input before the policies (docs/reports.md#calibration)."
WAITS = "`yunikorn compare --set` tries other settings, `yunikorn size` other numbers of nodes."
DISPARITY = "Compare other guarantees or sort policies of the queues with `yunikorn compare --set`."
TARGET = "`yunikorn size` finds the nodes that meet a target."
GUARANTEE = "Check whether preemption may enforce it (docs/scheduling.md#guarantees)."
LIMITS = "Raise it, or compare other values with `yunikorn compare --set`."
PREEMPTION = "Compare a longer `preemption.delay`, or other guarantees (docs/scheduling.md#preemption)."
GANGS = "Compare a longer gangtimeout, or the style Atomic (docs/scheduling.md#gangs)."
PLUGINS = "The table of failures names them."

IDLE: Mapping[str, str] = {
    PLACEHOLDERS: "Atomic gangs hold no room before all members fit (docs/scheduling.md#atomic).",
    PERMIT: "Compare other settings of the permit policy.",
    RESERVED: "Compare settings of reservations (docs/scheduling.md#reservations).",
    PREDICATES: "Check node selectors, and attributes of the nodes.",
    GANG: "Compare smaller gangs, or other settings of Atomic gangs (docs/scheduling.md#atomic).",
    FRAGMENTATION: "Compare the node sort policy `binpacking`, or tasks of other sizes.",
    DRAINED: "Resume or replace the drained nodes.",
    QUOTA: "Raise the max of the queue that --explain APP names.",
    LIMIT: "Raise the limit that --explain APP names.",
    APPLICATIONS: "Raise the maximum number of applications that --explain APP names.",
    POLICY: "--explain APP names the policy.",
    TOO_LARGE: FITS_NOWHERE,
}
"""Fixes by the cause of idle capacity."""


def fix_of_load(load: float) -> str:
    """Return the fix of an offered load above 1."""
    return f"About {load:.1f} times the nodes would do: --nodes-fraction tries it."
