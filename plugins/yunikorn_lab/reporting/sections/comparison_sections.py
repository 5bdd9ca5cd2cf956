"""All sections of compare.html, in their order."""

from __future__ import annotations

from collections.abc import Callable

from yunikorn_lab.reporting.comparison_result import CURVE_CSV, Comparison
from yunikorn_lab.reporting.comparison_texts import MOST_CURVES, difference_tables, equal_rows, whole_table
from yunikorn_lab.reporting.palette import LIGHT
from yunikorn_lab.reporting.section import Picture, Section
from yunikorn_lab.reporting.setting_curves import SettingCurve, curve_tables

WAITS, BARS = "compare-waits.png", "compare-queues.png"
TIME, SHARES = "compare-time.png", "compare-shares.png"
VARIANTS = len(LIGHT)
"""Maximum number of variants in a plot."""
PICTURES = (WAITS, BARS, TIME, SHARES)
"""Files of the plots; a plot without content is not written."""


CURVE_PLOTS = tuple(f"compare-curve-{number}.png" for number in range(1, MOST_CURVES + 1))


def comparison_sections(comparison: Comparison) -> list[Section]:
    """Return the sections that have something to show."""
    return [made for make in _SECTIONS if (made := make(comparison)) is not None]


def _shown(comparison: Comparison) -> str:
    """Return which variants the plots show; empty if all."""
    number = len(comparison.variants)
    return f" The plots show the first {VARIANTS} of {number} variants." if number > VARIANTS else ""


def _inputs(comparison: Comparison) -> Section | None:
    """Return what differs between the inputs of finished folders; None for other comparisons."""
    tables = list(difference_tables(comparison))
    if not tables:
        return None
    return Section("inputs", "Different inputs", "What differs besides the results?", tables=tables)


def _divergences(comparison: Comparison) -> Section | None:
    """Return the first decisions that differ; None if they are unknown."""
    sentences = [
        f"{report.sentence} Without a reason: {report.reason_unknown}."
        if report.reason_unknown
        else report.sentence
        for report in comparison.divergence_reports
    ]
    if not sentences:
        return None
    lead = "Where do the variants part? The first decision that differs, and why."
    return Section("divergences", "First different decisions", lead, paragraphs=sentences)


def _waits(comparison: Comparison) -> Section:
    seed = f" (seed {comparison.seeds[0]})" if len(comparison.seeds) > 1 else ""
    slowed = any(variant.results[0].curves.all_slowdowns for variant in comparison.variants)
    waited = "waited (left) or were slowed down (right)" if slowed else "waited"
    bars = "Mean waits and slowdowns" if slowed else "Mean waits"
    return Section(
        "waits",
        "Waits",
        f"Under which variant do applications wait less, and in which queues?{_shown(comparison)}",
        pictures=[
            Picture(
                WAITS,
                f"Share of the applications that {waited} no more than the value below{seed}: the further "
                "left a curve, the shorter the waits.",
                lambda plots, _: plots.plot_all_waits(comparison),
            ),
            Picture(
                BARS,
                f"{bars} of the queues that waited longest, with a bar for each variant; "
                "lines on the bars are 95 % confidence intervals, if there are several seeds.",
                lambda plots, _: plots.plot_bars(comparison),
            ),
        ],
    )


def _curves(comparison: Comparison) -> Section | None:
    """Return the curves of settings that are numbers; None without any."""
    shown = list(zip(CURVE_PLOTS, comparison.curves, strict=False))
    if not shown:
        return None
    more = len(comparison.curves) - len(shown)
    others = f" {more} more curves are in {CURVE_CSV}." if more else ""
    band = " The band is the range over the seeds." if len(comparison.seeds) > 1 else ""
    return Section(
        "curves",
        "Curves over settings",
        f"Which value of the setting is the best?{band}{others}",
        pictures=[_curve_picture(name, curve) for name, curve in shown],
        tables=[table for _, curve in shown for table in curve_tables(curve)],
    )


def _curve_picture(name: str, curve: SettingCurve) -> Picture:
    return Picture(
        name, f"Figures over {curve.title}.", lambda plots, colours: plots.plot_curve(curve, colours)
    )


def _time(comparison: Comparison) -> Section:
    return Section(
        "time",
        "Over time",
        f"When do the variants differ? Variants with equal curves share a line.{_shown(comparison)}",
        pictures=[
            Picture(
                TIME,
                "Used part of the cluster, and number of waiting tasks, with a line for each variant.",
                lambda plots, _: plots.plot_over_time(comparison),
            ),
            Picture(
                SHARES,
                "Usage of the busiest resource type by the queues that used most, a line for each variant.",
                lambda plots, _: plots.plot_shares(comparison),
            ),
        ],
    )


def _figures(comparison: Comparison) -> Section:
    lead = "All figures of all variants; marks show how they differ from the first variant."
    equal = [f"{row.section}: {row.name}: {row.text(0)}" for row in equal_rows(comparison)]
    details = (
        [(f"Figures that are equal under all variants ({len(equal)})", "\n".join(equal))] if equal else []
    )
    return Section("figures", "All figures", lead, tables=list(whole_table(comparison)), details=details)


def _provenance(comparison: Comparison) -> Section | None:
    """Return the inputs and options of each variant, shown on request; None if they are unknown."""
    details = []
    for variant in comparison.variants:
        found = variant.results[0].provenance
        if found is not None:
            lines = [f"{name}: {value}" for name, value in found.rows()]
            details.append((variant.name, "\n".join([*lines, "", found.config_text])))
    if not details:
        return None
    lead = "Inputs, options and configuration of each variant."
    return Section("provenance", "Provenance", lead, details=details)


_SECTIONS: tuple[Callable[[Comparison], Section | None], ...] = (
    _inputs,
    _divergences,
    _curves,
    _waits,
    _time,
    _figures,
    _provenance,
)
