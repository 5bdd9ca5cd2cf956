"""Default reservation policy: `standard`, with bounds on the number and the duration of reservations.

A partition sets the options of the policy, or selects another one:

    partitions:
      - name: default
        reservations:
          policy: standard
          total: 20
          perqueue: 4
          duration: 600

Without options every request reserves a node after the delay of the partition, and keeps it. To write a
policy, copy this class into a module with the hook at the end of this file.
"""

from __future__ import annotations

from typing import Any

import attrs

from yunikorn.api import Application, Ask, Queue, ReservationPolicy, hookimpl

_NOT_NEGATIVE: Any = attrs.validators.ge(0)
_OPTIONAL = attrs.validators.optional(_NOT_NEGATIVE)
_ABOVE_ZERO: Any = attrs.validators.optional(attrs.validators.gt(0))


@attrs.frozen
class StandardReservations(ReservationPolicy):
    """Every request reserves after a delay, within bounds."""

    name = "standard"

    delay: float | None = attrs.field(default=None, validator=_OPTIONAL)
    """Age in seconds from which a request reserves a node; None for `periods.reservation`."""
    total: int | None = attrs.field(default=None, validator=_OPTIONAL)
    """Maximum number of reservations in the partition."""
    perqueue: int | None = attrs.field(default=None, validator=_OPTIONAL)
    """Maximum number of reservations of each leaf queue."""
    perapplication: int | None = attrs.field(default=None, validator=_OPTIONAL)
    """Maximum number of reservations of each application."""
    duration: float | None = attrs.field(default=None, validator=_ABOVE_ZERO)
    """Seconds after which a reservation is given up."""
    pause: float = attrs.field(default=60.0, validator=_NOT_NEGATIVE)
    """Seconds until requests of the same class may reserve again after their reservation was given up."""

    @property
    def unrestricted(self) -> bool:
        """True if no option but `pause` is set."""
        options = (self.delay, self.total, self.perqueue, self.perapplication, self.duration)
        return all(option is None for option in options)

    def reserves_after(self, ask: Ask, delay: float | None) -> float | None:
        """Return the option, or the delay of the partition."""
        return delay if self.delay is None else self.delay

    def most_in(self, queue: Queue) -> int | None:
        """Return the bound of a leaf queue, or that of the partition for root."""
        bounds = (
            self.perqueue if queue.is_leaf else None,
            self.total if queue.parent is None else None,
        )
        return min((bound for bound in bounds if bound is not None), default=None)

    def most_of(self, app: Application) -> int | None:
        """Return the bound of each application."""
        return self.perapplication

    def lasts(self, ask: Ask) -> float | None:
        """Return the duration."""
        return self.duration


@hookimpl
def yunikorn_reservation_policies() -> list[type[ReservationPolicy]]:
    """Return the default policies."""
    return [StandardReservations]
