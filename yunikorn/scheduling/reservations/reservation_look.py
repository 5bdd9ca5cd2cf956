"""Look at the requests of ask classes to which the policy refused a reservation, in the order of queues.

A look leaves out queues and applications whose bound is reached, and leaves a queue where it comes to a gang
that holds back the requests after it (docs/decisions/archive/0154).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.reservations.reservation_rules import Owner, ReservationRefusal

Backpressure = Mapping["Application", tuple["Ask", "Queue"]]
"""Applications whose gangs hold back others, each with the gang's request and the queue in which it does."""


def owners_of(app: Application) -> tuple[Owner, ...]:
    """Return the queues and the application whose bounds apply to a reservation."""
    return (*app.chain, app)


class ReservationLook:
    """One visit of the requests of waiting ask classes."""

    def __init__(
        self,
        wanted: int,
        backpressure: Backpressure,
        refusal: Callable[[Owner], ReservationRefusal | None],
        put_in_order: Callable[[Queue], None],
    ) -> None:
        """Begin for the pending classes with the `wanted` bits; `refusal` is that of a reached bound."""
        self.wanted = wanted
        """Bits of the pending classes that still want a reservation."""
        self._backpressure, self._refusal, self._put_in_order = backpressure, refusal, put_in_order
        self._gangs = 0
        """Bits of the pending classes of these gangs, so that they are visited, too."""
        for request, _ in backpressure.values():
            self._gangs |= request.pending_class.bits
        self.visited = 0
        """Number of visited queues, applications and requests."""
        self.again: int | None = None
        """Time of the next look without a change (ns); None if only a change can alter an answer."""

    def requests(self, queue: Queue) -> Iterator[Ask]:
        """Yield the requests in a queue and below that may reserve, until `wanted` has no bits any more."""
        self.visited += 1
        if self._is_full(queue):
            return
        self._put_in_order(queue)
        for member in queue.sorted_members.having(self.wanted | self._gangs):
            if not member.bits & (self.wanted | self._gangs):
                continue
            yield from self._of_application(member) if queue.is_leaf else self.requests(member)
            if not self.wanted or self._is_blocked_after(member) or self._is_full(queue):
                return

    def _of_application(self, app: Application) -> Iterator[Ask]:
        self.visited += 1
        gang = self._backpressure.get(app)
        bits = app.requests.bits & self.wanted
        while bits and not any(map(self._is_full, owners_of(app))):
            ask = app.requests.first(bits if gang is None else bits | gang[0].pending_class.bit)
            if ask is None or (gang is not None and ask is gang[0]):
                return
            bits &= ~ask.pending_class.bit
            self.visited += 1
            yield ask

    def _is_blocked_after(self, member: Owner) -> bool:
        """Return True if a gang of an application, or in a queue, holds back the members after it."""
        if member in self._backpressure:
            return True
        # The queue above the member is the one in which the gang holds back others, or is below that.
        return any(
            member in app.chain and app.chain.index(member) < app.chain.index(within)
            for app, (_, within) in self._backpressure.items()
        )

    def drop(self, ask_class: AskClass) -> None:
        """Look at no further request of an ask class."""
        for pending_class in ask_class.pending_classes.values():
            self.wanted &= ~pending_class.bits

    def _is_full(self, owner: Owner) -> bool:
        refusal = self._refusal(owner)
        if refusal is not None:
            self.note(refusal)
        return refusal is not None

    def note(self, refusal: ReservationRefusal) -> None:
        """Note a refusal, which may end with time."""
        if refusal.until is not None and (self.again is None or refusal.until < self.again):
            self.again = refusal.until
