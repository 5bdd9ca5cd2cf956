"""Reasons of divergences: one of the runs is repeated up to the first decision that differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor

import attrs

from yunikorn_lab.reporting.decision_log import (
    Divergence,
    DivergenceReport,
    describe,
    question,
    question_to_first,
    unpack,
)
from yunikorn_lab.reporting.order_reason import order_question
from yunikorn_lab.reporting.runs import Order, play_all
from yunikorn_lab.simulation.explain_requests import ExplainAnswer


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
