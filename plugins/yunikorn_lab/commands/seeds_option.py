"""Option `--seeds`: the workloads that a command draws, one for each seed."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs
import click

from yunikorn.errors import UsageError
from yunikorn_commands.input_source import InputError, SeedWithoutEffect
from yunikorn_lab.commands.workload import WorkloadSource
from yunikorn_lab.reporting.comparison import Drawn
from yunikorn_lab.simulation.resampling import AUTO

MOST_SEEDS = 1_000
_SEEDS = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?\Z")


def _seeds(_: click.Context, __: click.Parameter, value: str | None) -> list[int]:
    """Parse seeds such as `1-5` or `3,8,9`."""
    found: dict[int, None] = {}
    for part in value.split(",") if value else ():
        match = _SEEDS.match(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first or last - first >= MOST_SEEDS:
            raise click.BadParameter(f"expected whole numbers such as 1,2,7 or 1-{MOST_SEEDS}, got '{part}'")
        found.update(dict.fromkeys(range(first, last + 1)))
    return list(found)


seeds_option = click.option(
    "--seeds",
    metavar="N[,N...]",
    callback=_seeds,
    help="Generate the workload with each of these seeds, such as 1-10.",
)


def draws(source: WorkloadSource, seeds: Sequence[int]) -> list[Drawn]:
    """Return a workload for each seed, drawn from its distributions, or resampled if it has none."""
    if not seeds:
        return [Drawn(source, source.seed)]
    if source.shuffle is not None:
        raise UsageError("--shuffle has one seed: leave it out, --seeds shuffles a list without times itself")
    if source.resample is None and _is_recorded(source):
        source = attrs.evolve(source, resample=AUTO)
    return [Drawn(attrs.evolve(source, seed=seed), seed) for seed in seeds]


def source_of(drawn: Drawn) -> WorkloadSource:
    """Return the options of a workload of `draws`."""
    assert isinstance(drawn.source, WorkloadSource)
    return drawn.source


def _is_recorded(source: WorkloadSource) -> bool:
    """Return True for a workload without distributions; the reader of the runs reports invalid input."""
    try:
        attrs.evolve(source, seed=0).read()
    except SeedWithoutEffect:
        return True
    except (InputError, UsageError):
        pass
    return False
