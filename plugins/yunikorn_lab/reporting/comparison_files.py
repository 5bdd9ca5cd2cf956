"""Files of a comparison: table, HTML page and plots."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from yunikorn_lab.reporting.comparison_result import CSV, CURVE_CSV, JSON, Comparison
from yunikorn_lab.reporting.comparison_texts import comparison_title, judge_comparison
from yunikorn_lab.reporting.palette import queue_colours
from yunikorn_lab.reporting.result_files import missing_extra
from yunikorn_lab.reporting.sections.comparison_sections import CURVE_PLOTS, PICTURES, comparison_sections
from yunikorn_lab.reporting.variants import VariantPlan
from yunikorn_lab.simulation.out_folder import OutFolder

PAGE = "compare.html"


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


def write_comparison(folder: OutFolder, comparison: Comparison, *, pictures: bool) -> str:
    """Write all files; returns a hint if pictures were left out for a missing dependency, else ""."""
    folder.open(JSON).write(comparison.to_json())
    comparison.write_csv(folder.open(CSV))
    if comparison.curves:
        comparison.write_curves(folder.open(CURVE_CSV))
    missing = missing_extra(PAGE) if pictures else ""
    if missing or not pictures:
        return missing
    # Imported here, because comparisons without pictures need neither matplotlib nor jinja2.
    from yunikorn_lab.reporting.page import write_page

    write_page(
        folder,
        PAGE,
        title=f"Comparison of {comparison_title(comparison)}",
        verdict=judge_comparison(comparison),
        sections=comparison_sections(comparison),
        colours=queue_colours(variant.results[0].history for variant in comparison.variants),
    )
    return ""
