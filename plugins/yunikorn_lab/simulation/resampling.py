"""Random variants of a recorded workload: block bootstrap of weeks, days or users, and shuffled lists.

A bootstrap draws blocks of the recording with replacement, as many as there are. A block of a week or a day
moves by whole weeks or days, so that the times of day and the days of the week stay. A user is a block with
all applications; further copies of a user move by whole weeks or days as well, and keep the name, so that
rules and limits apply to them. The nodes and their events stay as they are.

Source: H. R. Künsch, "The jackknife and the bootstrap for general stationary observations", Annals of
Statistics 17, 1989; of users: N. Zakay, D. G. Feitelson, "Workload resampling for performance evaluation of
parallel job schedulers", Concurrency and Computation 26, 2014.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from yunikorn.errors import UsageError
from yunikorn_lab.simulation.arrivals import DAY, WEEK
from yunikorn_lab.simulation.rng import streams
from yunikorn_lab.simulation.workload import Workload, WorkloadApplication

AUTO, WEEKS, DAYS, USERS = "auto", "weeks", "days", "users"
RESAMPLINGS = (AUTO, WEEKS, DAYS, USERS)
"""Blocks of a bootstrap; `auto` takes weeks, days or users, whichever the recording has enough of first."""
ORDER = "order"
"""Drawn by `auto` and by a shuffle for applications that all arrive at one time."""
FEWEST = 4
"""Minimum number of weeks or days for `auto`; also of users."""

Block = list[WorkloadApplication]


def resample(workload: Workload, by: str, seed: int) -> Workload:
    """Draw a variant of a workload; raises `UsageError` if the workload is too small.

    With `auto`, applications that all arrive at one time are shuffled.
    """
    applications = list(workload.applications)
    if by == AUTO and len({one.submit for one in applications}) == 1:
        return shuffle(workload, seed)
    by = _choose(applications) if by == AUTO else by
    if by == USERS:
        drawn, blocks = _draw_users(applications, seed)
    else:
        drawn, blocks = _draw_times(applications, WEEK if by == WEEKS else DAY, seed)
    if blocks < 2:
        raise UsageError(f"--resample {by}: the workload has only one of them")
    counts = f"{len(drawn):,} applications instead of {len(applications):,}"
    remark = f"a bootstrap of {blocks:,} {by} with seed {seed}: {counts}"
    return _changed(workload, drawn, seed, remark, by)


def shuffle(workload: Workload, seed: int) -> Workload:
    """Put applications that all arrive at one time into a random order; raises `UsageError` for others."""
    applications = list(workload.applications)
    if len({one.submit for one in applications}) > 1:
        raise UsageError(
            "--shuffle: the applications arrive at different times, which give their order; use --resample "
            "and --seed for other arrivals"
        )
    draw = streams(seed)("order")
    keys = [(draw(), number) for number in range(len(applications))]
    drawn = [applications[number] for _, number in sorted(keys)]
    return _changed(
        workload, drawn, seed, f"the order of the applications is shuffled with seed {seed}", ORDER
    )


def _changed(workload: Workload, drawn: Block, seed: int, remark: str, resampled: str) -> Workload:
    # The waits of a recording belong to its own arrivals.
    applications = [attrs.evolve(one, recorded_wait=None) for one in drawn]
    return attrs.evolve(
        workload,
        applications=applications,
        began=None,
        recorded=None,
        remarks=[*workload.remarks, remark],
        seed=seed,
        resampled=resampled,
        startup=attrs.evolve(workload.startup, seed=seed),
    )


def _choose(applications: Block) -> str:
    last = max((one.submit for one in applications), default=0)
    users = len({one.user for one in applications})
    if last // WEEK + 1 >= FEWEST:
        return WEEKS
    if last // DAY + 1 >= FEWEST:
        return DAYS
    if users >= FEWEST:
        return USERS
    raise UsageError(
        "a seed has no effect: the workload has no distributions, and too few blocks to draw from: expected "
        f"{FEWEST} weeks, days or users"
    )


def _draw_times(applications: Block, unit: int, seed: int) -> tuple[Block, int]:
    blocks: dict[int, Block] = {}
    for one in applications:
        blocks.setdefault(one.submit // unit, []).append(one)
    count = max(blocks, default=0) + 1
    draw = streams(seed)("blocks")
    copies: dict[int, int] = {}
    found: Block = []
    for slot in range(count):
        number = min(int(draw() * count), count - 1)
        copies[number] = copies.get(number, 0) + 1
        found += _copy(blocks.get(number, ()), copies[number], (slot - number) * unit, 0)
    return _in_order(found), count


def _draw_users(applications: Block, seed: int) -> tuple[Block, int]:
    blocks: dict[str, Block] = {}
    for one in applications:
        blocks.setdefault(one.user, []).append(one)
    users = list(blocks)
    last = max((one.submit for one in applications), default=0)
    unit = WEEK if last >= WEEK else DAY
    whole = last // unit + 1
    drawn_from = streams(seed)
    draw, move = drawn_from("users"), drawn_from("moves")
    copies: dict[str, int] = {}
    found: Block = []
    for _ in users:
        user = users[min(int(draw() * len(users)), len(users) - 1)]
        copies[user] = copies.get(user, 0) + 1
        moved = min(int(move() * whole), whole - 1) * unit if copies[user] > 1 else 0
        found += _copy(blocks[user], copies[user], moved, whole * unit)
    return _in_order(found), len(users)


def _copy(block: Iterable[WorkloadApplication], number: int, moved: int, around: int) -> Block:
    """Copy a block; further copies have other ids, and keep predecessors that are in the block."""
    found = list(block)
    names = {one.id: one.id if number == 1 else f"{one.id}~{number}" for one in found}
    return [
        attrs.evolve(
            one,
            id=names[one.id],
            submit=(one.submit + moved) % around if around else one.submit + moved,
            after=tuple(names[name] for name in one.after if name in names),
        )
        for one in found
    ]


def _in_order(applications: Block) -> Block:
    return sorted(applications, key=lambda one: one.submit)
