"""Means over seeds, confidence intervals, significant differences between variants, and Jain's index."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from yunikorn_lab.reporting.metrics import Dispersion, differ, dispersion, jain_index, quantile
from yunikorn_lab.simulation.statistics import Sample


def test_confidence_interval_of_a_textbook_example() -> None:
    # Mean 3, standard deviation 1.581139, t(4) = 2.776: 2.776 * 1.581139 / sqrt(5).
    assert dispersion([1, 2, 3, 4, 5]) == Dispersion(3, 1.962928, 5)
    assert dispersion([7]) == Dispersion(7, None, 1)
    assert dispersion([]) is None


def test_quantiles_are_upper_bounds() -> None:
    values = [quantile(freedom) for freedom in range(1, 400)]
    assert values == sorted(values, reverse=True)
    assert (values[0], values[8], values[29], values[-1]) == (12.706, 2.262, 2.042, 1.98)


def test_single_runs_differ_by_any_difference() -> None:
    assert differ([1.0], [1.000001])
    assert not differ([1.0], [1.0])
    assert differ([None], [1.0])
    assert not differ([None], [None])


def test_multiple_runs_are_compared_by_seed() -> None:
    # Results vary a lot between seeds, the variant always adds one: intervals overlap, the difference is
    # certain.
    assert differ([10, 20, 30, 40], [11, 21, 31, 41.1])
    assert not differ([10, 20, 30, 40], [12, 18, 33, 38])
    assert differ([None, 10, 20], [5, 11, 21])


def test_jains_index_of_known_cases() -> None:
    assert jain_index([1, 1, 1, 1]) == 1
    assert jain_index([1, 0, 0, 0]) == 0.25
    assert jain_index([4, 2]) == 0.9
    assert jain_index([]) is None
    assert jain_index([0, 0]) is None


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=20))
def test_jains_index_is_between_one_nth_and_one(numbers: list[float]) -> None:
    index = jain_index(numbers)
    if any(numbers):
        assert index is not None
        assert 1 / len(numbers) - 1e-6 <= index <= 1 + 1e-6


def test_summaries_and_distributions_of_samples() -> None:
    sample = Sample([5, 1, 4, 2, 3, 100])
    summary = sample.summary()
    assert summary is not None
    assert (summary.count, summary.mean, summary.median, summary.p95, summary.max) == (
        6,
        19.166667,
        3.5,
        100,
        100,
    )
    assert sample.curve(10) == [1, 2, 3, 4, 5, 100]
    assert sample.curve(3) == [1, 3, 100]
    assert Sample().summary() is None
    assert Sample().curve(5) == []
