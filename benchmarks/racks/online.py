"""Waits of policies without foresight on small loads: of a strong one, and a bound that no policy beats.

A policy knows the gangs that have arrived, the distributions of those to come, and how long the others have
run; their run times are known to it, or not. *Rollouts* choose the place of each gang after which the waits
are the shortest on average over random futures, in each of which `best-fit` goes on. The *bound* lets a
policy see everything once the first gangs are placed, or the first one has ended. The places until then are
the best ones for all futures together; a policy that sees less does not wait less on average.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import NormalDist

import attrs

from benchmarks.racks.optimum import (
    GANGS,
    GAP,
    MEDIAN,
    NODES,
    SIGMA,
    Blocks,
    Optimum,
    SmallGang,
    drawn_size,
    empty_blocks,
    places,
    small_load,
    sorted_blocks,
)
from yunikorn_lab.reporting.tables import duration, percent

FIRST = 5
"""Number of gangs that are placed before a policy under the bound sees everything."""
NEVER = 10**9
RUN = NormalDist(math.log(MEDIAN), SIGMA)
"""Logarithms of run times."""


def run_time(rng: random.Random, elapsed: int = 0) -> int:
    """Return a random run time of a gang that has run for `elapsed` seconds."""
    least = RUN.cdf(math.log(elapsed)) if elapsed else 0.0
    share = min(max(least + (1 - least) * rng.random(), 1e-12), 1 - 1e-12)
    return max(elapsed + 1, round(min(math.exp(RUN.inv_cdf(share)), 10 * MEDIAN)))


@attrs.frozen
class Moment:
    """State of a load; racks hold numbers of gangs, where those of small loads hold their ends."""

    now: int = 0
    blocks: Blocks = attrs.field(factory=empty_blocks)
    waiting: tuple[int, ...] = ()
    arrived: int = 0
    started: dict[int, int] = attrs.field(factory=dict)
    """Start of each gang that has been placed."""
    cost: int = 0
    """Sum of waits so far."""

    def running(self) -> set[int]:
        """Return the gangs that run."""
        return {gang for block in self.blocks for rack in block for gang, _ in rack}

    def next(self, gangs: Sequence[SmallGang]) -> Moment | None:
        """Return the state at the next event, before anything is placed; None if no gang is left."""
        if not self.waiting and self.arrived == len(gangs):
            return None
        ends = {gang: self.started[gang] + gangs[gang].runtime for gang in self.running()}
        events = [*ends.values()]
        if self.arrived < len(gangs):
            events.append(gangs[self.arrived].arrival)
        return self.at(min(events), gangs, {gang for gang, end in ends.items() if end <= min(events)})

    def at(self, now: int, gangs: Sequence[SmallGang], ended: set[int]) -> Moment:
        """Return the state at a later time, with those that have arrived, without those that have ended."""
        arrived = self.arrived
        while arrived < len(gangs) and gangs[arrived].arrival <= now:
            arrived += 1
        blocks = self.blocks
        if ended:
            blocks = sorted_blocks(
                [[tuple([one for one in rack if one[0] not in ended]) for rack in block] for block in blocks]
            )
        waiting = (*self.waiting, *range(self.arrived, arrived))
        cost = self.cost + len(self.waiting) * (now - self.now)
        return Moment(now, blocks, waiting, arrived, self.started, cost)

    def choices(self, gangs: Sequence[SmallGang], first: int) -> tuple[int, list[Moment]]:
        """Return the position of the next gang with a place, from `first` on, and the states after that."""
        for position in range(first, len(self.waiting)):
            gang = self.waiting[position]
            found = dict.fromkeys(places(self.blocks, gangs[gang].size, gang))
            if found:
                waiting = self.waiting[:position] + self.waiting[position + 1 :]
                started = {**self.started, gang: self.now}
                return position, [
                    Moment(self.now, blocks, waiting, self.arrived, started, self.cost) for blocks in found
                ]
        return len(self.waiting), []

    def shortest(self, gangs: Sequence[SmallGang], known: int) -> int:
        """Return the shortest sum of waits from here on that foresight permits; `known` is a possible one."""
        blocks = [
            [
                tuple(sorted((self.started[gang] + gangs[gang].runtime, nodes) for gang, nodes in rack))
                for rack in block
            ]
            for block in self.blocks
        ]
        return Optimum(gangs).search(
            known, self.now, sorted_blocks(blocks), self.waiting, self.arrived, self.cost
        )


def by_best_fit(after: Moment, size: int, gang: int) -> tuple[float, ...]:
    """Return the rank of a place of a gang as `best-fit` sees it, in small numbers of racks and nodes."""
    racks = [
        (len({one for one, _ in rack} - {gang}), NODES - sum(nodes for _, nodes in rack), block)
        for block in after.blocks
        for rack in block
        if any(one == gang for one, _ in rack)
    ]
    block = racks[0][2]
    beside = len({one for rack in block for one, _ in rack})
    left = racks[0][1] if size <= NODES else sum(NODES - sum(nodes for _, nodes in rack) for rack in block)
    return len(racks), -beside, -racks[0][0] if size <= NODES else 0, left


def finish(state: Moment | None, gangs: Sequence[SmallGang], first: int = 0) -> int:
    """Return the sum of waits if `best-fit` places all gangs from here on."""
    while state is not None:
        while (found := state.choices(gangs, first))[1]:
            first, options = found
            gang = state.waiting[first]
            rank = partial(by_best_fit, size=gangs[gang].size, gang=gang)
            state = min(options, key=rank)
        cost, first = state.cost, 0
        state = state.next(gangs)
    return cost


def future(state: Moment, gangs: Sequence[SmallGang], rng: random.Random, *, known: bool) -> list[SmallGang]:
    """Return the gangs in a random future; run times of those that have arrived are `known`, or random."""
    running, found, moment = state.running(), list[SmallGang](), float(state.now)
    for number, gang in enumerate(gangs):
        if number >= state.arrived:
            moment += rng.expovariate(1 / GAP)
            gang = SmallGang(max(round(moment), state.now + 1), run_time(rng), drawn_size(rng))
        elif not known and (number in running or number in state.waiting):
            elapsed = state.now - state.started[number] if number in running else 0
            gang = attrs.evolve(gang, runtime=run_time(rng, elapsed))
        found.append(gang)
    return found


def rollout(gangs: Sequence[SmallGang], samples: int, rng: random.Random, *, known: bool) -> int:
    """Return the sum of waits if each gang takes the place that is best on average over random futures."""
    state: Moment | None = Moment()
    while state is not None:
        position = 0
        while (found := state.choices(gangs, position))[1]:
            position, options = found
            if len(options) > 1:
                drawn = [future(state, gangs, rng, known=known) for _ in range(samples)]
                sums = [sum(finish(option, one, position) for one in drawn) for option in options]
                options = [options[sums.index(min(sums))]]
            state = options[0]
        cost = state.cost
        state = state.next(gangs)
    return cost


class Bound:
    """Bound of the mean sum of waits over futures of one load, whose first gangs are known."""

    def __init__(self, gangs: Sequence[SmallGang], samples: int, rng: random.Random, *, known: bool) -> None:
        self._first, self._known = gangs[:FIRST], known
        at = Moment(self._first[-1].arrival, arrived=FIRST)
        self._futures = [future(at, gangs, rng, known=True) for _ in range(samples)]
        if not known:
            self._futures = [
                [
                    attrs.evolve(gang, runtime=run_time(rng)) if number < FIRST else gang
                    for number, gang in enumerate(one)
                ]
                for one in self._futures
            ]

    def figures(self) -> tuple[float, float]:
        """Return the mean of the shortest sums with foresight, and the bound without."""
        count = len(self._futures)
        foresight = sum(Moment().shortest(one, finish(Moment(), one)) for one in self._futures)
        return foresight / count, self._after(Moment(), range(count)) / count

    def _after(self, state: Moment, futures: Sequence[int]) -> int:
        """Return the sum over futures from a state on in which all that fits has been placed."""
        if state.arrived == FIRST:
            return sum(self._revealed(state, number) for number in futures)
        if self._known:
            after = state.next(self._first)
            assert after is not None
            return self._place(after, 0, futures)
        now, running, total, going = self._first[state.arrived].arrival, state.running(), 0, list[int]()
        for number in futures:
            gangs = self._futures[number]
            if any(state.started[gang] + gangs[gang].runtime <= now for gang in running):
                total += self._revealed(state, number)
            else:
                going.append(number)
        return total + (self._place(state.at(now, self._first, set()), 0, going) if going else 0)

    def _place(self, state: Moment, first: int, futures: Sequence[int]) -> int:
        """Return the least sum over all places of the gangs that wait."""
        position, options = state.choices(self._first, first)
        if not options:
            return self._after(state, futures)
        return min(self._place(option, position, futures) for option in options)

    def _revealed(self, state: Moment, number: int) -> int:
        gangs = self._futures[number]
        return state.shortest(gangs, finish(state, gangs, len(state.waiting)))


def bound(loads: Sequence[Sequence[SmallGang]], samples: int, *, known: bool) -> tuple[float, float]:
    """Return by which part any policy waits longer than with foresight at least, and its standard error."""
    rng = random.Random(0)
    found = [Bound(gangs, samples, rng, known=known).figures() for gangs in loads]
    shortest = sum(foresight for foresight, _ in found) / len(found)
    more = [without - foresight for foresight, without in found]
    mean = sum(more) / len(more)
    error = math.sqrt(sum((one - mean) ** 2 for one in more) / len(more) / len(more))
    return mean / shortest, error / shortest


def measure_online(count: int, samples: int) -> Iterator[str]:
    """Yield the lines of a table: rollouts and bounds, with and without known run times.

    The bounds are means over every fourth of `count` loads, as they take long.
    """
    loads = [small_load(seed) for seed in range(count)]
    best = sum(Optimum(gangs).search(finish(Moment(), gangs)) for gangs in loads)
    yield "| run times | rollouts: mean wait | above the shortest | any policy, at least |"
    yield "|---|---|---|---|"
    for known in (True, False):
        rng = random.Random(0)
        total = sum(rollout(gangs, samples, rng, known=known) for gangs in loads)
        least, error = bound(loads[::4], samples, known=known)
        mean, above = duration(total / (count * GANGS)), percent(total / max(best, 1) - 1)
        limit = f"{percent(least)} (± {percent(1.96 * error)})"
        yield f"| {'known' if known else 'unknown'} | {mean} | {above} | {limit} |"
