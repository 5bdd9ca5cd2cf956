"""The state machines of the other tests, with accounting checks only now and then.

Some accounting is lazy: the index of allocations by uuid is built on first use, and usage of users is booked
when it is read. A check after every step, as in the other machines, would flush it every time. Here the check
is a rule of its own, and many runs have none until their end.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis.stateful import invariant, rule

from tests.core.all_accounts import QueuePosition, check_all_accounts
from tests.core.machine import Reserving, SideBySide
from tests.core.test_everything import Everything
from tests.core.test_machine import BOUNDS, EXAMPLES

SELDOM = settings(BOUNDS, max_examples=EXAMPLES // 2)


class Seldom(SideBySide):
    """Twins with a comparison of every decision, and of the accounting now and then."""

    @rule()
    def all_is_right(self) -> None:
        super().all_is_right()


class SeldomReserving(Seldom, Reserving):
    """The same with reservations."""


class SeldomEverything(Everything):
    """The machine of test_everything.py with rare checks."""

    @invariant()
    def goes_on(self) -> None:
        """Schedule if the drawn mode says so, without any check."""
        if self.eager:
            self.schedule_all()
        self.rm.responses.clear()

    @rule()
    def all_is_right(self) -> None:
        check_all_accounts(self.rm)

    def _standing(self) -> QueuePosition:
        return {}

    def _check_starts(self, before: dict[str, bool]) -> None:
        """Check nothing, because the check would flush the usage."""


TestSeldom = Seldom.TestCase
TestSeldom.settings = SELDOM
TestSeldomReserving = SeldomReserving.TestCase
TestSeldomReserving.settings = SELDOM
TestSeldomEverything = SeldomEverything.TestCase
TestSeldomEverything.settings = SELDOM
