"""Atomic gangs: members that are placed together or not at all, without placeholders (decision 24).

The members wait, out of the running, until all have arrived. Then one request stands for them in their
application: it asks for what they take together, so that quotas and limits are checked as for any
request, and it is served by placing every one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.objects.ask import Ask
from yunikorn.objects.shape import Shape
from yunikorn.objects.terms import Terms
from yunikorn.resources import Resource, Tally, fits, grow

if TYPE_CHECKING:
    from yunikorn.clock import Timer
    from yunikorn.objects.application import Application
    from yunikorn.objects.ledger import Ledger
    from yunikorn.objects.node import Node

Members = list[tuple[Ask, int]]
"""Asks in their order, and how many repeats of each belong to the gang."""


class GangShape(Shape):
    """What gangs of the same composition have in common."""

    __slots__ = ("members",)

    members: tuple[Shape, ...]

    def fits(self, node: Node) -> bool:
        """Whether `node` has room for any member: then the gang may have become placeable."""
        return any(member.fits(node) for member in self.members)


class AtomicGang:
    """The gang of an application whose members are placed together."""

    __slots__ = (
        "_alone",
        "_arrived",
        "_asks",
        "_ledger",
        "app",
        "deadline",
        "done",
        "members",
        "overdue",
        "request",
        "told",
        "total",
    )

    def __init__(self, app: Application, total: Resource, ledger: Ledger) -> None:
        self.app = app
        self.total = total
        """Its size: it is whole when its members take at least so much."""
        self._ledger = ledger
        self._asks: dict[str, Ask] = {}
        self._arrived: Tally = {}
        self._alone = False
        self.members: Members = []
        """Those that are placed together; more of the task groups than the size needs come after them."""
        self.request: Ask | None = None
        """What stands for the members while they wait and all are there."""
        self.done = False
        """Whether it was placed, or found running: from then on its asks are like any others."""
        self.deadline: Timer | None = None
        """Runs while it is whole and finds no room."""
        self.overdue = False
        """Whether it has waited so long that later requests are held back."""
        self.told = False
        """Whether it was reported as having no room."""

    @property
    def is_whole(self) -> bool:
        """Whether all members have arrived."""
        return fits(self._arrived, self.total)

    def count(self, ask: Ask, difference: int) -> None:
        """So many more repeats of a member wait."""
        if self.done:
            return
        grow(self._arrived, ask.resource, difference)
        if ask.pending:
            self._asks[ask.key] = ask
        else:
            self._asks.pop(ask.key, None)
        # A gang that is whole already takes in no one who comes later; whoever goes may be missed.
        if difference < 0 or self.request is None:
            self.form()

    def form(self, *, alone: bool | None = None) -> None:
        """Let a request stand for the members if all are there; `alone` if nothing learnt of it is shared."""
        self._withdraw()
        if alone is not None:
            self._alone = alone
        if self.done or not self.is_whole:
            self.rest()
            return
        self.members, amount = self._choose()
        first = self.members[0][0]
        # Room for one member would be taken from others for nothing while there is none for the next.
        terms = Terms(may_preempt=False)
        name = f"gang of {self.app.id}"
        request = Ask(name, self.app, amount, 1, first.priority, first.created, first.arrival, terms)
        claims = self._ledger.claims
        shape = claims.shapes.of(amount, classes=self._classes(), kind=GangShape)
        assert isinstance(shape, GangShape)
        shape.members = tuple(dict.fromkeys(ask.shape for ask, _ in self.members))
        request.claim, request.suffer().gang = claims.of(shape, self.app.owner), self
        self.request = request
        self._ledger.backlog.offer(request)

    def _choose(self) -> tuple[Members, Resource]:
        chosen: Members = []
        amount: Tally = {}
        for ask in sorted(self._asks.values(), key=lambda ask: ask.order):
            count = 0
            while count < ask.pending and not fits(amount, self.total):
                grow(amount, ask.resource)
                count += 1
            if count:
                chosen.append((ask, count))
        return chosen, Resource(amount)

    def _classes(self) -> tuple[object, ...]:
        counts: dict[object, int] = {}
        for ask, count in self.members:
            counts[ask.shape.key] = counts.get(ask.shape.key, 0) + count
        return ("gang", tuple(counts.items()), self.app.id if self._alone else "")

    def _withdraw(self) -> None:
        if self.request is not None:
            request, self.request = self.request, None
            self._ledger.backlog.withdraw(request)

    def rest(self) -> None:
        """It waits no more, or not yet: its wait starts anew."""
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
        self.overdue = self.told = self._alone = False

    def finish(self) -> None:
        """It has its place: nothing stands for its members any more."""
        self.done = True
        self._withdraw()
        self.rest()

    def let_go(self) -> None:
        """What of it still waits is like any other request."""
        for ask in self._asks.values():
            if ask.held:
                self._ledger.backlog.let_go(ask)
        self._asks.clear()
