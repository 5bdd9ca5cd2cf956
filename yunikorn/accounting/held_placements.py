"""Placements that permit policies hold: booked like any other, and unknown to the RM.

The RM is informed when the policies permit a placement. One that is refused, or that loses its node or its
request, is taken back: its request is pending again, as the RM believes all the time
(docs/decisions/archive/0069).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.model.allocation import PlacementHold
from yunikorn.model.ask import REQUIRED_NODE_TAG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from yunikorn.accounting.allocation_accounting import AllocationAccounting
    from yunikorn.accounting.gang_formation import GangFormation
    from yunikorn.clock import Clock
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.gang import AtomicGang
    from yunikorn.model.node import Node


class HeldPlacements:
    """Held placements of one partition."""

    def __init__(
        self,
        accounting: AllocationAccounting,
        formation: GangFormation,
        clock: Clock,
        watch: Callable[[Allocation], None],
    ) -> None:
        """Create without placements; `watch` starts the execution timeout of an announced allocation."""
        self._accounting = accounting
        self._formation = formation
        self._clock = clock
        self._watch = watch
        self._number = 0
        self._holds: dict[PlacementHold, None] = {}
        self._readers = accounting.changes.readers
        self._readers.gang_timed_out.append(self.take_back_of)

    def __len__(self) -> int:
        return len(self._holds)

    def __iter__(self) -> Iterator[PlacementHold]:
        """Return the held placements in order of placement."""
        return iter(list(self._holds))

    def __contains__(self, hold: PlacementHold) -> bool:
        return hold in self._holds

    # -- placements ---------------------------------------------------------------------------------

    def place(self, ask: Ask, node: Node) -> PlacementHold:
        """Book one pending replica of the ask on `node`, unknown to the RM."""
        return self._place([(ask, node)])

    def place_gang(self, gang: AtomicGang, plan: Sequence[tuple[Ask, Node]]) -> PlacementHold:
        """Book all members of an atomic gang, unknown to the RM."""
        self._formation.hold(gang)
        return self._place(plan, gang)

    def _place(self, plan: Sequence[tuple[Ask, Node]], gang: AtomicGang | None = None) -> PlacementHold:
        app, accounting = plan[0][0].app, self._accounting
        before = (app.waiting_since, app.misses)
        now = self._clock.now()
        self._number += 1
        members = [accounting.place_unannounced(ask, node, now) for ask, node in plan]
        hold = PlacementHold(members, self._number, before, gang)
        self._holds[hold] = None
        for one in members:
            one.ensure_extras().hold = hold
        return hold

    def announce(self, hold: PlacementHold) -> None:
        """Announce a permitted placement to the RM."""
        self._end(hold)
        gang = hold.gang
        if gang is not None:
            self._formation.finish(gang)
        now = self._clock.now()
        for one in hold.members:
            self._accounting.announce(one, now)
            if one.spec.execution_timeout:
                self._watch(one)
        if gang is not None:
            self._formation.unblock_rest(gang)

    def take_back(self, hold: PlacementHold, why: str = "", *, at_once: bool = False) -> None:
        """Undo a placement: its requests, all members of a gang, are pending again.

        With `why` they wait for a change before they are tried again. `at_once` if nothing has been decided
        since the placement, which then leaves no trace; otherwise requests with `why` pause as well.
        """
        self._end(hold)
        for one in reversed(hold.members):
            assert one.ask is not None
            if not one.ask.pending:
                for returning in self._readers.request_returning:
                    returning(one.ask)
            self._accounting.take_back(one, at_once=at_once)
        if at_once:
            # Other changes, such as those of a quota that depends on the usage, are kept.
            self._accounting.change_count -= 2 * len(hold.members)
            hold.app.waiting_since, hold.app.misses = hold.before
        gang = hold.gang
        if gang is not None:
            self._formation.resume(gang, refused=bool(why))
        if why:
            for refused in self._readers.hold_refused:
                refused(hold, why, at_once)
        if not at_once:
            for ask in dict.fromkeys(one.ask for one in hold.members if one.ask is not None):
                for returned in self._readers.request_returned:
                    returned(ask)

    def _end(self, hold: PlacementHold) -> None:
        del self._holds[hold]
        for ended in self._readers.hold_ended:
            ended(hold)

    # -- ends for other reasons ---------------------------------------------------------------------

    def take_back_of(self, app: Application, key: str = "") -> None:
        """Take back the held placements of an application, or of its ask with this key."""
        if app.unannounced:
            self._take_back_all(app.of_key(key) if key else list(app.allocations.values()))

    def take_back_on(self, node: Node, *, required: bool = True) -> None:
        """Take back the held placements on a node that was removed, drained or relabelled.

        With `required` False those stay that require the node, and may start although it is drained.
        """
        if self._holds:
            self._take_back_all(
                [
                    one
                    for one in node.allocations.values()
                    if required or one.tags.get(REQUIRED_NODE_TAG) != node.id
                ]
            )

    def _take_back_all(self, allocations: Sequence[Allocation]) -> None:
        for one in allocations:
            # The placement of all members of a gang is one.
            if one.hold is not None:
                self.take_back(one.hold)
