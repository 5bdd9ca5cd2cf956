"""Booking of amounts on an application and its queues: what they have allocated, and what they wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from yunikorn.model.application import Application
    from yunikorn.model.ask_class import Pairs
    from yunikorn.resources import Tally


def book(app: Application, amount: Mapping[str, int], *, allocated: int = 0, pending: int = 0) -> None:
    """Add `amount`, times these whole numbers, to what an application and all its queues have and wait for.

    Each of them keeps `allocated`, and `demand`: allocated plus pending. All are marked as changed.
    """
    demands, used, wanted = [app.demand], [app.allocated], allocated + pending
    if not app.is_dirty:
        app.mark_dirty()
    for queue in app.chain:
        demands.append(queue.demand)
        used.append(queue.allocated)
        if queue.observer is not None and allocated:
            queue.observer.note(app)
        elif queue.lender is not None:
            queue.lender.note()
        if not queue.is_dirty:
            queue.mark_dirty()
    if wanted:
        _add(amount, wanted, demands)
    if allocated:
        _add(amount, allocated, used)


def _add(amount: Mapping[str, int], times: int, tallies: list[Tally]) -> None:
    """Add `amount` times `times` to the tallies, which mostly contain all types already.

    Each type is added to all tallies at once: there are few types, and more tallies.
    """
    for name, value in amount.items():
        value *= times
        try:
            for tally in tallies:
                tally[name] += value
        except KeyError:
            done = True
            for one in tallies:
                done = done and one is not tally
                if not done:
                    one[name] = one.get(name, 0) + value


def book_decision(app: Application, pairs: Pairs) -> None:
    """Book a decision: as `book` with `allocated=1` and `pending=-1`, but several times as fast.

    Every decision calls this, and mostly all types are in use already. `demand` is unchanged.
    """
    if not app.is_dirty:
        app.mark_dirty()
    for queue in app.chain:
        allocated = queue.allocated
        if queue.observer is not None:
            queue.observer.note(app)
        try:
            for name, amount in pairs:
                allocated[name] += amount
        except KeyError:
            _continue(allocated, pairs, name)
        if not queue.is_dirty:
            queue.is_dirty = True
            queue.parent.dirty.append(queue)  # type: ignore[union-attr]  # root is always dirty
    # Afterwards, because an observer of the leaf reads what the application had until now.
    allocated = app.allocated
    if allocated:
        try:
            for name, amount in pairs:
                allocated[name] += amount
        except KeyError:
            _continue(allocated, pairs, name)
    else:
        allocated.update(pairs)


def _continue(tally: Tally, pairs: Iterable[tuple[str, int]], first: str) -> None:
    """Add those of `pairs` that begin with the type `first`, which the tally does not contain yet."""
    reached = False
    for name, amount in pairs:
        reached = reached or name == first
        if reached:
            tally[name] = tally.get(name, 0) + amount
