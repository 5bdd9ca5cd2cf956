"""Axes of times: units as in tables, and dates where the input has them."""

from __future__ import annotations

import calendar

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.lab.reporting.test_plots import Observe, leaves, scenario, texts
from yunikorn_lab.reporting.mpl import date_ticks, duration_ticks, short_duration, styled
from yunikorn_lab.reporting.palette import queue_colours
from yunikorn_lab.reporting.plots import plot_cluster, plot_lengths, plot_nodes, plot_queues
from yunikorn_lab.reporting.tables import duration

DAY = 86_400
SUMMER = 1_027_839_845.0
"""2002-07-28 07:04:05 UTC, a Sunday."""


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (0.4, ["0s", "0.05s", "0.1s", "0.15s", "0.2s", "0.25s", "0.3s", "0.35s", "0.4s"]),
        (10, ["0s", "2s", "4s", "6s", "8s", "10s"]),
        (100, ["0s", "15s", "30s", "45s", "1m", "1m 15s", "1m 30s"]),
        (3_600, ["0s", "10m", "20m", "30m", "40m", "50m", "1h"]),
        (DAY, ["0s", "3h", "6h", "9h", "12h", "15h", "18h", "21h", "1d"]),
        (3 * DAY, ["0s", "12h", "1d", "1d 12h", "2d", "2d 12h", "3d"]),
        (57 * DAY, ["0s", "14d", "28d", "42d", "56d"]),
        (700 * DAY, ["0s", "100d", "200d", "300d", "400d", "500d", "600d", "700d"]),
    ],
)
def test_ticks_of_durations_are_written_as_in_tables(span: float, expected: list[str]) -> None:
    assert [short_duration(tick) for tick in duration_ticks(0, span)] == expected


def test_short_durations_say_the_same_as_tables() -> None:
    for seconds in (1, 59, 60, 90, 3_600, 5_400, DAY, 90_000, 10 * DAY):
        assert duration(seconds).startswith(short_duration(seconds))


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (60, ["07:04:10\n2002-07-28", "07:04:20", "07:04:30", "07:04:40", "07:04:50", "07:05:00"]),
        (DAY / 4, ["08:00\n2002-07-28", "09:00", "10:00", "11:00", "12:00", "13:00"]),
        (DAY, ["12:00\n2002-07-28", "18:00", "00:00\n2002-07-29", "06:00"]),
        (3 * DAY, ["12:00\n2002-07-28", "00:00\n2002-07-29", "12:00", "00:00\n2002-07-30", "12:00"]),
        (6 * DAY, [f"2002-07-{day}" for day in (29, 30, 31)] + [f"2002-08-0{day}" for day in (1, 2, 3)]),
        (57 * DAY, ["2002-08-05", "2002-08-19", "2002-09-02", "2002-09-16"]),
        (300 * DAY, [f"2002-0{month}-01" for month in (9,)] + ["2002-11-01", "2003-01-01"]),
        (1000 * DAY, ["2003-01-01", "2003-07-01", "2004-01-01", "2004-07-01", "2005-01-01"]),
    ],
)
def test_ticks_of_dates_are_at_whole_times(span: float, expected: list[str]) -> None:
    found = [text for _, text in date_ticks(0, span, SUMMER)]
    assert [text for text in found if text in expected] == expected
    assert len(found) <= 8


@settings(max_examples=examples(20))
@given(span=st.floats(1, 1e9), origin=st.floats(5e8, 4e9), most=st.integers(2, 8))
def test_ticks_are_within_the_axis_and_few(span: float, origin: float, most: int) -> None:
    for ticks in duration_ticks(0, span, most), [at for at, _ in date_ticks(0, span, origin, most)]:
        assert all(0 <= tick <= span * (1 + 1e-9) for tick in ticks)
        assert ticks == sorted(set(ticks))
        assert len(ticks) <= most + 1


def test_plots_show_dates_where_the_run_has_an_origin(observe: Observe) -> None:
    history = observe(scenario(2), leaves(2)).history
    assert history.origin is None
    dated = attrs.evolve(history, origin=float(calendar.timegm((2026, 11, 27, 12, 0, 0))))
    with styled():
        for one, is_dated in (history, False), (dated, True):
            colours = queue_colours([one])
            for figure in (
                plot_cluster(one),
                plot_queues(one, colours),
                plot_nodes(one),
                plot_lengths(one, colours),
            ):
                found = texts(figure)
                assert any("date (UTC)" in text for text in found) is is_dated
                assert any("simulated time" in text for text in found) is not is_dated
                assert any("2026-11-27" in text for text in found) is is_dated
