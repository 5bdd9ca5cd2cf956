"""Conditions on the result of `yunikorn simulate`, for continuous integration: `--fail-on` and `--assert`.

Queues that a configuration names, for options that refer to queues, and the option `--slo`.

Notes about configurations that the nodes of a workload do not fit, printed before a simulation.

Problems in the input of a command, collected from all of its parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import attrs
import click

from yunikorn.config.load import check_config, load_config
from yunikorn.config.queues_yaml import QueueConfig, RuleConfig, SchedulerConfig
from yunikorn.errors import Problem, printable
from yunikorn.framework.registry import Registry
from yunikorn_commands.input_source import LINES_SHOWN, InputChecks, describe
from yunikorn_commands.option_groups import option_group
from yunikorn_commands.output import echo
from yunikorn_lab.cluster_check import Capacities, check_cluster
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.report_assertions import Assertion, check_queues, judge, parse_assertions
from yunikorn_lab.reporting.run_figures import parse_targets
from yunikorn_lab.simulation.adjustments import largest_capacities
from yunikorn_lab.simulation.workload import Workload


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


def cluster_notes(configs: Iterable[tuple[str, str, Registry]], workload: Workload) -> list[str]:
    """Return what `validate --nodes` says about configurations, given by name, text and registry.

    Variants of one configuration share most findings: each is returned once, with the first name.
    """
    capacities = largest_capacities(workload.nodes, workload.events)
    seen: set[Problem] = set()
    notes: list[str] = []
    for name, text, registry in configs:
        found = [each for each in _findings(text, registry, capacities) if each not in seen]
        notes += [describe(name, each) for each in found[:LINES_SHOWN]]
        if len(found) > LINES_SHOWN:
            notes.append(f"{name}: {len(found) - LINES_SHOWN} more findings like these")
        seen.update(found)
    return [f"note: {printable(note)}" for note in notes]


def _findings(text: str, registry: Registry, capacities: Capacities) -> Iterator[Problem]:
    """Yield what only the comparison with the cluster finds.

    Lines are left out: the text may be part of a ConfigMap, or changed by `--set`.
    """
    alone = check_config(text, registry)
    compared = check_config(text, registry, [partial(check_cluster, capacities)])
    known = set(alone.warnings)
    for one in (*compared.warnings, *compared.hints):
        if one not in known:
            yield one._replace(line=0, column=0)


UNMET = 1
"""Exit status of a simulation that reached its end, but not what was asked of it."""

FAILURES = {
    "rejected": {"rejected": "rejected applications", "tasks_refused": "refused tasks"},
    "waiting": {"waiting": "waiting applications", "tasks_waiting": "waiting tasks"},
    "failed": {"failed": "failed applications", "tasks_failed": "failed tasks"},
}
"""Figures that have to be 0, by value of `--fail-on`, with their meaning."""

condition_options = option_group(
    click.option(
        "--fail-on",
        "fail_on",
        type=click.Choice(tuple(FAILURES)),
        multiple=True,
        help="Exit with status 1 if applications or tasks end like this; may be given several times.",
    ),
    click.option(
        "--assert",
        "asserted",
        metavar="'FIGURE < VALUE'",
        multiple=True,
        help=(
            "Exit with status 1 unless this is true, such as 'root.web.wait.p95 < 60s'; may be given several"
            " times."
        ),
    ),
)


@attrs.frozen
class RunConditions:
    """Conditions of a run."""

    fail_on: tuple[str, ...]
    assertions: Sequence[Assertion]
    queues: frozenset[tuple[str, str]] = frozenset()
    """Partitions and paths of the queues in the configuration."""

    @classmethod
    def parse(
        cls, fail_on: tuple[str, ...], asserted: tuple[str, ...], text: str, registry: Registry
    ) -> RunConditions:
        """Read the options before the run; raises `UsageError` for what no report can have."""
        assertions = parse_assertions(asserted)
        if not any(assertion.queue for assertion in assertions):
            return cls(fail_on, assertions)
        config = load_config(text, registry)
        queues = frozenset(
            (partition.name, path) for partition in config.partitions for path, _ in partition.root.walk()
        )
        if not creates_queues(config):
            check_queues(assertions, queues)
        return cls(fail_on, assertions, queues)

    def unmet(self, result: FullReport) -> list[str]:
        """Return the conditions that a report does not meet, with the expected and actual values.

        Raises `UsageError` that lists all assertions about what the report does not have.
        """
        found, checks = [], InputChecks()
        for kind in dict.fromkeys(self.fail_on):
            for figure, meaning in FAILURES[kind].items():
                (assertion,) = parse_assertions([f"{figure} == 0"])
                count = judge(assertion, result).value
                if count:
                    found.append(f"--fail-on {kind}: {meaning}: {count:.0f}")
        for assertion in self.assertions:
            with checks.part(f"--assert '{assertion}': "):
                verdict = judge(assertion, result, self.queues)
                if not verdict.holds:
                    found.append(f"--assert {verdict}")
        checks.check()
        return found

    def report(self, result: FullReport) -> int:
        """Print the conditions that are not met, and return the exit status."""
        unmet = self.unmet(result)
        for line in unmet:
            echo(f"FAILED: {printable(line)}", err=True)
        return UNMET if unmet else 0
