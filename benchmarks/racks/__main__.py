"""Entry point of `python -m benchmarks.racks`, which compares gang placement policies."""

from __future__ import annotations

import click

from benchmarks.failure import BenchmarkFailure
from benchmarks.racks.baselines import NAMES
from benchmarks.racks.comparison import HEAD, PolicyFigures, compare
from benchmarks.racks.online import measure_online
from benchmarks.racks.optimum import measure

COUNT = click.IntRange(min=1)


@click.command()
@click.option("--policy", "policies", multiple=True, type=click.Choice(NAMES), help="Policy; default all.")
@click.option("--seeds", type=COUNT, default=10, show_default=True, help="Loads.")
@click.option("--applications", type=COUNT, default=1200, show_default=True, help="Applications of a load.")
@click.option(
    "--patience", default="1000h", show_default=True, help="Wait until a domain is kept free for a gang."
)
@click.option("--opposite", is_flag=True, help="Fill nodes with single tasks in the opposite order of racks.")
@click.option(
    "--optimum", type=COUNT, metavar="LOADS", help="Instead, compare with the optimum on six racks."
)
@click.option(
    "--online", type=COUNT, metavar="FUTURES", help="With --optimum: what can be reached without foresight."
)
def main(
    policies: tuple[str, ...],
    seeds: int,
    applications: int,
    patience: str,
    opposite: bool,
    optimum: int | None,
    online: int | None,
) -> None:
    """Compare gang placement policies on equal loads of gangs and single tasks, on 256 nodes in 16 racks.

    The table is in the notation of Markdown. With --optimum the policies place small loads on six racks, and
    their waits are compared with the shortest possible ones. With --online as well, those are compared with
    what policies without foresight can reach, by that number of random futures for each choice.
    """
    chosen = policies or NAMES
    try:
        if optimum is not None:
            for line in measure_online(optimum, online) if online else measure(chosen, optimum):
                click.echo(line)
            return
        click.echo(f"| {' | '.join(HEAD)} |")
        click.echo("|---" * len(HEAD) + "|")
        first: PolicyFigures | None = None
        for figures in compare(chosen, seeds, applications, patience=patience, opposite=opposite):
            first = first or figures
            click.echo(f"| {' | '.join(figures.cells(first))} |")
    except BenchmarkFailure as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
