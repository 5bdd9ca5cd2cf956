"""`yunikorn workload`: draw a workload from named distributions and a seed, and write it as a scenario.

Exit status: 0 when the scenario was written, 2 when the call or the description cannot be used (then nothing
is written).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import click

from yunikorn.cli.description import (
    ARRIVALS,
    NODE_SIZE,
    NODES,
    QUEUE,
    RUNTIME,
    SIZE,
    by_option,
    describe,
)
from yunikorn.cli.workload_source import FILE
from yunikorn.errors import UsageError
from yunikorn.resources import INT64_MAX
from yunikorn.simulation.input_error import InputError
from yunikorn.simulation.scenario import read_scenario
from yunikorn.simulation.scenario_writer import scenario_lines
from yunikorn.simulation.source import read_content, yaml_text
from yunikorn.simulation.workload import Workload

SPEC = "NAME,OPTION=VALUE,..."
SIZES = "TYPE=AMOUNT"
SEED = click.IntRange(0, INT64_MAX)
words = " ".join


@click.command("workload")
@click.argument("description", required=False, type=FILE)
@click.option("--seed", type=click.IntRange(0, INT64_MAX), help="Random seed. [default: the file's, or 0]")
@click.option("--applications", type=int, metavar="N", help="Maximum number of applications.")
@click.option("--during", metavar="TIME", help="Time during which applications arrive.")
@click.option("--arrivals", metavar=SPEC, help=f"Distribution of arrivals. [default: {ARRIVALS}]")
@click.option("--tasks", metavar=SPEC, help="Number of tasks per application. [default: 1]")
@click.option("--size", multiple=True, metavar=SIZES, help=f"Resources of a task. [default: {words(SIZE)}]")
@click.option("--runtime", metavar=SPEC, help=f"Runtime of a task. [default: {RUNTIME}]")
@click.option("--queue", metavar=SPEC, help=f"Queue of an application. [default: {QUEUE}]")
@click.option("--user", metavar=SPEC, help="User of an application. [default: no user]")
@click.option("--gang", metavar="STYLE", help="Gang style of an application: Soft, Hard or Atomic.")
@click.option("--nodes", metavar="N", type=int, help=f"Number of nodes. [default: {NODES}]")
@click.option(
    "--node-size", multiple=True, metavar=SIZES, help=f"Resources of a node. [default: {words(NODE_SIZE)}]"
)
@click.option("--short", is_flag=True, help="Write the description itself, not the generated workload.")
@click.option("--out", type=FILE, help="Write to this file, not to standard output.")
def command(
    description: Path | None,
    seed: int | None,
    short: bool,
    out: Path | None,
    **options: object,
) -> int:
    """Generate a random workload and write it as a scenario, one line for each application.

    DESCRIPTION is a scenario with `generate`; without it, the options describe one: 1000 applications if
    neither --applications nor --during is given. A distribution is written as its name and its options:
    lognormal,median=10m,sigma=1.2 or choice,1=5,4=3 (each value with its weight) or zipf,names=user,count=20.
    Equal calls give equal scenarios, on every machine.
    """
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if description is not None:
        if given:
            option = next(iter(given)).replace("_", "-")
            raise UsageError(f"--{option} cannot be used with a description: change the description instead")
        file, text = str(description), yaml_text(read_content(description), str(description))
    else:
        file, text = "options", describe(given, seed or 0)
    workload = _read(text, file, description, seed)
    _write(text.splitlines() if short else scenario_lines(workload), out)
    return 0


def _read(text: str, file: str, description: Path | None, seed: int | None) -> Workload:
    if description is not None:
        return read_scenario(text, file, description.name, seed=seed)
    try:
        return read_scenario(text, file, "workload")
    except InputError as error:
        raise UsageError("\n".join(map(by_option, error.problems))) from error


def _write(lines: Iterable[str], out: Path | None) -> None:
    if out is None:
        for line in lines:
            click.echo(line)
        return
    # An incomplete file has another name, so that it is not mistaken for the workload.
    unfinished = out.with_name(f"{out.name}.unfinished")
    try:
        with unfinished.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
        unfinished.replace(out)
    except BaseException as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        if isinstance(error, OSError):
            raise UsageError(f"cannot write {out}: {error.strerror or error}") from error
        raise
