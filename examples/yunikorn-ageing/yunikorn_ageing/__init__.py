"""An application sort policy for YuniKorn: whoever waits rises, so that nobody starves.

queues:
  - name: batch
    properties:
      application.sort.policy: ageing
      application.sort.policy.step: "300"
      application.sort.priority: disabled

With priorities alone an application of priority 0 waits for as long as somebody comes with 1. Here every
`step` seconds of waiting are worth one level of priority: who has waited long enough is in front of any
newcomer. `application.sort.priority: disabled` is needed, for otherwise priorities come before every policy.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from yunikorn.api import Application, AppSortPolicy, Context, hookimpl

SECOND = 1_000_000_000
LEAST = -(2**31)
"""The priority of an application in which nothing waits."""


@attrs.define(eq=False)
class Ageing(AppSortPolicy):
    """The application of the highest priority goes first, and waiting raises it."""

    name = "ageing"
    step: float = attrs.field(default=300.0, validator=attrs.validators.gt(0))
    """So many seconds of waiting are worth one level of priority."""
    patience: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.gt(0))
    )
    """After so many seconds it goes before all that have waited less, whatever their priority."""
    _now: Callable[[], int] | None = attrs.field(init=False, default=None, repr=False)

    def opened(self, context: Context) -> None:
        """Learn what time it is."""
        self._now = context.now

    @property
    def refresh_every(self) -> float | None:
        """Only patience ends at a moment: that everybody rises alike changes no order."""
        return None if self.patience is None else max(1.0, self.patience / 20)

    def key(self, app: Application) -> tuple[tuple[int, float]]:
        """Whether its patience has ended, and when it would have come to be served now at priority 0.

        One part that is a pair: where priorities are disabled they count behind the first part of a key, and
        here they are in it.
        """
        level = 0 if app.priority == LEAST else app.priority
        start = app.waiting_since / SECOND
        if (
            self.patience is not None
            and self._now is not None
            and self._now() / SECOND - start >= self.patience
        ):
            return ((0, start),)
        return ((1, start - level * self.step),)


@hookimpl
def yunikorn_app_sort_policies() -> list[type[AppSortPolicy]]:
    """What this package offers."""
    return [Ageing]
