"""Verdict on a run: sentences that say what stands out, the most important first.

Each rule returns a sentence only if it holds and matters; docs/reports.md lists the rules. A sentence on a
problem is followed by what to do.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from yunikorn.quantities import VCORE
from yunikorn.text import number_of
from yunikorn_lab.reporting import verdict_fixes as fixes
from yunikorn_lab.reporting.group_counts import GroupReport
from yunikorn_lab.reporting.run_figures import Figures
from yunikorn_lab.reporting.run_history import PartitionHistory, RunHistory
from yunikorn_lab.reporting.tables import duration, percent, ratio, whole_percent
from yunikorn_lab.simulation.counters import RefusalReason
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.rm_state import RESTARTS
from yunikorn_lab.simulation.scenario_keys import NOBODY

Rule = Callable[[Report, Figures, RunHistory], Iterator[str]]

FEW = 5
"""Minimum number of applications that started in a queue which is compared with others."""
APART = 2.0
"""Minimum ratio of the waits of two queues."""
NOTABLE = 60.0
"""Minimum wait, in seconds, that is worth a sentence."""
FULL = 0.95
"""Minimum used part of a full machine."""
MAJOR = 0.5
"""Minimum part of the use that makes a user the main one."""
KEPT = 0.9
"""Fulfilment of a guarantee below which the sentence on guarantees appears."""
IDLE = 0.1
"""Minimum part of the capacity that stood idle while work waited."""
REJECTED = 0.05
"""Maximum rejected part of the applications for which the offered load is that of the machine."""
PREEMPTED = 0.01
"""Minimum number of preempted tasks, as a part of the tasks that ended."""
_SPANS = ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute"))
_MOST_SPANS = 3
"""Minimum number of whole days (else hours, else minutes) that a run must have to be counted in them."""


def judge(report: Report, figures: Figures, history: RunHistory) -> list[str]:
    """Return the sentences of all rules that hold."""
    return [sentence for rule in RULES for sentence in rule(report, figures, history)]


def scarcest(report: Report, partition: str) -> str:
    """Return the resource type of a partition with the highest utilisation; empty if nothing was used."""
    shares = report.utilisation.get(partition, {})
    return max((name for name in shares if shares[name]), key=lambda name: (shares[name], name), default="")


def kind_of(name: str) -> str:
    """Return a resource type in the words of a sentence."""
    return "cores" if name == VCORE else name


def _completeness(report: Report, _: Figures, __: RunHistory) -> Iterator[str]:
    counts = report.applications
    stopped = duration(report.times.stopped)
    if not counts.submitted:
        yield f"No application was submitted, so there is nothing to judge. {fixes.NOTHING_SUBMITTED}"
    if report.outcome == "interrupted":
        yield f"The run was interrupted at {stopped}: all figures are those up to then."
    elif report.outcome == "until" and counts.running + counts.waiting + counts.not_submitted:
        left = counts.running + counts.waiting + counts.not_submitted
        missing = number_of(left, "application")
        yield f"The run was cut at {stopped}; {missing} had not ended, so figures are incomplete. {fixes.CUT}"


def _rejections(report: Report, _: Figures, __: RunHistory) -> Iterator[str]:
    counts = report.applications
    if not counts.rejected:
        return
    reason = _most_often(report.rejections)
    if counts.rejected == counts.submitted:
        yield f"Every application was rejected ({counts.rejected}){reason}. {fixes.REJECTED}"
    else:
        of = f"{counts.rejected} of {number_of(counts.submitted, 'application')}"
        yield f"{of} {'was' if counts.rejected == 1 else 'were'} rejected{reason}. {fixes.REJECTED}"


def _unfinished(report: Report, _: Figures, __: RunHistory) -> Iterator[str]:
    counts, tasks = report.applications, report.tasks
    if counts.failed:
        reason = _most_often(report.failures)
        of = f"{counts.failed} of {number_of(counts.submitted, 'application')}"
        yield f"{of} failed{reason}. {fixes.FAILED}"
    if tasks.too_large:
        fit = "fits" if tasks.too_large == 1 else "fit"
        yield f"{number_of(tasks.too_large, 'task')} {fit} on no node, however empty. {fixes.FITS_NOWHERE}"
    if report.outcome == "complete":
        yield from _left(report)


def _left(report: Report) -> Iterator[str]:
    """Yield what is left at the end of a complete run: it waits for good, or runs without an end."""
    counts = report.applications
    of = f"of {number_of(counts.submitted, 'application')}"
    reason = _most_often(report.waiting)
    if counts.waiting:
        waits = "waits" if counts.waiting == 1 else "wait"
        yield f"{counts.waiting} {of} still {waits} at the end{reason}. {fixes.WAITING}"
    if counts.running:
        runs = "runs" if counts.running == 1 else "run"
        tasks = number_of(report.tasks.waiting, "task")
        has_waiting = report.tasks.waiting and not counts.waiting
        more = f", and {tasks} of theirs wait{reason}. {fixes.WAITING}" if has_waiting else "."
        yield f"{counts.running} {of} {runs} without an end{more}"


def _most_often(reasons: list[RefusalReason]) -> str:
    return f", most often because: {reasons[0].reason}" if reasons else ""


def _trust(_: Report, figures: Figures, __: RunHistory) -> Iterator[str]:
    if figures.calibration is not None and figures.calibration.warning:
        yield f"Doubtful: {figures.calibration.warning}. {fixes.DOUBTFUL}"


def _targets(_: Report, figures: Figures, __: RunHistory) -> Iterator[str]:
    for found in figures.slo:
        if found.share_met is not None and found.missed:
            yield (
                f"{found.queue} met its wait target of {duration(found.target)} for "
                f"{percent(found.share_met)} of its applications; {found.missed} waited longer. "
                f"{fixes.TARGET}"
            )


def _waits(report: Report, figures: Figures, __: RunHistory) -> Iterator[str]:
    wait = figures.whole_wait
    if wait is None:
        return
    if wait.max < 1:
        waiting = report.applications.waiting or report.tasks.waiting
        yield f"No application{' that started' if waiting else ''} waited for a second."
    elif wait.mean >= NOTABLE:
        yield (
            f"Applications wait {duration(wait.mean)} on average until their last task starts, one in 20 for "
            f"{duration(wait.p95)} or more. {fixes.WAITS}"
        )


def _disparity(_: Report, figures: Figures, history: RunHistory) -> Iterator[str]:
    waits = [
        (queue.whole_wait.mean, history.label(queue.partition, queue.name))
        for queue in figures.queues
        if queue.whole_wait is not None and queue.whole_wait.count >= FEW
    ]
    if len(waits) < 2:
        return
    (shortest, favoured), (longest, worst) = min(waits), max(waits)
    if longest < NOTABLE or longest < APART * shortest:
        return
    if shortest < 1:
        sentence = f"{worst} waits {duration(longest)} on average"
        yield f"{sentence}, while {favoured} hardly waits. {fixes.DISPARITY}"
    else:
        times = ratio(round(longest / shortest, 1 if longest < 10 * shortest else 0))
        times = times.removesuffix("0").removesuffix(".0").removesuffix(".")
        yield (
            f"{worst} waits {times} times as long as {favoured} ({duration(longest)} against "
            f"{duration(shortest)} on average). {fixes.DISPARITY}"
        )


def full_spans(history: RunHistory, partition: PartitionHistory, name: str) -> tuple[int, int, str] | None:
    """Return the number of full days (hours, minutes), that of all, and the unit; None for short runs.

    Spans count from the first submission; one is full if at least 95 % of the capacity were used on average.
    A last span that is not complete does not count.
    """
    length = history.end - history.start
    found = next(((span, unit) for span, unit in _SPANS if length >= _MOST_SPANS * span), None)
    if found is None:
        return None
    span, unit = found
    used, had = partition.used.get(name, [0.0] * history.count), partition.capacity[name]
    number = int(length // span)
    uses, capacities = [0.0] * number, [0.0] * number
    edges = history.edges
    for at, (left, right) in enumerate(itertools.pairwise(edges)):
        first, last = int((left - history.start) // span), int((right - history.start) // span)
        for place in range(first, min(last, number - 1) + 1):
            start = history.start + place * span
            part = max(min(right, start + span) - max(left, start), 0.0)
            uses[place] += used[at] * part
            capacities[place] += had[at] * part
    pairs = zip(uses, capacities, strict=True)
    return sum(1 for use, capacity in pairs if capacity and use >= FULL * capacity), number, unit


def _fullness(report: Report, figures: Figures, history: RunHistory) -> Iterator[str]:
    several = len(history.partitions) > 1
    for partition in history.partitions:
        name = scarcest(report, partition.partition)
        found = full_spans(history, partition, name) if name in partition.capacity else None
        if found is None or not found[0]:
            continue
        full, number, unit = found
        what = f"Partition {partition.partition}" if several else "The machine"
        user = "" if several else _main_user(figures.users, report.utilisation[partition.partition][name])
        yield f"{what} was full ({kind_of(name)}) on {full} of {number} {unit}s{user}."


def _load(report: Report, _: Figures, __: RunHistory) -> Iterator[str]:
    if report.applications.rejected > REJECTED * report.applications.submitted:
        return  # the offered load counts rejected work
    found = report.offered_load.partitions
    loads = [(load, name, of) for of, types in found.items() for name, load in types.items() if load > 1]
    if loads:
        load, name, partition = max(loads)
        what = f"partition {partition}" if len(found) > 1 else "the machine"
        yield (
            f"More work arrives than {what} can do (offered load of {kind_of(name)}: {load:.2f}), so waits "
            f"grow until no more arrives. {fixes.fix_of_load(load)}"
        )


def _main_user(users: list[GroupReport], use: float) -> str:
    most = max(users, key=lambda user: (user.use, user.name), default=None)
    if len(users) < 2 or most is None or most.use < MAJOR * use or most.name in ("", NOBODY):
        return ""
    return f", mostly by {most.name} (used {whole_percent(most.use)} of it over the whole run)"


def _guarantees(report: Report, figures: Figures, history: RunHistory) -> Iterator[str]:
    missed = []
    for queue in figures.queues:
        # A guarantee of another type than the scarce one is rarely used in full, whatever the order.
        name = scarcest(report, queue.partition)
        kept = queue.guarantees[name].kept if name in queue.guarantees else None
        if kept is not None and kept < KEPT:
            missed.append((kept, history.label(queue.partition, queue.name), name))
    if missed:
        kept, label, name = min(missed)
        others = number_of(len(missed) - 1, "more queue")
        more = f", and {others} got less than guaranteed" if len(missed) > 1 else ""
        yield (
            f"{label} got {whole_percent(kept)} of the {kind_of(name)} that its guarantee owed it{more}. "
            f"{fixes.GUARANTEE}"
        )


def _limits(report: Report, _: Figures, __: RunHistory) -> Iterator[str]:
    held, waits = report.limit_waits, report.task_wait
    if not held.limits or waits is None:
        return
    blocked, waited = sum(one.seconds for one in held.limits), waits.mean * waits.count
    if blocked >= MAJOR * waited and blocked >= NOTABLE:
        most = held.limits[0]
        yield (
            f"Limits, not missing room, kept requests waiting for {duration(blocked)} in total, most of all "
            f"'{most.limit}' ({duration(most.seconds)}). {fixes.LIMITS}"
        )


def _idle(report: Report, figures: Figures, history: RunHistory) -> Iterator[str]:
    several = len(history.partitions) > 1
    for partition, types in figures.idle.items():
        # Where another type is used up, free room of this one could not have been used anyway.
        name = scarcest(report, partition)
        if name not in types or types[name].of_capacity < IDLE:
            continue
        causes = types[name].causes
        cause = max(causes, key=lambda one: (causes[one], one))
        where = f" of {partition}" if several else ""
        yield (
            f"{percent(types[name].of_capacity)} of the {kind_of(name)}{where} stood idle while work waited, "
            f"mostly for this reason: {cause}. {fixes.IDLE[cause]}"
        )


def _losses(report: Report, _: Figures, __: RunHistory) -> Iterator[str]:
    losses = [loss for loss in report.lost_work if loss.reason in RESTARTS]
    preempted, lost = sum(loss.tasks for loss in losses), sum(loss.seconds for loss in losses)
    if preempted and preempted >= PREEMPTED * report.tasks.ended:
        ended = number_of(preempted, "task")
        yield f"Preemption ended {ended}; {duration(lost)} of work were lost. {fixes.PREEMPTION}"
    if report.gangs is not None and report.gangs.given_up:
        yield f"Gangs that were given up: {report.gangs.given_up} of {report.gangs.submitted}. {fixes.GANGS}"
    if report.plugin_faults:
        kinds = len(report.plugin_faults)
        yield f"Plugins failed ({kinds} kinds of failures): decisions may not be theirs. {fixes.PLUGINS}"


RULES: tuple[Rule, ...] = (
    _completeness,
    _rejections,
    _unfinished,
    _trust,
    _waits,
    _disparity,
    _targets,
    _fullness,
    _load,
    _guarantees,
    _limits,
    _idle,
    _losses,
)
"""All rules, in the order of their sentences. A new rule is a function and a line here."""
