"""Conditions on the result of `yunikorn simulate`, for continuous integration: `--fail-on` and `--assert`."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import click

from yunikorn.config.load import load_config
from yunikorn.errors import UsageError, printable
from yunikorn.framework.registry import Registry
from yunikorn_commands.option_groups import option_group
from yunikorn_commands.output import echo
from yunikorn_lab.commands.configured_queues import creates_queues
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.report_assertions import Assertion, check_queues, judge, parse_assertions

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
        found, problems = [], []
        for kind in dict.fromkeys(self.fail_on):
            for figure, meaning in FAILURES[kind].items():
                (assertion,) = parse_assertions([f"{figure} == 0"])
                count = judge(assertion, result).value
                if count:
                    found.append(f"--fail-on {kind}: {meaning}: {count:.0f}")
        for assertion in self.assertions:
            try:
                verdict = judge(assertion, result, self.queues)
            except UsageError as error:
                problems.append(f"--assert '{assertion}': {error}")
                continue
            if not verdict.holds:
                found.append(f"--assert {verdict}")
        if problems:
            raise UsageError("\n".join(problems))
        return found

    def report(self, result: FullReport) -> int:
        """Print the conditions that are not met, and return the exit status."""
        unmet = self.unmet(result)
        for line in unmet:
            echo(f"FAILED: {printable(line)}", err=True)
        return UNMET if unmet else 0
