"""The option `--slo`: wait targets of queues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from yunikorn.cli.configured_queues import configured_queues
from yunikorn.framework.registry import Registry
from yunikorn.reporting.wait_targets import parse_targets

slo_option = click.option(
    "--slo",
    "targets",
    multiple=True,
    metavar="QUEUE=TIME",
    help="Wait target of a queue, such as root.web=5m; the report says how many applications met it. May be"
    " given several times.",
)


def read_targets(texts: Sequence[str], configs: Iterable[tuple[str, Registry]]) -> dict[str, int]:
    """Return targets (ns) by queue of any of the configurations; raises `UsageError` with all problems."""
    if not texts:
        return {}
    queues = [configured_queues(text, registry) for text, registry in configs]
    known = {path for one in queues for _, path in one.known}
    return parse_targets(texts, known, are_all=all(one.are_all for one in queues))
