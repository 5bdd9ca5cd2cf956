"""Application sort policies that read what applications received, and how long their tasks ran so far.

`least-attained` is the scheduling discipline of that name (LAS, also called foreground-background; see L.
Kleinrock, Queueing Systems, volume 2, 1976): the application that received least goes first, so that short
work passes long work although no run time is known. `shortest-remaining` estimates the rest of an application
from its completed tasks.
"""

from __future__ import annotations

import attrs

from yunikorn.api import Application, AppSortPolicy, hookimpl


@attrs.frozen
class LeastAttained(AppSortPolicy):
    """Sorts applications by the service that they have received, least first."""

    name = "least-attained"
    resource: str = "vcore"
    refresh: float = attrs.field(default=10.0, validator=attrs.validators.gt(0))
    """Seconds after which the order is computed again, because service grows with time alone."""
    half_life: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.gt(0))
    )
    """Seconds after which past service counts half; by default service counts over the whole life."""
    most: float = attrs.field(default=36_000.0, validator=attrs.validators.gt(0))
    """Service from which applications are alike, where the policy is a factor of `multifactor`."""

    @property
    def refresh_every(self) -> float:
        return self.refresh

    @property
    def key_range(self) -> tuple[float, float]:
        return 0.0, self.most

    def key(self, app: Application) -> float:
        """Return the amount of the resource, times seconds, that the application has received."""
        past = app.past
        received = past.served if self.half_life is None else past.recent
        return received.get(self.resource, 0.0)


@attrs.frozen
class ShortestRemaining(AppSortPolicy):
    """Sorts applications by their estimated remaining work, least first."""

    name = "shortest-remaining"
    resource: str = "vcore"

    def key(self, app: Application) -> float:
        """Return the pending amount times the mean run time so far; 0 before the first task has completed."""
        past = app.past
        mean = past.completed_time / past.completed if past.completed else 0.0
        return app.pending.get(self.resource, 0) * mean


@hookimpl
def yunikorn_app_sort_policies() -> list[type[AppSortPolicy]]:
    """Return the policies of this module."""
    return [LeastAttained, ShortestRemaining]
