"""An application sort policy for YuniKorn that raises waiting applications, to prevent starvation.

queues:
  - name: batch
    properties:
      application.sort.policy: ageing
      application.sort.policy.step: "300"
      application.sort.priority: disabled

With priorities alone, an application of priority 0 waits as long as applications of priority 1 arrive. With
this policy, every `step` seconds of waiting count as one level of priority, so that an application overtakes
newer ones of higher priority after a while. `application.sort.priority: disabled` is required, because the
core would otherwise order by priority before the policy.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from yunikorn.api import Application, AppSortPolicy, Context, hookimpl

SECOND = 1_000_000_000
LEAST = -(2**31)
"""Priority of an application without pending requests."""


@attrs.define(eq=False)
class Ageing(AppSortPolicy):
    """The application of the highest priority goes first, and waiting raises it."""

    name = "ageing"
    step: float = attrs.field(default=300.0, validator=attrs.validators.gt(0))
    """Seconds of waiting that count as one level of priority."""
    patience: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.gt(0))
    )
    """Seconds of waiting after which an application precedes all that have waited less, at any priority."""
    _now: Callable[[], int] | None = attrs.field(init=False, default=None, repr=False)

    def opened(self, context: Context) -> None:
        """Keep the clock of the core."""
        self._now = context.now

    @property
    def refresh_every(self) -> float | None:
        """Set only with `patience`, because ageing raises all applications alike and keeps their order."""
        return None if self.patience is None else max(1.0, self.patience / 20)

    def key(self, app: Application) -> tuple[tuple[int, float]]:
        """Return whether patience has ended, and the equivalent time of arrival at priority 0.

        The pair is nested in a tuple with one element: where priorities are disabled, the core inserts them
        after the first element of a key.
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
    """Return the policy of this package."""
    return [Ageing]
