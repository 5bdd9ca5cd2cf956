"""Calibration: simulated waits beside those that a trace recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn_lab.reporting.calibration import MANY, rank_correlation
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.sections.waits import calibration_section

Observe = Callable[..., FullReport]


def scenario(*recorded: object, runtime: float = 20) -> str:
    """Return jobs on one core, all submitted at once, with these recorded waits."""
    jobs = [
        f"  - {{id: j{number}, queue: root.a, user: u{number % 2}, tasks: [{{resources: {{vcore: 1}}, "
        f"runtime: {runtime}}}]{'' if wait is None else f', recordedwait: {wait}'}}}\n"
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
    [
        ((1800, 1800), ""),
        ((1801, 1801), "shorter"),
        ((200, 200), ""),
        ((199, 199), "longer"),
        ((0, 0), "longer"),
        ((0, 60, 3540), "longer in the median"),
    ],
)
def test_warning_where_waits_differ_by_more_than_a_factor_of_three(
    recorded: tuple[int, ...], warning: str, observe: Observe
) -> None:
    # The simulated waits are 0, 1,200 and 2,400; the mean of the first two is 600.
    result = observe(scenario(*recorded, runtime=1200))
    found, section = result.figures, calibration_section(result)
    assert found.calibration is not None
    assert section is not None
    assert (warning in found.calibration.warning) == bool(found.calibration.warning) or not warning
    assert bool(found.calibration.warning) == bool(warning)
    notes = [table.note for table in section.tables if table.title == "Recorded and simulated waits"]
    assert ("Warning" in notes[0]) == bool(warning)
    assert any(sentence.startswith("Doubtful: ") for sentence in result.verdict) == bool(warning)


@pytest.mark.parametrize("recorded", [(0, 0), (60, 60), (0, 170)])
def test_no_warning_on_a_quiet_cluster(recorded: tuple[int, int], observe: Observe) -> None:
    found = observe(scenario(*recorded)).figures.calibration  # the simulated waits are 0 and 20
    assert found is not None
    assert not found.warning


@pytest.mark.parametrize(
    ("count", "longest", "is_doubtful"), [(MANY, 3600, True), (MANY - 1, 3600, False), (MANY, 59, False)]
)
def test_warning_where_other_applications_wait(
    count: int, longest: float, is_doubtful: bool, observe: Observe
) -> None:
    """The recorded waits are those of the simulation in the opposite order."""
    waits = [longest * place / count for place in range(count)]
    runtime = longest / count
    found = observe(scenario(*reversed(waits), runtime=runtime)).figures.calibration
    assert found is not None
    assert found.rank_correlation == -1
    assert ("rank correlation -1.00" in found.warning) == is_doubtful


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
