"""Plots of comparisons: equal curves are one line with the names of all, and units follow the values."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from tests.lab.reporting.test_comparison_verdict import compared
from tests.lab.reporting.test_plots import texts
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.mpl import different_curves, styled
from yunikorn_lab.reporting.plot_comparison import plot_all_waits, plot_bars, plot_over_time, plot_shares

Observe = Callable[..., FullReport]


def test_equal_curves_share_a_label() -> None:
    curves = [[1], [2], [1], [1], [1], [1]]
    assert different_curves("abcdef", curves) == [(0, "a\n= c\n= d\n= e\n= 1 more"), (1, "b")]


def test_variants_that_hide_each_other_are_named_together(observe: Observe) -> None:
    comparison = compared(observe, 4, 1, 4)
    comparison.variants[2] = attrs.evolve(comparison.variants[2], name="four again")
    for plot in (plot_all_waits, plot_over_time, plot_shares):
        with styled():
            found = texts(plot(comparison))
        assert {"4 cores\n= four again", "1 cores"} <= found, plot
        assert "four again" not in found


def test_mean_waits_are_written_as_in_tables(observe: Observe) -> None:
    with styled():
        found = texts(plot_bars(compared(observe, 4, 1)))
    assert {"Wait until the last task started, mean", "0s", "10m"} <= found
    assert "Bounded slowdown, mean (times)" in found
