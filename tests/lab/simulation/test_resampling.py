"""Bootstrap of recorded workloads, and shuffled lists."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.errors import UsageError
from yunikorn_lab.simulation.arrivals import DAY, WEEK
from yunikorn_lab.simulation.resampling import AUTO, DAYS, USERS, WEEKS, resample, shuffle
from yunikorn_lab.simulation.workload import Workload, WorkloadApplication


def recording(*submits: int, users: int = 3, after: bool = False) -> Workload:
    """Return a workload with an application at each time."""
    names = [f"a{number}" for number in range(len(submits))]
    before = [(), *((name,) for name in names)] if after else [()] * len(submits)
    applications = [
        WorkloadApplication(name, submit, (), user=f"u{number % users}", after=before[number])
        for number, (name, submit) in enumerate(zip(names, sorted(submits), strict=True))
    ]
    return Workload("recording", "swf", [], applications)


TIMES = st.lists(st.integers(0, 9 * WEEK), min_size=1, max_size=30)


@given(TIMES, st.integers(0, 1000), st.sampled_from([WEEKS, DAYS, USERS]))
def test_a_bootstrap_has_copies_at_the_same_time_of_the_week_or_day(
    submits: list[int], seed: int, by: str
) -> None:
    workload = recording(*submits)
    try:
        found = list(resample(workload, by, seed).applications)
    except UsageError:
        return
    submitted = {one.id: one for one in workload.applications}
    assert len({one.id for one in found}) == len(found)
    assert [one.submit for one in found] == sorted(one.submit for one in found)
    unit = DAY if by == DAYS or max(submits) < WEEK else WEEK
    for one in found:
        before = submitted[one.id.partition("~")[0]]
        assert one.submit % unit == before.submit % unit
        assert 0 <= one.submit < (max(submits) // unit + 1) * unit
        assert one.user == before.user


def test_equal_seeds_draw_equal_workloads() -> None:
    workload = recording(*range(0, 8 * WEEK, DAY))
    assert resample(workload, WEEKS, 5).applications == resample(workload, WEEKS, 5).applications
    drawn = {tuple(one.id for one in resample(workload, WEEKS, seed).applications) for seed in range(20)}
    assert len(drawn) == 20


def test_blocks_are_drawn_evenly() -> None:
    workload = recording(*range(0, 8 * WEEK, WEEK))
    seen: Counter[str] = Counter()
    for seed in range(500):
        seen.update(one.id.partition("~")[0] for one in resample(workload, WEEKS, seed).applications)
    assert all(400 < count < 600 for count in seen.values())
    assert len(seen) == 8


def test_predecessors_outside_of_a_block_are_dropped() -> None:
    workload = recording(0, 1, WEEK, WEEK + 1, 2 * WEEK, 3 * WEEK, after=True)
    for seed in range(20):
        found = list(resample(workload, WEEKS, seed).applications)
        known = {one.id for one in found}
        assert all(set(one.after) <= known for one in found)
        followers = [one for one in found if one.id.startswith(("a1", "a3"))]
        assert all(len(one.after) == 1 for one in followers)
        assert all(not one.after for one in found if one.id.startswith(("a2", "a4", "a5")))


@pytest.mark.parametrize(
    ("submits", "users", "remark"),
    [
        (range(0, 6 * WEEK, DAY), 2, "a bootstrap of 6 weeks with seed 1"),
        (range(0, 6 * DAY, DAY // 4), 2, "a bootstrap of 6 days with seed 1"),
        (range(0, DAY, DAY // 24), 6, "a bootstrap of 6 users with seed 1"),
        ([0] * 5, 2, "the order of the applications is shuffled with seed 1"),
    ],
)
def test_blocks_are_chosen_by_the_length_of_the_recording(
    submits: list[int], users: int, remark: str
) -> None:
    assert resample(recording(*submits, users=users), AUTO, 1).remarks[0].startswith(remark)


def test_a_short_recording_of_few_users_is_refused() -> None:
    with pytest.raises(UsageError, match="a seed has no effect: the workload has no distributions"):
        resample(recording(0, 5, users=2), AUTO, 1)
    with pytest.raises(UsageError, match="--resample weeks: the workload has only one of them"):
        resample(recording(0, 5), WEEKS, 1)


def test_a_list_without_times_is_shuffled() -> None:
    workload = recording(*[0] * 50)
    found = [one.id for one in shuffle(workload, 3).applications]
    assert sorted(found) == sorted(one.id for one in workload.applications)
    assert found != [one.id for one in workload.applications]
    assert found == [one.id for one in shuffle(workload, 3).applications]
    with pytest.raises(UsageError, match="arrive at different times"):
        shuffle(recording(0, 5), 3)
