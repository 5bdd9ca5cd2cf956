"""Names plugins that are slow: how long one call takes, and how much of the core's time a plugin has.

Nothing is measured while scheduling. Whoever is at work in the core's thread is looked up now and then from
outside, as a sampling profiler does, so that no call costs more than before; what is found is reported and
decides nothing (decision 45).
"""

from __future__ import annotations

import contextlib
from collections import Counter

import attrs

from yunikorn.interface.core_activity import CoreActivity
from yunikorn.interface.scheduler import Scheduler
from yunikorn.interface.threaded import CoreStopped, ThreadedScheduler
from yunikorn.service.looking import look_repeatedly
from yunikorn.service.settings import Budget


@attrs.define
class _Call:
    """A call of a plugin that was under way at the last look."""

    call: object
    since: float
    is_reported: bool = False


class Budgets:
    """Looks at a core from outside; `look` is to be called at short intervals.

    A call is known for as long as it was seen, so it took at least the time that is reported. A share is that
    of looks which found the plugin at work; looks at an idle core count too, since a plugin that keeps
    nobody waiting is not slow.
    """

    def __init__(self, core: ThreadedScheduler, budget: Budget) -> None:
        self._core = core
        self._budget = budget
        self._call: _Call | None = None
        self._looks = 0
        self._found: Counter[tuple[str, str]] = Counter()
        """How often each method of each plugin was found at work."""

    def look(self, now: float) -> None:
        """Look at the moment `now` (seconds, of any clock), and report what is beyond the budget."""
        doing = self._core.core_activity() if self._core.at_work else None
        if doing is None or not doing.plugin:
            self._call = None
        else:
            self._found[doing.plugin, doing.operation] += 1
            self._follow(doing, now)
        self._looks += 1
        if self._looks >= self._budget.looks:
            self._sum_up()

    def _follow(self, doing: CoreActivity, now: float) -> None:
        if self._call is None or self._call.call is not doing.call:
            self._call = _Call(doing.call, now)
        limit, on_call = self._budget.call, now - self._call.since
        if limit is None or on_call < limit or self._call.is_reported:
            return
        self._call.is_reported = True
        text = f"one call held the core for more than {on_call:.1f} s, of {limit:g} s that it may"
        self._report(doing.plugin, f"taking long in {doing.operation}", text)

    def _sum_up(self) -> None:
        most = self._budget.share * self._looks
        for plugin in dict.fromkeys(plugin for plugin, _ in self._found):
            by_operation = {
                operation: times for (whose, operation), times in self._found.items() if whose == plugin
            }
            if sum(by_operation.values()) > most:
                text = (
                    f"it was at work at {sum(by_operation.values())} of {self._looks} looks,"
                    f" more than the {self._budget.share:.0%} that it may; mostly in"
                    f" {max(by_operation, key=by_operation.__getitem__)}"
                )
                self._report(plugin, "holding the core", text)
        self._looks = 0
        self._found.clear()

    def _report(self, plugin: str, operation: str, text: str) -> None:
        def note(scheduler: Scheduler) -> None:
            scheduler.failures.report(plugin, operation, text)

        # What plugins did wrong belongs to the core's thread; it hears of this when the call is over.
        with contextlib.suppress(CoreStopped):
            self._core.notify(note)


async def keep_budgets(budgets: Budgets, interval: float) -> None:
    """Look again and again."""

    async def look(now: float) -> None:
        budgets.look(now)

    await look_repeatedly(look, interval, "watching for slow plugins")
