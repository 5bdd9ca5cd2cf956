"""Entry point of `python -m benchmarks.soak`, a test with random updates, failures and restarts."""

from __future__ import annotations

import asyncio
import logging

import click

from benchmarks.failure import BenchmarkFailure
from benchmarks.soak.run import Soak


@click.command()
@click.option("--minutes", type=float, default=10.0, show_default=True, help="For how long.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of everything that is random.")
def main(minutes: float, seed: int) -> None:
    """Soak a service over gRPC, with a resource manager per layout.

    Connections are cut, resource managers restart and raise exceptions, and in the first third the service is
    killed and stopped. Every few seconds the accounting of both sides is compared, node by node, and a line
    of progress is printed. Exit status 1 if anything is lost, duplicated or rejected, or if memory grows.
    """
    logging.getLogger("yunikorn.client").setLevel(logging.CRITICAL)
    try:
        asyncio.run(Soak(60 * minutes, seed, click.echo).run())
    except BenchmarkFailure as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
