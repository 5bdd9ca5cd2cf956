"""Search for the smallest cluster, with answers that are known for every size."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from yunikorn_lab.reporting.cluster_search import SearchInterrupted, SizeSearch, Trial, describe, search
from yunikorn_lab.reporting.report_assertions import AssertionResult, parse_assertion

WAIT = parse_assertion("wait.max < 1m")


def run(
    meets: Callable[[int], bool],
    start: int,
    highest: int,
    *,
    lowest: int = 1,
    neighbours: int = 2,
    most: int = 10**9,
) -> SizeSearch:
    """Search with a function in place of simulations, interrupted after `most` of them."""
    tested: list[int] = []

    def measure(nodes: int) -> Trial:
        if len(tested) == most:
            raise SearchInterrupted
        assert nodes not in tested
        tested.append(nodes)
        return Trial(nodes, (AssertionResult(WAIT, 0.0, meets(nodes)),))

    found = search(measure, start, lowest, highest, neighbours)
    assert [trial.nodes for trial in found.trials] == sorted(tested)
    return found


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 300), st.integers(0, 4))
def test_smallest_size_is_found_where_more_nodes_are_better(
    least: int, start: int, highest: int, neighbours: int
) -> None:
    found = run(lambda nodes: nodes >= least, start, highest, neighbours=neighbours)
    if least > highest:
        assert (found.outcome, found.smallest) == ("none", None)
        return
    assert (found.outcome, found.smallest, found.exceptions) == ("found", least, [])
    refused = {trial.nodes for trial in found.trials if not trial.is_met}
    assert found.smallest == 1 or (found.smallest or 0) - 1 in refused
    assert len(found.trials) <= 22 + 2 * neighbours


@given(st.sets(st.integers(1, 60)), st.integers(1, 60), st.integers(1, 4))
def test_result_is_tested_also_where_more_nodes_may_be_worse(
    good: set[int], start: int, neighbours: int
) -> None:
    found = run(good.__contains__, start, 60, neighbours=neighbours)
    if found.smallest is None:
        assert not good & {trial.nodes for trial in found.trials}
        return
    assert found.smallest in good
    tested = {trial.nodes for trial in found.trials}
    assert {found.smallest - step for step in range(1, neighbours + 1) if found.smallest > step} <= tested
    assert set(found.exceptions) == {nodes for nodes in tested - good if nodes > found.smallest}


def test_smaller_neighbour_that_meets_the_targets_is_the_result() -> None:
    found = run(lambda nodes: nodes >= 12 or nodes == 10, start=16, highest=16)
    assert (found.smallest, found.exceptions) == (10, [11])
    assert list(describe(found, 16)) == [
        "The smallest tested cluster that meets the targets has 10 nodes.",
        "Larger clusters that do not meet them: 11. More nodes are not always better here.",
    ]


def test_limits_of_the_search() -> None:
    assert run(lambda nodes: True, start=8, highest=64, lowest=5).smallest == 5
    assert run(lambda nodes: True, start=100, highest=7).smallest == 1
    found = run(lambda nodes: False, start=3, highest=20)
    assert [trial.nodes for trial in found.trials] == [3, 6, 12, 20]
    assert describe(found, 20) == ["No tested size up to 20 nodes meets the targets."]


def test_interrupted_search_has_what_is_known() -> None:
    found = run(lambda nodes: nodes >= 5, start=16, highest=64, most=2)
    assert (found.outcome, found.smallest) == ("interrupted", 8)
    assert describe(found, 64)[1] == "The search was interrupted; a smaller one may meet them as well."
    assert run(lambda nodes: False, start=4, highest=64, most=1).outcome == "interrupted"
    assert describe(run(lambda nodes: True, 4, 4, most=0), 4) == ["No tested size meets the targets so far."]
