"""Assertions about a report, such as `root.web.wait.p95 < 60s`.

An assertion is `[SUBJECT.]FIGURE OPERATOR VALUE`. The subject is the path of a queue, with the name of its
partition in front (`gpu:root.web`) where several partitions have such a queue; without a subject the figure
is that of the whole run. docs/reports.md lists the figures.

A figure without a value never meets an assertion. An upper bound of a wait is not met either while
applications that never started decide the figure: their wait is not in the report, because it has not ended.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Sequence

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration
from yunikorn.errors import UsageError
from yunikorn.text import listed, suggest
from yunikorn_commands.input_source import InputChecks
from yunikorn_lab.reporting.assertion_figures import (
    NEVER,
    AssertedFigure,
    FigureUnit,
    Subject,
    figure_names,
    find_figure,
)
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.simulation.scenario_values import parse_time

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
EXAMPLE = "'root.web.wait.p95 < 60s'"
ROOT = "root"

_PARTS = re.compile(r"\s*([^<>=!]*?)\s*([<>=!]+)\s*(.*?)\s*\Z", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?\Z")


@attrs.frozen
class ReportFigure:
    """A figure of a run or of a queue, as it is named."""

    text: str
    partition: str
    """Partition of the queue; empty if none was named."""
    queue: str
    """Path of the queue; empty for the whole run."""
    figure: str

    def __str__(self) -> str:
        return self.text

    @property
    def definition(self) -> AssertedFigure:
        """Definition of the figure."""
        found = find_figure(self.figure)
        assert found is not None
        return found

    def spell(self, value: float | None) -> str:
        """Return a value in the notation of assertions."""
        return spell(value, self.definition.unit)


@attrs.frozen
class Assertion(ReportFigure):
    """A parsed assertion."""

    operator: str
    bound: float
    """Value in seconds, as a share or as a number, by the unit of the figure."""

    @property
    def is_upper(self) -> bool:
        """True for an assertion that a figure is not too large."""
        return self.operator in ("<", "<=")


@attrs.frozen
class AssertionResult:
    """Result of an assertion on a report."""

    assertion: Assertion
    value: float | None
    """Value of the figure in the report; None if it has none."""
    holds: bool
    reason: str = ""
    """Explanation where the value alone does not tell why the assertion is not met."""

    def __str__(self) -> str:
        said = "is met" if self.holds else "is not met"
        value = f"the value is {self.assertion.spell(self.value)}" if self.value is not None else ""
        return f"{self.assertion}: {said}: {'; '.join(filter(None, (value, self.reason)))}"


def spell(value: float | None, unit: FigureUnit) -> str:
    """Return a value exactly, in the notation of assertions: `1m4.5s`, `12.5%` or `3`."""
    if value is None:
        return "none"
    if value == NEVER:
        return "never"
    if unit is FigureUnit.TIME:
        return spell_duration(round(value * SECOND))
    return f"{value * 100:.10g}%" if unit is FigureUnit.SHARE else f"{value:.10g}"


# -- reading ------------------------------------------------------------------------------------------------


def parse_assertions(texts: Iterable[str], option: str = "--assert") -> list[Assertion]:
    """Parse assertions; raises `UsageError` that lists all problems, each with the name of the `option`."""
    found, checks = [], InputChecks()
    for text in texts:
        with checks.part(f"{option} '{text}': "):
            found.append(parse_assertion(text))
    checks.check()
    return found


def parse_assertion(text: str) -> Assertion:
    """Parse `[SUBJECT.]FIGURE OPERATOR VALUE`; raises `UsageError`."""
    parts = _PARTS.match(text)
    if parts is None or not parts[1] or not parts[3]:
        raise UsageError(f"expected FIGURE OPERATOR VALUE, such as {EXAMPLE}")
    path, sign, value = parts.groups()
    if sign not in OPERATORS:
        hint = ", did you mean '=='?" if sign == "=" else ""
        raise UsageError(f"unknown operator '{sign}'{hint}; known: {' '.join(OPERATORS)}")
    named = parse_figure(path)
    bound = _bound(value, named.figure, named.definition)
    return Assertion(" ".join(text.split()), named.partition, named.queue, named.figure, sign, bound)


def parse_figure(text: str) -> ReportFigure:
    """Parse `[SUBJECT.]FIGURE`; raises `UsageError`."""
    partition, queue, figure = _split(text)
    definition = find_figure(figure)
    assert definition is not None
    if not (definition.of_queues or (queue in ("", ROOT) and (definition.of_partitions or not partition))):
        raise UsageError(f"{figure} is a figure of the whole run, not of a queue: write {figure} alone")
    return ReportFigure(text, partition, queue, figure)


def _split(path: str) -> tuple[str, str, str]:
    """Return partition, queue and figure of `gpu:root.web.wait.p95`; the figure is as short as possible."""
    names = path.split(".")
    for start in range(len(names) - 1, -1, -1):
        figure = ".".join(names[start:])
        if find_figure(figure) is not None:
            partition, queue = _subject(names[:start])
            return partition, queue, figure
    first = names[0].rpartition(":")[2]
    rest = names[-2:] if len(names) > 2 and first == ROOT else names[1:] if first == ROOT else names
    figure = ".".join(rest)
    raise UsageError(
        f"unknown figure '{figure}'{suggest(figure, figure_names())}; known: {', '.join(figure_names())}"
    )


def _subject(names: Sequence[str]) -> tuple[str, str]:
    if not names:
        return "", ""
    partition, _, first = names[0].rpartition(":")
    queue = ".".join([first, *names[1:]])
    if first != ROOT or not all(names):
        hint = f", such as {ROOT}.{queue}" if all(names) and ":" not in names[0] else ""
        raise UsageError(f"'{'.'.join(names)}' is no queue: expected a path that begins with {ROOT}{hint}")
    return partition, queue


def _bound(text: str, figure: str, definition: AssertedFigure) -> float:
    wrong = UsageError(f"the value of {figure} is {definition.unit.value}, got '{text}'")
    if definition.unit is FigureUnit.TIME:
        try:
            return parse_time(text) / SECOND
        except ValueError as error:
            raise UsageError(f"{wrong}: {error}" if "too long" in str(error) else str(wrong)) from error
    is_percent = text.endswith("%") and definition.unit is FigureUnit.SHARE
    number = text[:-1].rstrip() if is_percent else text
    if not _NUMBER.match(number):
        raise wrong
    value = float(number) / 100 if is_percent else float(number)
    if definition.unit is FigureUnit.SHARE and not is_percent and value > 1:
        raise UsageError(f"the value of {figure} is a share: write {text}% or a number up to 1, got '{text}'")
    return value


def check_queues(
    assertions: Iterable[ReportFigure], queues: Collection[tuple[str, str]], option: str = "--assert"
) -> None:
    """Raise `UsageError` that lists all assertions or figures of a queue that is not one of `queues`.

    The queues are pairs of partition and path. Only meaningful for configurations in which all queues are
    known before the run; others create queues from placement rules.
    """
    checks = InputChecks()
    for assertion in assertions:
        if assertion.queue:
            with checks.part(f"{option} '{assertion}': "):
                _check_queue(assertion, queues)
    checks.check()


def _check_queue(assertion: ReportFigure, queues: Collection[tuple[str, str]]) -> None:
    partitions = sorted({partition for partition, _ in queues})
    if assertion.partition and assertion.partition not in partitions:
        near = suggest(assertion.partition, partitions)
        raise UsageError(f"unknown partition '{assertion.partition}'{near}; known: {listed(partitions)}")
    paths = sorted({path for partition, path in queues if assertion.partition in ("", partition)})
    if assertion.queue not in paths and assertion.queue != ROOT:
        near = suggest(assertion.queue, paths)
        raise UsageError(f"unknown queue '{assertion.queue}'{near}; known: {listed(paths)}")


# -- judging ------------------------------------------------------------------------------------------------


def judge(
    assertion: Assertion, result: FullReport, queues: Collection[tuple[str, str]] = ()
) -> AssertionResult:
    """Return the verdict on a report.

    `queues` are the partitions and paths of queues that exist although the report may not have them, because
    no application was in them. Raises `UsageError` for a queue that is in neither, for a resource type that
    the report does not have, and for a figure that the subject has not.
    """
    subject = find_subject(assertion, result, queues)
    definition = assertion.definition
    value = definition.read(subject)
    never = _decisive(assertion, subject)
    if never and assertion.is_upper:
        reason = f"{never} of {subject.applications} applications of {subject.name} never started"
        return AssertionResult(assertion, value, False, reason)
    if value is None:
        nothing = not subject.applications
        reason = f"no application was in {subject.name}" if nothing else f"{subject.name} has no such value"
        if assertion.figure == "slo" and not nothing:
            reason += f": give its wait target with --slo {subject.name}=TIME"
        return AssertionResult(assertion, None, False, reason)
    return AssertionResult(assertion, value, OPERATORS[assertion.operator](value, assertion.bound))


def value_of(
    figure: ReportFigure, result: FullReport, queues: Collection[tuple[str, str]] = ()
) -> float | None:
    """Return the value of a figure in a report; `NEVER` for a wait that applications without start decide.

    `queues` and errors are as for `judge`.
    """
    subject = find_subject(figure, result, queues)
    return NEVER if _decisive(figure, subject) else figure.definition.read(subject)


def _decisive(figure: ReportFigure, subject: Subject) -> int:
    """Return the number of waits that have not ended, if they would be the figure, or part of its mean."""
    never = subject.never_started if figure.definition.is_wait else 0
    statistic = figure.figure.rpartition(".")[2]
    percent = {"p50": 50, "median": 50, "p95": 95}.get(statistic)
    return never if percent is None or never * 100 > (100 - percent) * subject.applications else 0


def find_subject(
    assertion: ReportFigure, result: FullReport, queues: Collection[tuple[str, str]] = ()
) -> Subject:
    """Return the part of a report that an assertion is about; raises `UsageError` for an unknown queue."""
    if assertion.queue in ("", ROOT) and not assertion.partition:
        groups = result.figures.queues
        return Subject(result, "the run", "", False, groups, result.report.queues)
    seen = {(queue.partition, queue.queue) for queue in result.history.queues}
    seen |= {(group.partition, group.name) for group in result.figures.queues}
    _check_queue(assertion, {*seen, *queues, *((name, ROOT) for name in result.report.utilisation)})
    at = [name for name in _partitions(assertion, seen | set(queues)) if assertion.partition in ("", name)]
    if len(at) > 1:
        names = ", ".join(f"{name}:{assertion.queue}.{assertion.figure}" for name in at)
        raise UsageError(f"several partitions have the queue {assertion.queue}; name one: {names}")
    partition = assertion.partition or (at[0] if at else "")

    def is_inside(where: str, path: str) -> bool:
        return where == partition and (path == assertion.queue or path.startswith(f"{assertion.queue}."))

    return Subject(
        result,
        f"{assertion.partition}:{assertion.queue}" if assertion.partition else assertion.queue,
        partition,
        not (assertion.queue == ROOT and assertion.definition.of_partitions),
        [group for group in result.figures.queues if is_inside(group.partition, group.name)],
        [queue for queue in result.report.queues if is_inside(queue.partition, queue.queue)],
    )


def _partitions(assertion: ReportFigure, queues: Collection[tuple[str, str]]) -> list[str]:
    return sorted({partition for partition, path in queues if path == assertion.queue})
