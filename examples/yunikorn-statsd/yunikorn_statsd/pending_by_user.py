"""`yunikorn pending-by-user`: count the pending tasks of each user in a state dump."""

from __future__ import annotations

import json
from collections import Counter
from typing import IO, Any

import click


@click.command()
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(file: IO[str], as_json: bool) -> int:
    """Print the number of pending tasks of each user in FILE, which `yunikorn dump` has written.

    - is standard input. Exit status: 0, or 1 if no task is pending.
    """
    try:
        counts = count(json.load(file)["applications"])
    except (ValueError, KeyError, TypeError):
        raise click.UsageError(f"{file.name}: this is not a state that `yunikorn dump` has written") from None
    if as_json:
        click.echo(json.dumps(counts))
    else:
        for user, pending in counts.items():
            click.echo(f"{pending:8} {user}")
    return 0 if counts else 1


def count(applications: list[dict[str, Any]]) -> dict[str, int]:
    """Return the numbers of pending tasks by user, the largest first."""
    counts: Counter[str] = Counter()
    for app in applications:
        for ask in app.get("requests", ()):
            counts[app["user"]] += ask.get("pendingCount", 1)
    return dict(counts.most_common())
