"""Options that define a workload, shared by all commands that run one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import click

from yunikorn.resources import INT64_MAX
from yunikorn.simulation.adjustments import Adjustments
from yunikorn.simulation.openb import OpenbOptions
from yunikorn.simulation.openb_nodes import GPU_COUNTS
from yunikorn.simulation.reader import FORMATS, read_workload
from yunikorn.simulation.swf import JOBS, MEMORY_UNITS, SwfOptions
from yunikorn.simulation.workload import Workload

SWF = SwfOptions()
OPENB = OpenbOptions()
FILE = click.Path(dir_okay=False, path_type=Path)


@attrs.frozen(kw_only=True)
class WorkloadSource:
    """Values of the options; plain data, so that another process can read the same workload."""

    workload: Path
    nodes: Path | None = None
    format_: str | None = None
    seed: int | None = None
    hold: bool = False
    speed_up: Fraction = Fraction(1)
    nodes_fraction: Fraction = Fraction(1)
    strict: bool = False
    swf_queue: str = SWF.queue
    swf_user: str = SWF.user
    swf_group: str = SWF.group
    swf_memory: str = SWF.memory
    swf_jobs: str = SWF.jobs
    openb_queue: str = OPENB.queue
    openb_user: str = OPENB.user
    openb_gpus: str = OPENB.gpus

    def read(self) -> Workload:
        """Return the workload after all adjustments; raises `InputError` and `UsageError`."""
        adjustments = Adjustments(self.hold, self.speed_up, self.nodes_fraction)
        adjustments.check()
        found = read_workload(
            self.workload,
            format=self.format_ or "",
            nodes=self.nodes,
            swf=SwfOptions(self.swf_queue, self.swf_user, self.swf_group, self.swf_memory, self.swf_jobs),
            openb=OpenbOptions(self.openb_queue, self.openb_user, self.openb_gpus),
            strict=self.strict,
            seed=self.seed,
        )
        return adjustments.apply(found)


def _ratio(_: click.Context, __: click.Parameter, value: str) -> Fraction:
    try:
        return Fraction(value if len(value) <= 40 else "")
    except (ValueError, ZeroDivisionError) as error:
        raise click.BadParameter(f"expected a number such as 10 or 0.25, got '{value[:40]}'") from error


_OPTIONS = (
    click.option(
        "--workload",
        required=True,
        type=click.Path(path_type=Path),
        help="The workload: a scenario, a trace, or a folder with openb lists.",
    ),
    click.option("--nodes", type=FILE, help="The nodes, instead of those of the workload."),
    click.option(
        "--format",
        "format_",
        type=click.Choice(FORMATS),
        help="The workload's format, if it is not detected.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, INT64_MAX),
        help="Seed of a scenario with `generate`, instead of its own seed.",
    ),
    click.option("--hold", is_flag=True, help="Tasks never end: fill the cluster."),
    click.option(
        "--speed-up", metavar="F", default="1", callback=_ratio, help="Divide all arrival times by F."
    ),
    click.option(
        "--nodes-fraction",
        metavar="F",
        default="1",
        callback=_ratio,
        help="Use this fraction of the nodes, such as 0.25.",
    ),
    click.option("--strict", is_flag=True, help="Refuse a trace with invalid lines."),
    click.option("--swf-queue", default=SWF.queue, show_default=True, help="Queue of a trace's jobs."),
    click.option("--swf-user", default=SWF.user, show_default=True, help="User of a trace's jobs."),
    click.option("--swf-group", default=SWF.group, show_default=True, help="Group of a trace's jobs."),
    click.option(
        "--swf-memory",
        type=click.Choice(MEMORY_UNITS),
        default=SWF.memory,
        show_default=True,
        help="Unit of a trace's memory columns.",
    ),
    click.option(
        "--swf-jobs",
        type=click.Choice(tuple(JOBS)),
        default=SWF.jobs,
        show_default=True,
        help="How the tasks of a trace's job start: independently, or all at once.",
    ),
    click.option("--openb-queue", default=OPENB.queue, show_default=True, help="Queue of a list's pods."),
    click.option("--openb-user", default=OPENB.user, show_default=True, help="User of a list's pods."),
    click.option(
        "--openb-gpus",
        type=click.Choice(GPU_COUNTS),
        default=OPENB.gpus,
        show_default=True,
        help="How GPUs are counted: in thousandths of all GPUs of a node, or in whole ones.",
    ),
)


def workload_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a workload to a command, which receives one argument `source` for them."""
    names = [field.name for field in attrs.fields(WorkloadSource)]

    @functools.wraps(command)
    def call(**arguments: Any) -> Any:
        given = {name: arguments.pop(name) for name in names if name in arguments}
        return command(source=WorkloadSource(**given), **arguments)

    decorated: Callable[..., Any] = call
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
