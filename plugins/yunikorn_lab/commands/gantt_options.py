"""Options of `yunikorn simulate` that select a Gantt chart."""

from __future__ import annotations

from pathlib import Path

import attrs
import click

from yunikorn.errors import UsageError
from yunikorn_commands.option_groups import option, option_class
from yunikorn_lab.commands.run_options import parse_moment
from yunikorn_lab.reporting.gantt import KINDS, GanttRequest
from yunikorn_lab.simulation.workload import Workload


@attrs.frozen
class GanttOptions:
    """The options as they are given."""

    gantt: str | None = option(
        type=click.Choice(KINDS),
        help="Also write gantt.csv and gantt.png to --out: tasks by node, or runs and waits of applications.",
    )
    start: int | None = option(
        "--from", metavar="TIME", callback=parse_moment, help="Begin of the chart of --gantt."
    )
    stop: int | None = option(
        "--to", metavar="TIME", callback=parse_moment, help="End of the chart of --gantt."
    )
    names: tuple[str, ...] = option(
        "--gantt-row",
        default=(),
        metavar="NAME",
        multiple=True,
        help="Node or application id to show in the chart of --gantt, or a pattern such as 'gpu-*'; may be"
        " given several times.",
    )

    def request(self, workload: Workload, *, out: Path | None, until: int | None) -> GanttRequest | None:
        """Return the selected chart, or None; raises `UsageError` for options that do not apply."""
        start, stop = self.start or 0, self.stop
        if self.gantt is None:
            given = {"--from": self.start, "--to": stop, "--gantt-row": self.names or None}
            for option in [name for name, value in given.items() if value is not None]:
                raise UsageError(f"{option} selects a part of the chart of --gantt: give --gantt")
            return None
        if out is None:
            raise UsageError("--gantt writes files to --out: give --out")
        if stop is not None and stop <= start:
            raise UsageError(f"--to has to be later than {'--from' if start else 0}")
        if until is not None and start >= until:
            raise UsageError("--from has to be earlier than --until, where the run ends")
        request = GanttRequest(self.gantt, start, stop, self.names)
        request.check(workload)
        return request


gantt_options = option_class(GanttOptions, "chart")
"""Options of a chart, for which a command receives one argument `chart`."""
