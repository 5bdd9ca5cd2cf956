"""The machines once more, and the books looked at only now and then.

Some books are kept lazily: allocations by their uuid from the first time that somebody asks for one, what
users hold when somebody asks how much. Whoever looks after every step, as the other machines do, asks every
time, so that there is never much to catch up with. Here looking is one of the rules, which many a run goes
without until its end.
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
    """Twins, compared in every decision, and in their books now and then."""

    @rule()
    def all_is_right(self) -> None:
        super().all_is_right()


class SeldomReserving(Seldom, Reserving):
    """With reservations."""


class SeldomEverything(Everything):
    """An RM that does what it likes, and is rarely looked at."""

    @invariant()
    def goes_on(self) -> None:
        """Decide at once if that is how it is, and look at nothing."""
        if self.eager:
            self.schedule_all()
        self.rm.responses.clear()

    @rule()
    def all_is_right(self) -> None:
        check_all_accounts(self.rm)

    def _standing(self) -> QueuePosition:
        return {}

    def _check_starts(self, before: dict[str, bool]) -> None:
        """Nothing: it would ask who holds something."""


TestSeldom = Seldom.TestCase
TestSeldom.settings = SELDOM
TestSeldomReserving = SeldomReserving.TestCase
TestSeldomReserving.settings = SELDOM
TestSeldomEverything = SeldomEverything.TestCase
TestSeldomEverything.settings = SELDOM
