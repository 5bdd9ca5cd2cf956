"""Simulation of all variants of a comparison, and detection of the first diverging decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path

import attrs

from yunikorn.reporting.comparison import Comparison, Variant, make_rows
from yunikorn.reporting.decision_log import Divergence, find_divergence, unpack
from yunikorn.reporting.divergence import DivergenceQuestion, DivergenceReport, describe, question
from yunikorn.reporting.runs import Order, Played, Source, play_all
from yunikorn.reporting.variants import VariantPlan
from yunikorn.simulation.explain_answers import ExplainAnswer
from yunikorn.simulation.workload import RESTART


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
    folder: Path | None = None,
    told: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Simulate every plan with every workload; raises `RunFailed`.

    Divergences are reported for the first workload. `folder` receives the files of each run in a separate
    subfolder.
    """
    orders = [
        Order(
            plan.name,
            plan.config,
            drawn.source,
            drawn.seed,
            until,
            preempted,
            _folder(folder, plan, number, drawn),
        )
        for number, plan in enumerate(plans, 1)
        for drawn in workloads
    ]
    played = play_all(orders, executor, told)
    each = len(workloads)
    groups = [played[start : start + each] for start in range(0, len(played), each)]
    variants = [
        Variant(plan.name, [run.result for run in group if run.result is not None])
        for plan, group in zip(plans, groups, strict=True)
    ]
    return Comparison(
        workload=variants[0].results[0].report.workload,
        seeds=[drawn.seed for drawn in workloads if drawn.seed is not None],
        variants=variants,
        rows=make_rows(variants),
        divergence_reports=_divergences([group[0] for group in groups], orders[::each], executor),
    )


def _folder(folder: Path | None, plan: VariantPlan, number: int, drawn: Drawn) -> Path | None:
    if folder is None:
        return None
    own = folder / plan.folder(number)
    return own if drawn.seed is None else own / f"seed-{drawn.seed}"


def _divergences(played: list[Played], orders: list[Order], executor: Executor) -> list[DivergenceReport]:
    first = played[0]
    forks = [find_divergence(first.decisions, other.decisions) for other in played[1:]]
    asked = [None if divergence is None else question(divergence) for divergence in forks]
    answers = _ask(orders[1:], asked, executor)
    return [
        describe(first.name, other.name, divergence, _decisions(first, divergence), answer)
        for other, divergence, answer in zip(played[1:], forks, answers, strict=True)
    ]


def _decisions(first: Played, divergence: Divergence | None) -> int:
    return sum(1 for _ in unpack(first.decisions)) if divergence is None else divergence.equal


def _ask(
    orders: list[Order], asked: list[DivergenceQuestion | None], executor: Executor
) -> list[ExplainAnswer | None]:
    """Repeat runs up to the moment of their question; the result is None for runs without a question."""
    again = [
        attrs.evolve(order, until=one.moment, questions=(str(one),), folder=None)
        for order, one in zip(orders, asked, strict=True)
        if one is not None
    ]
    found = iter(play_all(again, executor))
    answers: list[ExplainAnswer | None] = []
    for one in asked:
        result = None if one is None else next(found).result
        answers.append(None if result is None else result.report.explanations[0])
    return answers
