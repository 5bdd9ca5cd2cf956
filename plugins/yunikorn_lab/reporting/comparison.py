"""Runs of a comparison: every variant with every workload, and the reasons of first differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path

import attrs

from yunikorn_commands.plugin_files import CodePermission
from yunikorn_lab.reporting.comparison_result import Comparison, make_rows
from yunikorn_lab.reporting.decision_log import DivergenceReport, find_divergence
from yunikorn_lab.reporting.divergence_reasons import DivergenceReason, describe_divergences, find_reasons
from yunikorn_lab.reporting.provenance import Provenance
from yunikorn_lab.reporting.runs import NothingFinished, Order, Played, Source, finished, play_all
from yunikorn_lab.reporting.saved_run import InputPlaces
from yunikorn_lab.reporting.setting_curves import find_curves
from yunikorn_lab.reporting.variant_results import Variant
from yunikorn_lab.reporting.variants import VariantPlan
from yunikorn_lab.simulation.workload import RESTART


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
