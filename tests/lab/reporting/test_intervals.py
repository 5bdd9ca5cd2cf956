"""Values over time in a bounded number of intervals: merging intervals loses no amount."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from yunikorn.clock import SECOND
from yunikorn_lab.reporting.time_series import NodeRows, Timeline

CHANGES = st.lists(
    st.tuples(st.integers(0, 5_000 * SECOND), st.integers(-5, 1_000)), min_size=1, max_size=30
).map(sorted)


@given(CHANGES, st.integers(0, 2_000 * SECOND))
def test_integral_is_exact_for_any_width(changes: list[tuple[int, int]], start: int) -> None:
    timeline = Timeline(limit=8)
    timeline.begin(start)
    series = timeline.series()
    for moment, value in changes:
        series.record(moment, {"of": value})
    end = max(changes[-1][0], start) + 7
    timeline.reach(end)
    series.wind(end)
    steps = [*changes, (end, 0)]
    exact = sum(value * max(after - max(moment, start), 0) for (moment, value), (after, _) in pairwise(steps))
    lengths = timeline.lengths(end)
    assert series.total("of") == exact
    assert sum(series.sums("of", len(lengths))) == exact
    assert sum(lengths) == end - start
    assert len(lengths) <= 8
    assert timeline.width == SECOND or len(lengths) > 4


@given(CHANGES, CHANGES, st.integers(0, 6_000 * SECOND))
def test_a_series_that_absorbs_another_is_their_sum(
    ones: list[tuple[int, int]], others: list[tuple[int, int]], when: int
) -> None:
    timeline = Timeline(limit=16)
    timeline.begin(0)
    one, other = timeline.series(), timeline.series()
    total = timeline.series()
    values = {id(one): 0, id(other): 0}
    merged = False
    for moment, number, value in sorted(
        [(moment, 0, value) for moment, value in ones] + [(moment, 1, value) for moment, value in others]
    ):
        if moment >= when and not merged:
            one.absorb(other, when)
            merged = True
        series = other if number else one
        change = value - values[id(series)]
        values[id(series)] = value
        if merged:
            one.grow(moment, {"of": change}, 1)
        else:
            series.record(moment, {"of": value})
        total.record(moment, {"of": sum(values.values())})
    if not merged:
        one.absorb(other, when)
    end = 6_001 * SECOND
    one.wind(end)
    total.wind(end)
    count = len(timeline.lengths(end))
    assert one.sums("of", count) == total.sums("of", count)


def test_rows_of_nodes_are_merged_when_there_are_many() -> None:
    timeline = Timeline()
    timeline.begin(0)
    rows = NodeRows(timeline, limit=2)
    for number in range(3):
        assert rows.join(f"n{number}", 0) == number
        rows.capacity(number, {"vcore": 4}, 1, 0)
    assert rows.per_row == 2
    rows.use(0, {"vcore": 4}, 1, 0)
    rows.use(2, {"vcore": 2}, 1, SECOND)
    rows.use(0, {"vcore": 4}, -1, SECOND)
    rows.join("n3", SECOND)
    rows.capacity(3, {"vcore": 4}, 1, SECOND)
    rows.join("n4", SECOND)
    rows.close(2 * SECOND)
    assert rows.per_row == 4
    assert rows.names == ["n0", "n4"]
    # In the second interval the fourth node counts, in the first it was not there; the fifth is empty.
    assert rows.shares(2) == {"vcore": [[4 / 12, 2 / 16], [None, None]]}
