"""Entry point of `python -m benchmarks.cluster`, which compares schedulers in a test cluster."""

from __future__ import annotations

import click

from benchmarks.cluster.contenders import CONTENDERS
from benchmarks.cluster.kinds import KINDS
from benchmarks.cluster.run import Plan, run
from benchmarks.failure import BenchmarkFailure
from tests.kubernetes.cluster import missing
from tests.kubernetes.cluster.cluster import PARTS, SCHEDULER

COUNT = click.IntRange(min=1)


@click.command()
@click.option("--nodes", type=click.IntRange(min=200), default=5_000, show_default=True, help="Nodes.")
@click.option(
    "--pods", type=COUNT, default=10_000, show_default=True, help="Pods that wait when a scheduler starts."
)
@click.option(
    "--rate", type=click.FloatRange(1), default=50.0, show_default=True, help="Pods per second afterwards."
)
@click.option(
    "--seconds", type=click.FloatRange(0), default=20.0, show_default=True, help="Time of that steady rate."
)
@click.option(
    "--running",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Pods that run already, for figures of memory.",
)
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(list(KINDS)), help="Kind of pods; default all."
)
@click.option(
    "--scheduler",
    "schedulers",
    multiple=True,
    type=click.Choice(list(CONTENDERS)),
    help="Scheduler; default all.",
)
@click.option("--kubelets/--no-kubelets", default=True, help="Run kwok, which makes bound pods run.")
@click.option(
    "--limit",
    type=click.FloatRange(1),
    default=600.0,
    show_default=True,
    help="Seconds until the waiting pods are bound.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line instead of the table.")
def main(kinds: tuple[str, ...], schedulers: tuple[str, ...], as_json: bool, **numbers: float) -> None:
    """Compare schedulers on a real API server, with kwok as kubelets.

    Each scheduler binds a backlog of pods (throughput), then pods that arrive at a steady rate (latency). The
    times are those at which a watch of another process reports a pod as created and as bound. The programs of
    the cluster must have been built by `python -m tests.kubernetes.cluster build`.
    """
    if absent := missing((*PARTS, SCHEDULER)):
        raise click.ClickException(
            f"not built: {', '.join(absent)}; build them by: python -m tests.kubernetes.cluster build"
        )
    plan = Plan(
        kinds=tuple(KINDS[name] for name in kinds or KINDS),
        contenders=tuple(CONTENDERS[name] for name in schedulers or CONTENDERS),
        **numbers,  # type: ignore[arg-type]
    )
    try:
        run(plan, click.echo, as_json=as_json)
    except BenchmarkFailure as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
