"""The state machines of the other tests, with accounting checks only now and then.

Some accounting is lazy: the index of allocations by uuid is built on first use, and usage of users is booked
when it is read. A check after every step, as in the other machines, would flush it every time. Here the check
is a rule of its own, and many runs have none until their end.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis.stateful import invariant, rule

from tests.core.machine import Reserving, SideBySide
from tests.core.partition_checks import QueuePosition, check_partition_accounting
from tests.core.test_everything import Everything
from tests.core.test_machine import BOUNDS, EXAMPLES

SELDOM = settings(BOUNDS, max_examples=EXAMPLES // 2)


class RarelyChecked(SideBySide):
    """Compared schedulers with a comparison of every decision, and of the accounting now and then."""

    @rule()
    def invariants_hold(self) -> None:
        super().invariants_hold()


class RarelyCheckedReserving(RarelyChecked, Reserving):
    """The same with reservations."""


class RarelyCheckedEverything(Everything):
    """The machine of test_everything.py with rare checks."""

    @invariant()
    def schedule_unchecked(self) -> None:
        """Schedule if the drawn mode says so, without any check."""
        if self.eager:
            self.schedule_all()
        self.rm.responses.clear()

    @rule()
    def invariants_hold(self) -> None:
        check_partition_accounting(self.rm)

    def _usage_and_bounds(self) -> QueuePosition:
        return {}

    def _check_starts(self, before: dict[str, bool]) -> None:
        """Check nothing, because the check would flush the usage."""


TestRarelyChecked = RarelyChecked.TestCase
TestRarelyChecked.settings = SELDOM
TestRarelyCheckedReserving = RarelyCheckedReserving.TestCase
TestRarelyCheckedReserving.settings = SELDOM
TestRarelyCheckedEverything = RarelyCheckedEverything.TestCase
TestRarelyCheckedEverything.settings = SELDOM
