"""Comparison of finished runs in folders of `simulate` or `compare`.

Nothing is run but what the reasons of divergences need, and only by a function that the caller gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn_commands.input_source import InputChecks
from yunikorn_lab.reporting.comparison import (
    DivergenceReason,
    describe_divergences,
    is_explained_by_a_run,
)
from yunikorn_lab.reporting.comparison_result import JSON, Comparison, make_rows
from yunikorn_lab.reporting.decision_log import Divergence, DivergenceReport, find_divergence
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.provenance import differences
from yunikorn_lab.reporting.saved_run import RESULT, read_decisions, read_result
from yunikorn_lab.reporting.tables import duration
from yunikorn_lab.reporting.variants import Variant
from yunikorn_lab.simulation.out_folder import CLAIM

_SEED = re.compile(r"seed-([0-9]{1,18})\Z")
_RUNS = {"comparison": re.compile(r"[0-9]+-"), "search": re.compile(r"nodes-[0-9]+\Z")}
"""Names of the folders of the runs of several commands."""


@attrs.frozen
class FinishedVariant:
    """A folder with finished runs: one, or one for each seed."""

    name: str
    folders: dict[int | None, Path]
    """Folders of the runs by their seeds; the key is None for a run that a comparison has not drawn."""


@attrs.frozen
class FinishedRun:
    """A finished run, which may be repeated for the reason of a divergence."""

    name: str
    folder: Path
    result: FullReport


@attrs.frozen
class DivergedRun:
    """A finished run whose decisions differ from those of the first one."""

    run: FinishedRun
    divergence: Divergence


Explainer = Callable[[FinishedRun, Sequence[DivergedRun]], Sequence[DivergenceReason]]
"""Finds the reasons of divergences from the first run, perhaps by repeating runs."""


def compare_folders(paths: Sequence[Path], explain: Explainer | None = None) -> Comparison:
    """Compare the runs in at least two folders; raises `UsageError` that lists all unusable folders.

    Folders with several seeds are compared by the seeds that all of them have. `explain` is called for the
    divergences whose reasons the folders do not show.
    """
    checks = InputChecks()
    variants: list[FinishedVariant] = []
    for path, name in zip(paths, _names(paths), strict=True):
        with checks.part():
            variants.append(_find(path, name))
    checks.check()
    seeds = _common(variants)
    results: list[list[FullReport]] = []
    for variant in variants:
        with checks.part():
            results.append([read_result(variant.folders[seed]) for seed in seeds])
    checks.check()
    return _compare(variants, seeds, results, explain)


def _compare(
    variants: list[FinishedVariant],
    seeds: list[int | None],
    results: list[list[FullReport]],
    explain: Explainer | None,
) -> Comparison:
    compared = [Variant(one.name, found) for one, found in zip(variants, results, strict=True)]
    first = results[0][0]
    return Comparison(
        workload=first.report.workload,
        seeds=[seed for seed in seeds if seed is not None],
        variants=compared,
        rows=make_rows(compared),
        divergence_reports=_divergences(variants, seeds[0], [found[0] for found in results], explain),
        differences=[
            (one.name, differences(first.provenance, found[0].provenance))
            for one, found in zip(variants[1:], results[1:], strict=True)
        ],
    )


def _divergences(
    variants: list[FinishedVariant],
    seed: int | None,
    results: list[FullReport],
    explain: Explainer | None,
) -> list[DivergenceReport]:
    first, *others = variants
    baseline = read_decisions(first.folders[seed])
    found = [find_divergence(baseline, read_decisions(other.folders[seed])) for other in others]
    reasons = {
        other.name: DivergenceReason(text=_end(first.name, results[0], other.name, result, divergence))
        for other, result, divergence in zip(others, results[1:], found, strict=True)
    }
    diverged = [
        DivergedRun(FinishedRun(other.name, other.folders[seed], result), divergence)
        for other, result, divergence in zip(others, results[1:], found, strict=True)
        if divergence is not None and is_explained_by_a_run(divergence)
        if not reasons[other.name].text and _have_equal_work(results[0], result)
    ]
    if explain is not None and diverged:
        names = [one.run.name for one in diverged]
        first_run = FinishedRun(first.name, first.folders[seed], results[0])
        reasons.update(zip(names, explain(first_run, diverged), strict=True))
    return describe_divergences(first.name, baseline, list(reasons), found, list(reasons.values()))


def _have_equal_work(one: FullReport, other: FullReport) -> bool:
    """Return True if two results are of one workload, so that one of them can answer about the other."""
    return not any(each.is_workload for each in differences(one.provenance, other.provenance))


def _end(first: str, one: FullReport, second: str, other: FullReport, divergence: Divergence | None) -> str:
    """Return which run ended before the other's decision, without having ended all work; else ""."""
    if divergence is None:
        return ""
    ends = [(first, one, divergence.one, divergence.other), (second, other, divergence.other, divergence.one)]
    for name, result, decision, beyond in ends:
        stopped = result.report.times.stopped
        if decision is None and beyond is not None and beyond.time >= stopped * SECOND:
            if result.report.outcome == "until":
                return f"{name} ends at {duration(stopped)}, as --until says"
            if result.report.outcome == "interrupted":
                return f"{name} was interrupted at {duration(stopped)}"
    return ""


def _find(path: Path, name: str) -> FinishedVariant:
    """Return the runs of a folder; raises `UsageError` if it has none."""
    if not path.is_dir():
        raise UsageError(f"{path}: is no folder")
    if (path / RESULT).is_file():
        return FinishedVariant(name, {None: path})
    inside = sorted(one for one in path.iterdir() if one.is_dir())
    drawn = {int(match[1]): one for one in inside if (match := _SEED.match(one.name))}
    finished: dict[int | None, Path] = {
        seed: one for seed, one in sorted(drawn.items()) if (one / RESULT).is_file()
    }
    if finished:
        return FinishedVariant(name, finished)
    for whole, name_of_run in _RUNS.items():
        runs = sorted(str(one) for one in inside if name_of_run.match(one.name))
        if runs or (whole == "comparison" and (path / JSON).is_file()):
            such = f"; name its runs, such as {runs[0]}" if runs else ""
            raise UsageError(f"{path}: is the folder of a whole {whole}{such}")
    claimed = (path / CLAIM).is_file()
    why = "its run has not ended" if claimed else f"it has no {RESULT}"
    raise UsageError(f"{path}: is not the folder of a finished run: {why}")


def _common(variants: list[FinishedVariant]) -> list[int | None]:
    common = [seed for seed in variants[0].folders if all(seed in one.folders for one in variants)]
    if not common:
        listed = "; ".join(f"{one.name} has {', '.join(map(str, one.folders))}" for one in variants)
        raise UsageError(f"the folders have no seed in common: {listed.replace('None', 'a single run')}")
    return common


def _names(paths: Sequence[Path]) -> list[str]:
    """Return the shortest distinct names: the last part of the path, or the whole path."""
    for names in ([path.resolve().name for path in paths], [str(path) for path in paths]):
        if len(set(names)) == len(names):
            return names
    raise UsageError("the same folder is given twice")


def skipped_seeds(paths: Sequence[Path], comparison: Comparison) -> list[str]:
    """Return a remark for each folder with seeds that are not compared."""
    remarks = []
    for path, name in zip(paths, _names(paths), strict=True):
        more = len(_find(path, name).folders) - max(len(comparison.seeds), 1)
        if more > 0:
            seeds = f"{more} seeds are" if more > 1 else "1 seed is"
            remarks.append(f"{path}: {seeds} not compared, because another folder does not have them")
    return remarks
