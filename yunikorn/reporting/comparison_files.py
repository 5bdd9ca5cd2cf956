"""Table of a comparison as rows of text, and the files of a comparison: table, HTML page and plots."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from yunikorn.reporting.comparison import CSV, CURVE_CSV, JSON, Comparison, FigureRow
from yunikorn.reporting.result_files import missing_extra
from yunikorn.reporting.setting_curves import SettingCurve, curve_note, curve_tables
from yunikorn.reporting.tables import Table
from yunikorn.reporting.variants import VariantPlan
from yunikorn.simulation.out_folder import OutFolder

BESIDE = 5
"""Maximum number of variants per table, including the first, which is in every table."""


def difference_lines(comparison: Comparison) -> Iterator[str]:
    """Yield what differs in the provenance of each variant from that of the first, as lines."""
    first = comparison.variants[0].name
    for name, found in comparison.differences:
        if not found:
            yield f"{first} and {name} have equal inputs."
            continue
        yield f"The inputs of {first} and {name} differ:"
        for one in found:
            yield from (f"  {one.what}", f"    {first}: {one.one}", f"    {name}: {one.other}")


def difference_tables(comparison: Comparison) -> Iterator[Table]:
    """Yield a table of what differs in the provenance of each variant from that of the first."""
    first = comparison.variants[0].name
    for name, found in comparison.differences:
        rows = [[one.what, one.one, one.other] for one in found]
        note = "" if rows else f"{first} and {name} have equal inputs"
        yield Table(f"What differs between the inputs of {first} and {name}", ["", first, name], rows, note)


def whole_table(comparison: Comparison, beside: int = BESIDE) -> Iterator[Table]:
    """Yield a table with all sections below each other; many variants are split into several tables."""
    sections: dict[str, list[FigureRow]] = {}
    for row in comparison.rows:
        sections.setdefault(row.section, []).append(row)
    last = len(comparison.variants)
    for start in range(1, max(last, 2), beside - 1):
        group = [0, *range(start, min(start + beside - 1, last))]
        cells: list[list[str]] = []
        for section, rows in sections.items():
            cells.append([section.upper(), *[""] * len(group)])
            cells += [[f"  {row.name}", *(row.text(number) for number in group)] for row in rows]
        names = [comparison.variants[number].name for number in group]
        yield Table(_title(comparison), ["", *names], cells, _note(comparison))


def _title(comparison: Comparison) -> str:
    count = len(comparison.seeds)
    runs = f", {count} {'seed' if count == 1 else 'seeds'} each" if count else ""
    variants = "1 variant" if len(comparison.variants) == 1 else f"{len(comparison.variants)} variants"
    missing = f" (incomplete: {unfinished_runs(comparison)})" if comparison.unfinished else ""
    return f"{variants} of {comparison.workload}{runs}{missing}"


def unfinished_runs(comparison: Comparison) -> str:
    """Return how many runs were not finished, as text."""
    count = comparison.unfinished
    return f"{count} {'run was' if count == 1 else 'runs were'} not finished"


def _note(comparison: Comparison) -> str:
    first = comparison.variants[0].name
    if len(comparison.seeds) > 1:
        return (
            f"▲ ▼: larger or smaller than under {first}, if the difference is significant "
            f"(95 %, paired by seed); ±: half of the 95 % confidence interval. {chance(comparison)}"
        )
    return f"▲ ▼: larger or smaller than under {first}"


def chance(comparison: Comparison) -> str:
    """Return how many differences are marked, and how many chance alone would mark."""
    compared = [
        cell
        for row in comparison.rows
        for cell in row.cells[1:]
        if cell.value is not None and row.cells[0].value is not None
    ]
    marked = sum(1 for cell in compared if cell.differs)
    expected = f"{CHANCE * len(compared):.1f}".removesuffix(".0")
    return (
        f"{marked} of {len(compared)} compared figures are marked; chance alone would mark about {expected} "
        "if nothing differed"
    )


CHANCE = 0.05
"""Probability that a figure without a true difference is marked."""
PAGE = "compare.html"
WAITS, BARS = "compare-waits.png", "compare-queues.png"
TIME, SHARES = "compare-time.png", "compare-shares.png"
CAPTIONS = {
    WAITS: "Cumulative distributions of the waits and slowdowns of applications.",
    BARS: "Waits and slowdowns of the queues that waited longest.",
    TIME: "Utilisation of the cluster, and number of waiting tasks.",
    SHARES: "Usage of the busiest resource type by the queues with the highest usage.",
}
PICTURES = tuple(CAPTIONS)


MOST_CURVES = 8
"""Maximum number of curves with a plot and a table; curve.csv has all of them."""
ON_TERMINAL = 2
"""Maximum number of curves on a terminal."""
CURVE_PLOTS = tuple(f"compare-curve-{number}.png" for number in range(1, MOST_CURVES + 1))
_RESULTS = {CSV, CURVE_CSV, JSON, PAGE, *PICTURES, *CURVE_PLOTS}
_RUN = re.compile(r"[0-9]+-")


def comparison_folder(path: Path, *, force: bool = False) -> OutFolder:
    """Return the folder for the results of a comparison; `force` is as for `OutFolder`."""
    return OutFolder(
        path,
        "compare",
        force=force,
        outdated=(PAGE, CURVE_CSV, *PICTURES, *CURVE_PLOTS),
        is_ours=lambda name: name in _RESULTS or _RUN.match(name) is not None,
    )


def outdated_runs(folder: Path, plans: Sequence[VariantPlan]) -> list[str]:
    """Return a remark on folders of earlier comparisons that match the naming pattern but not these plans."""
    ours = {plan.folder(number) for number, plan in enumerate(plans, 1)}
    found = sorted(path.name for path in folder.glob("[0-9]*-*") if path.is_dir() and path.name not in ours)
    if not found:
        return []
    are = "is" if len(found) == 1 else "are"
    return [f"{folder}: {', '.join(found)} {are} from an earlier comparison and not removed"]


def draw_comparison(comparison: Comparison) -> dict[str, bytes]:
    """Draw all plots; returns PNG contents by file name."""
    from yunikorn.reporting.plot_comparison import plot_all_waits, plot_bars, plot_over_time, plot_shares
    from yunikorn.reporting.plot_setting_curves import plot_curve
    from yunikorn.reporting.plots import png, styled

    with styled():
        curves = {name: png(plot_curve(curve)) for name, curve in _shown_curves(comparison)}
        return {
            **curves,
            WAITS: png(plot_all_waits(comparison)),
            BARS: png(plot_bars(comparison)),
            TIME: png(plot_over_time(comparison)),
            SHARES: png(plot_shares(comparison)),
        }


def _shown_curves(comparison: Comparison) -> Iterator[tuple[str, SettingCurve]]:
    """Yield the curves that the page shows, with the names of their plots."""
    yield from zip(CURVE_PLOTS, comparison.curves, strict=False)


def all_curve_tables(comparison: Comparison) -> Iterator[Table]:
    """Yield the tables of all curves that the page shows."""
    for _, curve in _shown_curves(comparison):
        yield from curve_tables(curve)


def few_curve_tables(comparison: Comparison) -> Iterator[Table]:
    """Yield the tables of the curves for a terminal, unless there are many."""
    if len(comparison.curves) <= ON_TERMINAL:
        yield from all_curve_tables(comparison)


def _curve_caption(comparison: Comparison, curve: SettingCurve, number: int) -> str:
    note = curve_note(curve)
    band = "; the band is the range over the seeds" if len(comparison.seeds) > 1 else ""
    more = len(comparison.curves) - MOST_CURVES
    others = f" {more} more curves are in {CURVE_CSV}." if number == MOST_CURVES and more > 0 else ""
    words = f" ({note})" if note and curve.words else ""
    return f"Figures over {curve.title}{band}{words}.{others}"


def write_comparison(folder: OutFolder, comparison: Comparison, *, pictures: bool) -> str:
    """Write all files; returns a hint if pictures were left out for a missing dependency, else ""."""
    folder.open(JSON).write(comparison.to_json())
    comparison.write_csv(folder.open(CSV))
    if comparison.curves:
        comparison.write_curves(folder.open(CURVE_CSV))
    missing = missing_extra(PAGE) if pictures else ""
    if missing or not pictures:
        return missing
    from yunikorn.reporting.page import render

    drawn = draw_comparison(comparison)
    for name, content in drawn.items():
        folder.part(name).write_bytes(content)
    page = render(
        title=f"Comparison of {_title(comparison)}",
        facts=[("variants", ", ".join(variant.name for variant in comparison.variants))],
        paragraphs=[divergence_report.sentence for divergence_report in comparison.divergence_reports],
        tables=[*difference_tables(comparison), *all_curve_tables(comparison), *whole_table(comparison)],
        pictures=drawn,
        captions={
            **CAPTIONS,
            **{
                name: _curve_caption(comparison, curve, number)
                for number, (name, curve) in enumerate(_shown_curves(comparison), 1)
            },
        },
        provenance=[
            (f"Provenance of {variant.name}", variant.results[0].provenance)
            for variant in comparison.variants
        ],
    )
    folder.open(PAGE).write(page)
    return ""
