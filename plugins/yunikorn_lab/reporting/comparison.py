"""Runs of a comparison: every variant with every workload, and the reasons of first differences.

Reasons of divergences: one of the runs is repeated up to the first decision that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path

import attrs

from yunikorn_commands.plugin_files import CodePermission
from yunikorn_lab.reporting.comparison_result import Comparison, make_rows
from yunikorn_lab.reporting.decision_log import (
    Divergence,
    DivergenceReport,
    describe,
    find_divergence,
    question,
    question_to_first,
    unpack,
)
from yunikorn_lab.reporting.order_reason import order_question
from yunikorn_lab.reporting.provenance import Provenance
from yunikorn_lab.reporting.runs import NothingFinished, Order, Played, Source, finished, play_all
from yunikorn_lab.reporting.saved_run import InputPlaces
from yunikorn_lab.reporting.setting_curves import find_curves
from yunikorn_lab.reporting.variants import Variant, VariantPlan
from yunikorn_lab.simulation.explain_requests import ExplainAnswer
from yunikorn_lab.simulation.workload import RESTART


@attrs.frozen
class DivergenceReason:
    """Reason of a divergence, as far as it is known."""

    answer: ExplainAnswer | None = None
    """Answer of the second run to the question why it did not make the first run's decision."""
    is_of_first: bool = False
    """True if the answer is that of the first run, to the question why it did not make the second run's."""
    text: str = ""
    """Reason in words; empty if there is only the answer, or nothing."""
    unknown: str = ""
    """Cause of a missing reason, and what to do; empty if there is a reason, or needs to be none."""


def find_reasons(
    orders: Sequence[Order | None],
    divergences: Sequence[Divergence | None],
    executor: Executor,
    is_stopped: Callable[[], bool] = lambda: False,
    *,
    first: Order | None = None,
) -> list[DivergenceReason]:
    """Repeat runs up to their divergences from the first run; raises `RunFailed`.

    With the order of the `first` run, that one is repeated where it lacks a decision that another run makes.

    A run without a divergence or without an order is not repeated. After `is_stopped` returns True, reasons
    that were not found are unknown.
    """
    asked = [_repeated_first(first, found) for found in divergences]
    again = [
        of_first or _repeated(order, found)
        for of_first, order, found in zip(asked, orders, divergences, strict=True)
    ]
    runs = iter(play_all([order for order in again if order is not None], executor, is_stopped=is_stopped))
    reasons = []
    for of_first, order in zip(asked, again, strict=True):
        run = None if order is None else next(runs)
        if run is None:
            reasons.append(DivergenceReason())
            continue
        answer = run.result.report.explanations[0] if run.result else None
        is_known = answer is not None or run.reason
        unknown = "interrupted" if is_stopped() and not is_known else ""
        reasons.append(DivergenceReason(answer, of_first is not None, run.reason, unknown))
    return reasons


def describe_divergences(
    first: str,
    decisions: bytes,
    others: Sequence[str],
    divergences: Sequence[Divergence | None],
    reasons: Sequence[DivergenceReason],
) -> list[DivergenceReport]:
    """Describe the divergences of other runs, given by their names, from the first run with its decisions."""
    return [
        attrs.evolve(
            describe(
                first,
                other,
                divergence,
                sum(1 for _ in unpack(decisions)) if divergence is None else divergence.equal,
                reason.answer,
                reason.text,
                is_of_first=reason.is_of_first,
            ),
            reason_unknown=reason.unknown,
        )
        for other, divergence, reason in zip(others, divergences, reasons, strict=True)
    ]


def is_explained_by_a_run(divergence: Divergence | None) -> bool:
    """Return True if a repeated run may know the reason of a divergence."""
    if divergence is None:
        return False
    by_order = order_question(divergence.equal, divergence.one, divergence.other)
    return by_order is not None or question(divergence) is not None or is_explained_by_the_first(divergence)


def is_explained_by_the_first(divergence: Divergence) -> bool:
    """Return True if the first run is repeated for a divergence, in place of the second one."""
    return question_to_first(divergence) is not None


def _repeated_first(order: Order | None, divergence: Divergence | None) -> Order | None:
    """Return the order of the first run that explains an earlier decision of another run, or None."""
    asked = None if divergence is None else question_to_first(divergence)
    if order is None or asked is None:
        return None
    return attrs.evolve(order, until=asked.moment, questions=(str(asked),), folder=None)


def _repeated(order: Order | None, divergence: Divergence | None) -> Order | None:
    """Return the order of a run that explains a divergence; None if there is nothing to explain."""
    if order is None or divergence is None:
        return None
    by_order = order_question(divergence.equal, divergence.one, divergence.other)
    if by_order is not None:
        return attrs.evolve(order, folder=None, order_question=by_order)
    asked = question(divergence)
    if asked is None:
        return None
    return attrs.evolve(order, until=asked.moment, questions=(str(asked),), folder=None)


@attrs.frozen
class Drawn:
    """A workload to simulate under every variant, and its seed if the workload is drawn."""

    source: Source
    seed: int | None = None


def compare(
    plans: Sequence[VariantPlan],
    workloads: Sequence[Drawn],
    executor: Executor,
    *,
    until: int | None = None,
    preempted: str = RESTART,
    targets: Mapping[str, int] | None = None,
    folder: Path | None = None,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
    provenance: Callable[[VariantPlan], Provenance] | None = None,
    place: Callable[[VariantPlan], InputPlaces] | None = None,
    with_reasons: bool = True,
) -> Comparison:
    """Simulate every plan with every workload; raises `RunFailed`.

    `targets` are wait targets (ns) by queue. Divergences are reported for the first workload. `folder`
    receives the files of each run in a separate subfolder, `force` is as for `OutFolder`. After `is_stopped`
    returns True, the comparison has the variants and seeds that were finished. With a `provenance`, finished
    runs in `folder` with an equal one are not repeated. `place` returns the places of a variant's inputs.
    `with_reasons` repeats runs for the reasons of their divergences.
    """
    provenances = [None if provenance is None else provenance(plan) for plan in plans]
    orders = [
        Order(
            plan.name,
            plan.config,
            drawn.source,
            drawn.seed,
            until,
            preempted,
            _folder(folder, plan, number, drawn),
            code=CodePermission.of_operator(plan.home),
            provenance=_seeded(provenances[number - 1], drawn),
            targets=tuple((targets or {}).items()),
            force=force,
            places=None if place is None else place(plan),
        )
        for drawn in workloads
        for number, plan in enumerate(plans, 1)
    ]
    taken_over = [finished(order) for order in orders]
    missing = [order for order, run in zip(orders, taken_over, strict=True) if run is None]
    run_now = iter(play_all(missing, executor, on_progress, is_stopped))
    played = [next(run_now) if run is None else run for run in taken_over]
    groups = [played[number :: len(plans)] for number in range(len(plans))]
    kept, seeds = _finished(groups)
    variants = [
        Variant(
            plans[number].name,
            [run for at in seeds if (run := groups[number][at].result) is not None],
            plans[number].settings,
            str(plans[number].home / plans[number].file),
        )
        for number in kept
    ]
    unfinished = sum(1 for run in played if run.result is None)
    return Comparison(
        workload=variants[0].results[0].report.workload,
        seeds=[seed for at in seeds if (seed := workloads[at].seed) is not None],
        variants=variants,
        rows=make_rows(variants),
        divergence_reports=[]
        if unfinished
        else _divergences(
            [group[0] for group in groups], orders[: len(plans)], executor if with_reasons else None
        ),
        curves=find_curves(variants),
        unfinished=unfinished,
        taken_over=len(orders) - len(missing),
    )


def _seeded(provenance: Provenance | None, drawn: Drawn) -> Provenance | None:
    if provenance is None or drawn.seed is None:
        return provenance
    return attrs.evolve(provenance, seed=drawn.seed)


def _finished(groups: list[list[Played]]) -> tuple[list[int], list[int]]:
    """Return the numbers of the variants, and those of the seeds that were finished under all of them.

    Without a common seed, the variants with the fewest finished runs are left out.
    """
    done = {
        number: {at for at, run in enumerate(group) if run.result is not None}
        for number, group in enumerate(groups)
    }
    done = {number: seeds for number, seeds in done.items() if seeds}
    if not done:
        raise NothingFinished("interrupted before the end of the first run")
    while not (common := set.intersection(*done.values())):
        del done[min(done, key=lambda number: len(done[number]))]
    return list(done), sorted(common)


def _folder(folder: Path | None, plan: VariantPlan, number: int, drawn: Drawn) -> Path | None:
    if folder is None:
        return None
    own = folder / plan.folder(number)
    return own if drawn.seed is None else own / f"seed-{drawn.seed}"


def _divergences(
    played: list[Played], orders: list[Order], executor: Executor | None
) -> list[DivergenceReport]:
    first = played[0]
    found = [find_divergence(first.decisions, other.decisions) for other in played[1:]]
    reasons = [DivergenceReason()] * len(found)
    if executor is not None:
        reasons = find_reasons(orders[1:], found, executor, first=orders[0])
    names = [other.name for other in played[1:]]
    return describe_divergences(first.name, first.decisions, names, found, reasons)
