"""Waiting times and usage over time, compared with their plain definitions."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.clock import SECOND
from yunikorn.resources import Resource
from yunikorn_lab.simulation.counters import MAX_REASONS, RefusalReasons
from yunikorn_lab.simulation.statistics import Capacity, Waits, used_share


def test_statistics_without_waits_are_empty() -> None:
    assert Waits().summary() is None


@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_wait_statistics_equal_those_of_the_standard_library(values: list[int]) -> None:
    summary = Waits(value * SECOND for value in values).summary()
    assert summary is not None
    assert summary.count == len(values)
    assert summary.mean == pytest.approx(statistics.fmean(values), abs=1e-6)
    assert summary.median == pytest.approx(statistics.median(values))
    assert summary.max == max(values)
    assert sum(value <= summary.p95 for value in values) >= 0.95 * len(values)
    assert sum(value < summary.p95 for value in values) < 0.95 * len(values)


def test_merged_waits_are_combined() -> None:
    waits = Waits([SECOND])
    waits.merge(Waits([3 * SECOND]))
    summary = waits.summary()
    assert summary is not None
    assert (summary.count, summary.mean) == (2, 2)


def test_capacity_counts_from_addition_to_removal() -> None:
    capacity = Capacity()
    capacity.change(0, Resource(vcore=10), 1)
    capacity.change(5, Resource(vcore=4), 1)
    capacity.change(8, Resource(vcore=10), -1)
    capacity.change(20, Resource(vcore=99), 1)
    assert capacity.between(0, 10) == {"vcore": 80 + 20}
    assert capacity.between(6, 10) == {"vcore": 2 * 10 + 4 * 4}
    assert capacity.now == {"vcore": 103}


def test_shares_are_relative_to_the_capacity_of_the_time() -> None:
    used = {"vcore": 50, "gpu": 10}
    assert used_share(used, {"vcore": 200, "memory": 7}) == {"memory": 0.0, "vcore": 0.25}


def test_reasons_are_grouped_by_text_without_the_application() -> None:
    reasons = RefusalReasons()
    reasons.add("queue of app-1 is full", "app-1")
    reasons.add("queue of app-2 is full", "app-2", 3)
    reasons.add("a queue is no application", "a")
    assert [(reason.reason, reason.count, reason.example) for reason in reasons.ranked()] == [
        ("queue of <application> is full", 4, "app-1"),
        ("a queue is no application", 1, "a"),
    ]


def test_number_of_distinct_reasons_is_bounded() -> None:
    reasons = RefusalReasons()
    for number in range(3 * MAX_REASONS):
        reasons.add(f"reason {number}", "a")
    ranked = reasons.ranked()
    assert len(ranked) == MAX_REASONS + 1
    assert (ranked[0].reason, ranked[0].count) == ("further reasons", 2 * MAX_REASONS)
