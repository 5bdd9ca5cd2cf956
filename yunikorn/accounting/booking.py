"""Booking of amounts on an application and its queues: what they have allocated, and what they wait for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yunikorn.model.application import Application
    from yunikorn.model.ask_class import Pairs
    from yunikorn.resources import Tally


def book(app: Application, amount: Mapping[str, int], *, allocated: int = 0, pending: int = 0) -> None:
    """Add `amount`, times these whole numbers, to what an application and all its queues have and wait for.

    Each of them keeps `allocated`, and `demand`: allocated plus pending. All are marked as changed.
    """
    pairs, wanted = amount.items(), allocated + pending
    for name, value in pairs:
        app.demand[name] = app.demand.get(name, 0) + value * wanted
        if allocated:
            app.allocated[name] = app.allocated.get(name, 0) + value * allocated
    if not app.is_dirty:
        app.mark_dirty()
    for queue in app.chain:
        if queue.observer is not None and allocated:
            queue.observer.note()
        elif queue.lender is not None:
            queue.lender.note()
        demand = queue.demand
        for name, value in pairs:
            demand[name] = demand.get(name, 0) + value * wanted
            if allocated:
                queue.allocated[name] = queue.allocated.get(name, 0) + value * allocated
        if not queue.is_dirty:
            queue.mark_dirty()


def book_decision(app: Application, pairs: Pairs) -> None:
    """Book a decision: as `book` with `allocated=1` and `pending=-1`, but several times as fast.

    Every decision calls this, and mostly all types are in use already. `demand` is unchanged.
    """
    allocated = app.allocated
    if allocated:
        try:
            for name, amount in pairs:
                allocated[name] += amount
        except KeyError:
            _continue(allocated, pairs, name)
    else:
        allocated.update(pairs)
    if not app.is_dirty:
        app.mark_dirty()
    for queue in app.chain:
        allocated = queue.allocated
        if queue.observer is not None:
            queue.observer.note()
        try:
            for name, amount in pairs:
                allocated[name] += amount
        except KeyError:
            _continue(allocated, pairs, name)
        if not queue.is_dirty:
            queue.is_dirty = True
            queue.parent.dirty.append(queue)  # type: ignore[union-attr]  # root is always dirty


def _continue(allocated: Tally, pairs: Pairs, first: str) -> None:
    """Add those of `pairs` that begin with the type `first`, which `allocated` does not contain yet."""
    reached = False
    for name, amount in pairs:
        reached = reached or name == first
        if reached:
            allocated[name] = allocated.get(name, 0) + amount
