"""Calibration: simulated waits beside those that a trace recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.reporting.calibration import rank_correlation
from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.sections.waits import calibration_section

Observe = Callable[..., FullReport]


def scenario(*recorded: object) -> str:
    """Return jobs of 20 s on one core, all submitted at once, with these recorded waits."""
    jobs = [
        f"  - {{id: j{number}, queue: root.a, user: u{number % 2}, tasks: [{{resources: {{vcore: 1}}, "
        f"runtime: 20}}]{'' if wait is None else f', recordedwait: {wait}'}}}\n"
        for number, wait in enumerate(recorded)
    ]
    return "nodes: [{name: n, resources: {vcore: 1}}]\napplications:\n" + "".join(jobs)


def test_waits_are_compared_for_applications_that_have_both(observe: Observe) -> None:
    result = observe(scenario(0, 30, None, 45, 90), until=70)
    found = result.figures.calibration
    assert found is not None
    assert (found.recorded.count, found.recorded.mean, found.simulated.mean) == (
        3,
        25,
        80 / 3 + 1e-6 * (1 / 3),
    )
    assert found.without_start == 1
    assert found.rank_correlation == 1
    assert [(each.recorded, each.simulated) for each in found.quantiles if each.percent == 50] == [(30, 20)]
    assert [(user.name, user.recorded.count, user.simulated.max) for user in found.users] == [
        ("u0", 1, 0),
        ("u1", 2, 60),
    ]
    assert [(size.name, size.recorded.count) for size in found.sizes] == [("10 to 100 %", 3)]
    assert not found.warning
    assert result.curves.calibration is not None
    assert (result.curves.calibration.recorded, result.curves.calibration.simulated) == (
        [0, 30, 45],
        [0, 20, 60],
    )


def test_workload_without_recorded_waits_has_no_calibration(observe: Observe) -> None:
    result = observe(scenario(None, None))
    assert result.figures.calibration is None
    assert result.curves.calibration is None


@pytest.mark.parametrize(
    ("recorded", "warning"),
    [((30, 30), ""), ((31, 31), "shorter"), ((4, 4), ""), ((3, 3), "longer"), ((0, 0), "longer")],
)
def test_warning_where_means_differ_by_more_than_a_factor_of_three(
    recorded: tuple[int, int], warning: str, observe: Observe
) -> None:
    result = observe(scenario(*recorded))  # the simulated waits are 0 and 20, their mean is 10
    found, section = result.figures, calibration_section(result)
    assert found.calibration is not None
    assert section is not None
    assert (warning in found.calibration.warning) == bool(found.calibration.warning) or not warning
    assert bool(found.calibration.warning) == bool(warning)
    notes = [table.note for table in section.tables if table.title == "Recorded and simulated waits"]
    assert ("Warning" in notes[0]) == bool(warning)
    assert any(sentence.startswith("Doubtful: ") for sentence in result.verdict) == bool(warning)


def ranks(numbers: list[int]) -> Any:
    """Return mean ranks by comparing all pairs."""
    array = numpy.array(numbers)
    return (array[:, None] > array).sum(1) + ((array[:, None] == array).sum(1) + 1) / 2


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
def test_rank_correlation_is_that_of_the_mean_ranks(pairs: list[tuple[int, int]]) -> None:
    ones, others = (list(each) for each in zip(*pairs, strict=True))
    found = rank_correlation(ones, others)
    if len(set(ones)) == 1 or len(set(others)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(numpy.corrcoef(ranks(ones), ranks(others))[0, 1], abs=1e-6)
