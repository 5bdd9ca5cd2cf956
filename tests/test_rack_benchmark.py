"""The comparison of gang placement policies runs in small, and its optimum is one."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

if str(Path(__file__).parents[1]) not in sys.path:
    # The benchmarks live in the checkout only; their path comes after all installed packages.
    sys.path.append(str(Path(__file__).parents[1]))

from benchmarks.racks.__main__ import main
from benchmarks.racks.baselines import NAMES
from benchmarks.racks.comparison import registry_of_baselines
from benchmarks.racks.online import Bound, rollout
from benchmarks.racks.optimum import Optimum, SmallGang, small_load, waits_under


@pytest.mark.slow
def test_every_policy_has_a_row() -> None:
    done = CliRunner().invoke(main, ["--seeds", "1", "--applications", "20"], catch_exceptions=False)
    rows = [line.split(" | ") for line in done.output.splitlines()]
    assert [row[0].removeprefix("| ") for row in rows[2:]] == list(NAMES)
    assert {len(row) for row in (rows[0], *rows[2:])} == {len(rows[0])}


@pytest.mark.slow
def test_optimum_is_compared_with_every_policy() -> None:
    done = CliRunner().invoke(main, ["--optimum", "2", "--policy", "best-fit"], catch_exceptions=False)
    assert [line.split(" | ")[0] for line in done.output.splitlines()[2:]] == ["| optimum", "| best-fit"]


@pytest.mark.slow
def test_what_can_be_reached_without_foresight_is_measured() -> None:
    done = CliRunner().invoke(main, ["--optimum", "1", "--online", "1"], catch_exceptions=False)
    assert [line.split(" | ")[0] for line in done.output.splitlines()[2:]] == ["| known", "| unknown"]


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
def test_bound_lies_between_foresight_and_a_policy_without(known: bool) -> None:
    gangs = small_load(3)
    foresight, without = Bound(gangs, 3, random.Random(0), known=known).figures()
    assert foresight <= without
    # Rollouts over one future that is the true one would be foresight for one decision each.
    assert rollout(gangs, 3, random.Random(0), known=known) >= Optimum(gangs).search(10**9)


def test_rollouts_put_a_gang_beside_one_that_ends_at_the_same_time() -> None:
    # Four racks are full for long, one is nearly full for a short time, one half full for long. A small gang
    # that runs for long would fill the former, so that no rack would become free for the last gang.
    full = [SmallGang(0, 9000, 4)] * 4
    others = [SmallGang(1, 100, 3), SmallGang(2, 8000, 2), SmallGang(3, 8000, 1), SmallGang(4, 10, 4)]
    assert rollout([*full, *others], 20, random.Random(0), known=True) == 97


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_no_policy_waits_less_than_the_optimum(seed: int) -> None:
    registry, gangs = registry_of_baselines(), small_load(seed)
    best = Optimum(gangs).search(10**9)
    assert best <= min(waits_under(policy, gangs, registry) for policy in ("best-fit", "random", "most-free"))


def test_optimum_knows_when_gangs_end() -> None:
    # Four racks are full for long. One of the others becomes free together with its neighbour only if the two
    # pairs that end early share it.
    full = [SmallGang(0, 1000, 4)] * 4
    pairs = [SmallGang(1, 100, 2), SmallGang(2, 900, 2), SmallGang(3, 100, 2), SmallGang(4, 900, 2)]
    late = SmallGang(5, 10, 4)
    assert Optimum([*full, *pairs, late]).search(10**9) == 98


def test_gang_larger_than_a_rack_is_divided_in_one_block() -> None:
    # A block has 12 nodes: two gangs of 12 start at once, the third one waits for the first.
    gangs = [SmallGang(0, 50, 12), SmallGang(0, 80, 12), SmallGang(10, 5, 7)]
    assert Optimum(gangs).search(10**9) == 40
    assert waits_under("best-fit", gangs, registry_of_baselines()) == 40
