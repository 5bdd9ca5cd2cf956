"""Files of a comparison: table, HTML page and plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from yunikorn.reporting.comparison import CSV, JSON, Comparison
from yunikorn.reporting.comparison_sections import whole_table
from yunikorn.reporting.pictures import missing_extra
from yunikorn.reporting.variants import VariantPlan
from yunikorn.simulation.out_folder import OutFolder

PAGE = "compare.html"
WAITS, BARS, TIME, SHARES = (
    "compare-waits.png",
    "compare-queues.png",
    "compare-time.png",
    "compare-shares.png",
)
PICTURES = (WAITS, BARS, TIME, SHARES)
CAPTIONS = {
    WAITS: "Cumulative distributions of the waits and slowdowns of applications.",
    BARS: "Waits and slowdowns of the queues that waited longest.",
    TIME: "Utilisation of the cluster, and number of waiting tasks.",
    SHARES: "Usage of the busiest resource type by the queues with the highest usage.",
}


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
    from yunikorn.reporting.mpl import png, styled
    from yunikorn.reporting.plot_comparison import plot_all_waits, plot_bars, plot_over_time, plot_shares

    with styled():
        return {
            WAITS: png(plot_all_waits(comparison)),
            BARS: png(plot_bars(comparison)),
            TIME: png(plot_over_time(comparison)),
            SHARES: png(plot_shares(comparison)),
        }


def write_comparison(folder: OutFolder, comparison: Comparison, *, pictures: bool) -> str:
    """Write all files; returns a hint if pictures were left out for a missing dependency, else ""."""
    folder.open(JSON).write(comparison.to_json())
    comparison.write_csv(folder.open(CSV))
    missing = missing_extra(PAGE) if pictures else ""
    if missing or not pictures:
        return missing
    from yunikorn.reporting.page import render

    drawn = draw_comparison(comparison)
    for name, content in drawn.items():
        folder.part(name).write_bytes(content)
    page = render(
        title=f"Comparison of {len(comparison.variants)} variants of {comparison.workload}",
        facts=[("variants", ", ".join(variant.name for variant in comparison.variants))],
        paragraphs=[divergence_report.sentence for divergence_report in comparison.divergence_reports],
        parts=list(whole_table(comparison)),
        pictures=drawn,
        captions=CAPTIONS,
    )
    folder.open(PAGE).write(page)
    return ""
