"""Queues that a configuration names, for options that refer to queues, and the option `--slo`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import click

from yunikorn.config.load import check_config
from yunikorn.config.queues_yaml import QueueConfig, RuleConfig, SchedulerConfig
from yunikorn.framework.registry import Registry
from yunikorn_lab.reporting.run_figures import parse_targets


@attrs.frozen
class ConfiguredQueues:
    """Queues of a configuration, as pairs of partition and path."""

    known: set[tuple[str, str]]
    are_all: bool
    """False if placement rules may create more."""


def configured_queues(text: str, registry: Registry) -> ConfiguredQueues:
    """Return the queues of a valid configuration."""
    config = check_config(text, registry).config
    partitions = config.partitions if config else ()
    found: set[tuple[str, str]] = set()

    def add(partition: str, queue: QueueConfig, parent: str) -> None:
        path = f"{parent}.{queue.name}" if parent else queue.name
        found.add((partition, path))
        for child in queue.queues:
            add(partition, child, path)

    for partition in partitions:
        add(partition.name, partition.root, "")
    return ConfiguredQueues(found, config is not None and not creates_queues(config))


def creates_queues(config: SchedulerConfig) -> bool:
    """Return True if a placement rule creates queues, so that not all queues are known before a run."""

    def creates(rule: RuleConfig) -> bool:
        return rule.create or (rule.parent is not None and creates(rule.parent))

    return any(creates(rule) for partition in config.partitions for rule in partition.placement_rules)


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
