"""Waits of small loads on six racks, beside the shortest possible ones, which an exhaustive search finds.

The search knows all arrivals and run times in advance, which no policy does. For each gang it tries every
rack, and every division among the racks of a block. Gangs start in the order of arrival as soon as they fit,
as the core lets them, so that only the choice of domains differs.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from itertools import product

import attrs

from benchmarks.failure import BenchmarkFailure
from benchmarks.racks.comparison import registry_of_baselines
from benchmarks.racks.loads import TAG, configuration
from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn.resources import Resource
from yunikorn_lab.reporting.tables import duration, percent
from yunikorn_lab.simulation.adjustments import SyntheticRacks
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.rm_state import Running
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.workload import Workload, WorkloadApplication, WorkloadNode, WorkloadTaskGroup

NODES, RACKS, BLOCKS = 4, 3, 2
"""Nodes of a rack, racks of a block, and blocks."""
GANGS = 10
GAP, MEDIAN, SIGMA = 100, 3600, 0.7
"""Mean time between arrivals, and median and deviation of the logarithm of run times (s)."""
ACROSS = 0.15
"""Part of the gangs that are larger than a rack."""

Rack = tuple[tuple[int, int], ...]
"""End and nodes of the gangs in a rack, in order."""
Blocks = tuple[tuple[Rack, ...], ...]


@attrs.frozen
class SmallGang:
    """A gang that needs whole nodes; times are seconds."""

    arrival: int
    runtime: int
    size: int


def small_load(seed: int) -> list[SmallGang]:
    """Return gangs in the order of arrival, whose work is near the capacity for a while."""
    rng, moment, found = random.Random(seed), 0.0, []
    for _ in range(GANGS):
        moment += rng.expovariate(1 / GAP)
        size = drawn_size(rng)
        found.append(
            SmallGang(
                round(moment), round(min(rng.lognormvariate(math.log(MEDIAN), SIGMA), 10 * MEDIAN)), size
            )
        )
    return found


def drawn_size(rng: random.Random) -> int:
    """Return a random number of nodes."""
    return rng.randint(NODES + 1, NODES * RACKS) if rng.random() < ACROSS else rng.randint(1, NODES)


def empty_blocks() -> Blocks:
    """Return the state in which nothing runs."""
    return (((),) * RACKS,) * BLOCKS


class Optimum:
    """Shortest sum of waits of one load."""

    def __init__(self, gangs: Sequence[SmallGang]) -> None:
        self._gangs = gangs
        self._seen: dict[tuple[int, Blocks, tuple[int, ...]], int] = {}
        self.best = 0

    def search(
        self,
        known: int,
        moment: int = 0,
        blocks: Blocks | None = None,
        waiting: tuple[int, ...] = (),
        arrived: int = 0,
        cost: int = 0,
    ) -> int:
        """Return the sum of waits, also from a state on that has `cost`; `known` is that of some schedule."""
        self.best = known
        self._at(moment, blocks or empty_blocks(), waiting, arrived, cost)
        return self.best

    def _at(self, moment: int, blocks: Blocks, waiting: tuple[int, ...], arrived: int, cost: int) -> None:
        """Go on from the next event after or at `moment`; `cost` is the sum of waits so far."""
        gangs = self._gangs
        events = [end for block in blocks for rack in block for end, _ in rack]
        if arrived < len(gangs):
            events.append(gangs[arrived].arrival)
        if not waiting and arrived == len(gangs):
            self.best = min(self.best, cost)
            return
        now = min(events)
        cost += len(waiting) * (now - moment)
        while arrived < len(gangs) and gangs[arrived].arrival <= now:
            waiting, arrived = (*waiting, arrived), arrived + 1
        blocks = sorted_blocks(
            [[tuple([one for one in rack if one[0] > now]) for rack in block] for block in blocks]
        )
        key = now, blocks, waiting
        if cost >= min(self.best, self._seen.get(key, cost + 1)):
            return
        self._seen[key] = cost
        self._place(now, blocks, waiting, 0, arrived, cost)

    def _place(
        self, now: int, blocks: Blocks, waiting: tuple[int, ...], first: int, arrived: int, cost: int
    ) -> None:
        """Try all places of the gangs that wait, from that at position `first` on."""
        for position in range(first, len(waiting)):
            gang = self._gangs[waiting[position]]
            found = dict.fromkeys(places(blocks, gang.size, now + gang.runtime))
            rest = waiting[:position] + waiting[position + 1 :]
            for after in found:
                self._place(now, after, rest, position, arrived, cost)
            if found:
                return
        self._at(now, blocks, waiting, arrived, cost)


def sorted_blocks(blocks: Sequence[Sequence[Rack]]) -> Blocks:
    """Return equal states of racks and blocks in one order."""
    return tuple(sorted(tuple(sorted(block)) for block in blocks))


def places(blocks: Blocks, size: int, end: int) -> Iterator[Blocks]:
    """Yield the states of all racks with a gang in one rack, or one block if it is larger."""
    for number, block in enumerate(blocks):
        free = [NODES - sum(nodes for _, nodes in rack) for rack in block]
        if size <= NODES:
            shares = [
                tuple(size * (at == chosen) for at in range(RACKS))
                for chosen in range(RACKS)
                if free[chosen] >= size
            ]
        else:
            shares = [share for share in product(*(range(most + 1) for most in free)) if sum(share) == size]
        for share in shares:
            racks = [
                tuple(sorted((*rack, (end, nodes)))) if nodes else rack
                for rack, nodes in zip(block, share, strict=True)
            ]
            yield sorted_blocks([*blocks[:number], racks, *blocks[number + 1 :]])


class _Waits(Recorder):
    """Sum of the waits (s) of gangs, each counted at the start of its first member."""

    def __init__(self) -> None:
        self.total = 0
        self._started: dict[str, None] = {}

    def started(self, moment: int, task: Running) -> None:
        """Count the wait of a gang."""
        plan = task.owner.plan
        if plan.id not in self._started:
            self._started[plan.id] = None
            self.total += (moment - plan.submit) // SECOND


def waits_under(policy: str, gangs: Sequence[SmallGang], registry: Registry) -> int:
    """Return the sum of waits (s) of a load under a policy, without any gang that holds back others."""
    apps = [
        WorkloadApplication(
            f"gang-{number}",
            gang.arrival * SECOND,
            (WorkloadTaskGroup("nodes", gang.size, Resource(gpu=8), gang.runtime * SECOND),),
            queue="root.default",
            user="user",
            tags={TAG: json.dumps({"required": "rack" if gang.size <= NODES else "block"})},
            gang="Atomic",
        )
        for number, gang in enumerate(gangs)
    ]
    nodes = [WorkloadNode(f"n{number:02}", Resource(gpu=8)) for number in range(NODES * RACKS * BLOCKS)]
    load = SyntheticRacks(NODES, RACKS).apply(Workload("small", "generated", nodes, apps))
    waits = _Waits()
    report = simulate(configuration(policy), load, registry, recorder=waits)
    if report.applications.finished != len(gangs):
        raise BenchmarkFailure(f"{policy}: {report.applications}")
    return waits.total


def measure(policies: Sequence[str], loads: int) -> Iterator[str]:
    """Yield the lines of a table: waits and turnaround of each policy beside the shortest ones."""
    registry = registry_of_baselines()
    drawn = [small_load(seed) for seed in range(loads)]
    found = {policy: [waits_under(policy, gangs, registry) for gangs in drawn] for policy in policies}
    known = [min(sums) for sums in zip(*found.values(), strict=True)]
    best = [Optimum(gangs).search(most) for gangs, most in zip(drawn, known, strict=True)]
    running = sum(gang.runtime for gangs in drawn for gang in gangs)
    yield "| policy | mean wait | above the shortest | the same with run times | loads with the shortest |"
    yield "|---|---|---|---|---|"
    for policy, sums in {"optimum": best, **found}.items():
        waits = sum(sums) / max(sum(best), 1) - 1
        turnaround = (sum(sums) + running) / (sum(best) + running) - 1
        equal = sum(one == other for one, other in zip(sums, best, strict=True))
        mean = duration(sum(sums) / (loads * GANGS))
        yield f"| {policy} | {mean} | {percent(waits)} | {percent(turnaround)} | {equal} of {loads} |"
