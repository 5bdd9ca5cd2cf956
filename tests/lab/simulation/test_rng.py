"""Random numbers from seeds: equal on every machine, and distributed as named."""

from __future__ import annotations

import math
from itertools import islice, pairwise
from statistics import fmean, median, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.clock import SECOND
from yunikorn_lab.simulation.arrivals import (
    DAY,
    Bursts,
    Daily,
    Gaps,
    Poisson,
    Process,
    Regular,
    Uniformly,
)
from yunikorn_lab.simulation.distributions import (
    Constant,
    Distribution,
    Exponential,
    Lognormal,
    Normal,
    Pareto,
    Uniform,
    Weibull,
    WeightedChoice,
    exp,
    ln,
    power,
    zipf_weights,
)
from yunikorn_lab.simulation.rng import streams

MANY = 20_000


def test_streams_are_portable_and_independent() -> None:
    first, again, other, elsewhere = (
        streams(seed)(name) for seed, name in ((7, "a"), (7, "a"), (7, "b"), (8, "a"))
    )
    drawn = [first() for _ in range(3)]
    # Fixed values: other versions of Python and other machines must give equal numbers.
    assert drawn == [0.8046564102394738, 0.5098934705197334, 0.9089986442963961]
    assert [again() for _ in range(3)] == drawn
    assert [other() for _ in range(3)] != drawn
    assert [elsewhere() for _ in range(3)] != drawn


def test_samples_are_bit_identical() -> None:
    rng = streams(7)("b")
    assert [Lognormal(100, 1).draw(rng).hex() for _ in range(2)] == [
        "0x1.7778580da85fbp+8",
        "0x1.4c6452bd54a3fp+6",
    ]
    assert [Pareto(1, 2).draw(rng).hex() for _ in range(2)] == [
        "0x1.998d9b5c060b8p+0",
        "0x1.512a957b2333fp+0",
    ]


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_logarithm_is_accurate(value: float) -> None:
    assert ln(value) == pytest.approx(math.log(value), rel=1e-15, abs=1e-15)


@given(st.floats(min_value=-700, max_value=700))
def test_exponential_is_accurate(value: float) -> None:
    assert exp(value) == pytest.approx(math.exp(value), rel=1e-15)


def test_powers_and_invalid_powers() -> None:
    assert power(2, 10) == pytest.approx(1024, rel=1e-14)
    for value in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="only numbers above 0"):
            ln(value)
    with pytest.raises(ValueError, match="too large"):
        exp(701)


def draws(distribution: Distribution, count: int = MANY) -> list[float]:
    """Return values of a distribution from one seed."""
    rng = streams(3)("test")
    return [distribution.draw(rng) for _ in range(count)]


@pytest.mark.parametrize(
    ("distribution", "mean", "middle"),
    [
        (Constant(5), 5, 5),
        (Uniform(2, 6), 4, 4),
        (Exponential(10), 10, 10 * math.log(2)),
        (Normal(10, 2), 10, 10),
        (Lognormal(8, 0.5), 8 * math.exp(0.125), 8),
        (Weibull(4, 2), 4 * math.gamma(1.5), 4 * math.sqrt(math.log(2))),
        (Weibull(4, 1), 4, 4 * math.log(2)),
        (Pareto(3, 4), 4, 3 * 2**0.25),
    ],
)
def test_distributions_have_the_mean_and_the_median_of_their_formula(
    distribution: Distribution, mean: float, middle: float
) -> None:
    values = draws(distribution)
    assert fmean(values) == pytest.approx(mean, rel=0.03)
    assert median(values) == pytest.approx(middle, rel=0.03)


def test_normal_distribution_has_its_standard_deviation() -> None:
    assert pstdev(draws(Normal(0, 2))) == pytest.approx(2, rel=0.03)
    logarithms = [math.log(value) for value in draws(Lognormal(1, 0.7))]
    assert pstdev(logarithms) == pytest.approx(0.7, rel=0.03)


def test_choices_follow_their_weights_and_ranks() -> None:
    rng = streams(3)("test")
    choice = WeightedChoice(["a", "b", "c"], [5, 0, 3])
    drawn = [choice.draw(rng) for _ in range(MANY)]
    assert drawn.count("b") == 0
    assert drawn.count("a") / MANY == pytest.approx(5 / 8, rel=0.03)
    assert zipf_weights(4, 1) == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    assert zipf_weights(3, 0) == [1, 1, 1]


def moments(process: Process, count: int = MANY) -> list[int]:
    """Return the first arrival times of a process."""
    of = streams(5)
    found = list(islice(process.moments(of), count))
    assert found == sorted(found)
    assert found == list(islice(process.moments(of), count))
    return found


def test_regular_arrivals() -> None:
    assert moments(Regular(7), 4) == [0, 7, 14, 21]
    assert moments(Gaps(Constant(5 * SECOND)), 3) == [5 * SECOND, 10 * SECOND, 15 * SECOND]
    # Whole milliseconds are enough, and remainders are carried over.
    assert moments(Gaps(Constant(400_000)), 4) == [0, 1_000_000, 1_000_000, 2_000_000]


def test_poisson_arrivals_keep_their_rate_and_are_independent() -> None:
    found = moments(Poisson(10 * SECOND))
    assert found[-1] / MANY == pytest.approx(10 * SECOND, rel=0.03)
    gaps = [(later - sooner) / SECOND for sooner, later in pairwise(found)]
    assert pstdev(gaps) == pytest.approx(10, rel=0.03)


def test_uniform_arrivals_cover_their_interval() -> None:
    found = moments(Uniformly(5_000, 1000 * SECOND))
    assert len(found) == 5_000
    assert max(found) <= 1000 * SECOND
    tenths = [sum(1 for moment in found if moment // (100 * SECOND + 1) == part) for part in range(10)]
    assert all(400 < count < 600 for count in tenths)


def test_burst_arrivals_are_clustered() -> None:
    found = moments(Bursts(1000 * SECOND, Constant(4), SECOND), 400)
    crowds = [found[index : index + 4] for index in range(0, 400, 4)]
    assert all(crowd == [crowd[0] + member * SECOND for member in range(4)] for crowd in crowds)
    ends = [later[0] - sooner[-1] for sooner, later in pairwise(crowds)]
    assert fmean(ends) == pytest.approx(1000 * SECOND, rel=0.3)


def test_daily_arrivals_have_a_peak_and_quiet_weekends() -> None:
    process = Daily(60 * SECOND, peak=14 * 3600 * SECOND, swing=0.8, weekend=0.25)
    found = moments(process, 60_000)
    days = found[-1] // DAY
    by_hour = [0] * 24
    by_day = [0] * 7
    for moment in found:
        if moment < days // 7 * 7 * DAY:
            by_day[moment // DAY % 7] += 1
            by_hour[moment % DAY // (3600 * SECOND)] += 1
    working = sum(by_day[:5]) / 5
    assert working / (days // 7) == pytest.approx(24 * 60, rel=0.03)
    assert sum(by_day[5:]) / 2 / working == pytest.approx(0.25, rel=0.1)
    # From 2 to 3 o'clock the rate is 4/15 on average, from 14 to 15 o'clock 26/15.
    assert by_hour[2] / by_hour[14] == pytest.approx(4 / 26, rel=0.1)
    assert [process.rate(hour * 3600 * SECOND) for hour in (2, 8, 14, 20)] == pytest.approx([0.2, 1, 1.8, 1])
