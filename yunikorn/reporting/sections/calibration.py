"""Section of the simulated waits beside those that a trace recorded, for the same applications."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from yunikorn.reporting.calibration import CalibratedGroup, Calibration
from yunikorn.reporting.formats import Number, count, duration, index
from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.section import Picture, Section
from yunikorn.reporting.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from yunikorn.reporting.palette import QueueColours

CALIBRATION = "calibration.png"
USERS = 10
"""Maximum number of listed users, those with the most applications."""


def section(result: FullReport) -> Section | None:
    """Return the section; None if the workload has no recorded waits."""
    found, curves = result.figures.calibration, result.curves.calibration
    if found is None:
        return None

    def draw(_: QueueColours) -> Figure | None:
        from yunikorn.reporting.plot_calibration import plot_calibration

        return None if curves is None else plot_calibration(curves)

    caption = (
        "Share of the applications that waited no longer than the value below, as recorded and as simulated. "
        "Where the simulated curve is further left, the simulation waits less than the cluster did."
    )
    return Section(
        "calibration",
        "Recorded and simulated waits",
        "Does the simulation behave like the cluster that the trace was recorded on?",
        pictures=[Picture(CALIBRATION, caption, draw)],
        tables=list(_tables(found)),
    )


def _tables(found: Calibration) -> Iterator[Table]:
    values = [
        ("mean", found.recorded.mean, found.simulated.mean),
        *((f"{each.percent} %", each.recorded, each.simulated) for each in found.quantiles),
        ("longest", found.recorded.max, found.simulated.max),
    ]
    rows = [
        [name, Number(duration, recorded), Number(duration, simulated)]
        for name, recorded, simulated in values
    ]
    applications = f"{found.recorded.count} applications"
    if found.without_start:
        applications += f"; {found.without_start} more have not started all tasks"
    note = f"{applications}; rank correlation {index(found.rank_correlation)}"
    if found.warning:
        note += f". Warning: {found.warning}"
    yield Table(
        "Recorded and simulated waits", ["wait", "recorded", "simulated"], rows, note, is_ordered=True
    )
    ranked = sorted(found.users, key=lambda user: -user.recorded.count)
    more = len(ranked) - USERS
    rest = f"{more} more users are in report.json" if more > 0 else ""
    if len(ranked) > 1:
        yield _groups("user", ranked[:USERS], rest)
    if len(found.sizes) > 1:
        yield _groups("size", found.sizes)


def _groups(what: str, groups: list[CalibratedGroup], note: str = "") -> Table:
    rows = [
        [
            group.name,
            Number(count, group.recorded.count),
            Number(duration, group.recorded.mean),
            Number(duration, group.simulated.mean),
            Number(index, group.rank_correlation),
        ]
        for group in groups
    ]
    heads = [what, "apps", "recorded, mean", "simulated, mean", "rank correlation"]
    return Table(f"Recorded and simulated waits by {what}", heads, rows, note)
