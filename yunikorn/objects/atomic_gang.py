"""Atomic gangs: members that are placed together or not at all, without placeholders (decision 24).

The members wait, out of the running, until all have arrived. Then one request stands for them in their
application: it asks for what they take together, so that quotas and limits are checked as for any
request, and it is served by placing every one of them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from operator import attrgetter
from typing import TYPE_CHECKING

from yunikorn.objects.ask import Ask
from yunikorn.objects.ask_class import AskClass
from yunikorn.objects.ask_spec import AskSpec
from yunikorn.resources import INT64_MAX, Resource, Tally, fits, grow, saturate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yunikorn.clock import Timer
    from yunikorn.objects.allocation_accounting import AllocationAccounting
    from yunikorn.objects.application import Application
    from yunikorn.objects.ask_class import Key
    from yunikorn.objects.node import Node

Members = list[tuple[Ask, int]]
"""Asks in their order, and how many repeats of each belong to the gang."""

MOST_MEMBERS = 200_000
"""Members of the largest gang that is placed: one decision places all of them, and delays all others."""

_ORDER = attrgetter("order")


class GangClass(AskClass):
    """What gangs of the same composition have in common."""

    __slots__ = ("members", "possible", "why")

    def __init__(self, key: Key, bit: int) -> None:
        super().__init__(key, bit)
        self.members: tuple[AskClass, ...] = ()
        self.possible: tuple[tuple[int, int], bool] | None = None
        """Whether empty nodes could host such a gang, at which version of nodes and configuration."""
        self.why = ""
        """The reason why no room was found for such a gang when one was last tried."""

    @property
    def is_pinned(self) -> bool:
        """Whether a member may come to a node that is drained, or reserved for others."""
        return any(member.required for member in self.members)

    def fits(self, node: Node) -> bool:
        """Whether `node` has room for any member: then the gang may have become placeable."""
        free = node.is_free
        return any((free or member.required) and member.fits(node) for member in self.members)


class AtomicGang:
    """The gang of an application whose members are placed together."""

    __slots__ = (
        "_accounting",
        "_alone",
        "_arrived",
        "_asks",
        "_needed",
        "_unformed",
        "app",
        "deadline",
        "done",
        "members",
        "overdue",
        "request",
        "told",
        "total",
    )

    def __init__(self, app: Application, total: Resource, accounting: AllocationAccounting) -> None:
        self.app = app
        self.total = total
        """Its size: it is whole when its members take at least so much."""
        self._accounting = accounting
        self._asks: list[Ask] = []
        """Asks of its task groups that wait, in their order."""
        self._arrived: Tally = {}
        """The sum of their pending repeats."""
        self._needed: dict[str, int] = {}
        """By key: repeats of each ask that are members."""
        self._unformed = False
        """Whether a member was lost and the members are to be chosen again."""
        self._alone = False
        self.members: Members = []
        """Those that are placed together; more of the task groups than the size needs come after them."""
        self.request: Ask | None = None
        """What stands for the members while they wait and all are there."""
        self.done = False
        """Whether it was placed, or found running: from then on its asks are like any others."""
        self.deadline: Timer | None = None
        """Runs from its first turn without room on, until the gang is overdue or placed."""
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
        if ask.pending == difference:
            insort(self._asks, ask, key=_ORDER)
        elif not ask.pending:
            del self._asks[bisect_left(self._asks, ask.order, key=_ORDER)]
        # Members are chosen once: later asks add none, and only the loss of one calls for another choice.
        if difference > 0:
            if not self.members and self.is_whole:
                self.form()
        elif ask.pending < self._needed.get(ask.key, 0):
            self._miss()

    def _miss(self) -> None:
        """Choose other members for one that was lost: once for all that are lost before the next decision."""
        if not self.is_whole:
            self.form()
        elif not self._unformed:
            self._withdraw()
            self._unformed = True
            self._accounting.gangs.unformed[self.app.id] = self

    def choose_members(self) -> None:
        """Let the members be chosen now if that is still to be done."""
        if self._unformed:
            self.form()

    def form(self, *, alone: bool | None = None) -> None:
        """Let a request stand for the members if all are there; `alone` if nothing learnt of it is shared."""
        self._withdraw()
        self._unformed = False
        if alone is not None:
            self._alone = alone
        if self.done or not self.is_whole:
            self.members, self._needed = [], {}
            self.rest()
            return
        self.members, amount = self._choose()
        self._needed = {ask.key: count for ask, count in self.members}
        if not self.members:
            # A size below 0, which only an application has that must be taken: no member is needed.
            self.finish()
            self.let_go()
            return
        if self.is_too_large:
            self.rest()
            self._accounting.gangs.report(self.app, "GangTooLarge", self.too_large)
            return
        first = self.members[0][0]
        # Room for one member would be taken from others for nothing while there is none for the next.
        spec = AskSpec(may_preempt=False)
        name = f"gang of {self.app.id}"
        request = Ask(name, self.app, amount, 1, first.priority, first.created, first.arrival, spec)
        pending_classes = self._accounting.pending_classes
        ask_class = pending_classes.ask_classes.of(amount, classes=self._classes(), kind=GangClass)
        assert isinstance(ask_class, GangClass)
        ask_class.members = tuple(dict.fromkeys(ask.ask_class for ask, _ in self.members))
        request.pending_class = pending_classes.of(ask_class, self.app.owner, insists=self.insists)
        request.ensure_extras().gang = self
        self.request = request
        self._accounting.pending_accounting.offer(request)

    @property
    def size(self) -> int:
        """The number of its members."""
        return sum(self._needed.values())

    @property
    def is_too_large(self) -> bool:
        """Whether it has more members than one decision may place."""
        return self.size > MOST_MEMBERS

    @property
    def too_large(self) -> str:
        """Why a gang of this size is never placed."""
        return f"its gang has {self.size} members, and at most {MOST_MEMBERS} can be placed at once"

    def _choose(self) -> tuple[Members, Resource]:
        """The members, and their sum: of each ask, in order, the repeats that supply a type still missing."""
        chosen: Members = []
        amount: Tally = {}
        for ask in self._asks:
            if fits(amount, self.total):
                break
            count = _repeats(ask, self.total, amount)
            if count:
                chosen.append((ask, count))
                grow(amount, ask.resource, count)
        if amount and max(amount.values()) > INT64_MAX:
            amount = {name: saturate(value) for name, value in amount.items()}
        return chosen, Resource(amount)

    def _classes(self) -> tuple[object, ...]:
        counts: dict[object, int] = {}
        for ask, count in self.members:
            counts[ask.ask_class.key] = counts.get(ask.ask_class.key, 0) + count
        return ("gang", tuple(counts.items()), self.app.id if self._alone else "")

    @property
    def insists(self) -> bool:
        """Whether it has its turn although its like found no room: it had none before, or is overdue.

        An answer to one gang holds for all of its ask class and owner, so that only one of them is tried.
        But the
        wait of each starts with its own first turn, and each that is overdue holds back later requests.
        """
        return self.deadline is None or self.overdue

    def insist(self, *, wanted: bool) -> None:
        """Have the request insist on its turn, or not any more: it has another pending class then."""
        request = self.request
        if request is not None and request.pending_class.force_visit != wanted:
            pending_accounting, pending_classes = (
                self._accounting.pending_accounting,
                self._accounting.pending_classes,
            )
            pending_accounting.withdraw(request)
            request.pending_class = pending_classes.of(request.ask_class, self.app.owner, insists=wanted)
            pending_accounting.offer(request)

    def _withdraw(self) -> None:
        if self.request is not None:
            request, self.request = self.request, None
            self._accounting.pending_accounting.withdraw(request)

    def rest(self) -> None:
        """It waits no more, or not yet: its wait starts anew."""
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
        self.overdue = self.told = self._alone = False
        self._accounting.gangs.overdue.pop(self.app.id, None)

    def finish(self) -> None:
        """It has its place: nothing stands for its members any more."""
        self.done = True
        self._withdraw()
        self.rest()

    def let_go(self) -> None:
        """What of it still waits is like any other request."""
        for ask in self._asks:
            if ask.gang_blocked:
                self._accounting.pending_accounting.unblock_for_gang(ask)
        self._asks.clear()


def _repeats(ask: Ask, total: Mapping[str, int], chosen: Mapping[str, int]) -> int:
    """The fewest pending repeats of an ask that supply all they can of what `chosen` lacks of `total`."""
    count, most, resource = 0, ask.pending, ask.resource
    for name, value in total.items():
        lacking = value - chosen.get(name, 0)
        if lacking > count * (amount := resource.get(name, 0)) and amount:
            count = -(-lacking // amount)
            if count >= most:
                return most
    return count
