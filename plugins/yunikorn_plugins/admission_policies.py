"""Default admission policy: `admission-window`, for applications that start only at certain hours.

    partitions:
      - name: default
        admission:
          - name: admission-window
            queues: [root.batch]      # these queues and all below; every queue without this option
            start: "20:00"
            end: "06:00"              # of the next day, because it is before the start
            days: [mon, tue, wed, thu, fri]
            utc_offset: 1.0           # hours

An admission policy returns None to admit an application, the reason for a rejection, or `Wait`.
"""

from __future__ import annotations

from typing import Any

import attrs

from yunikorn.api import AdmissionPolicy, Application, Context, Wait, hookimpl
from yunikorn_plugins.daily_windows import DAY, DAYS, HOUR, SECOND, seconds_of

FIRST_DAY = 3
"""Day of the week of 1970-01-01, a Thursday."""


def _check_time(policy: Any, option: Any, time: str) -> None:
    try:
        seconds_of(time)
    except ValueError as error:
        raise ValueError(f"'{option.name}': {error}") from None


@attrs.define
class AdmissionWindow(AdmissionPolicy):
    """Admits applications only within a daily window; others wait for its start."""

    name = "admission-window"
    start: str = attrs.field(validator=_check_time)
    """Time of day at which the window opens, such as `22:00`."""
    end: str = attrs.field(validator=_check_time)
    """Time of day at which the window closes: of the next day if it is not after `start`."""
    days: tuple[str, ...] = attrs.field(
        default=DAYS,
        validator=[attrs.validators.min_len(1), attrs.validators.deep_iterable(attrs.validators.in_(DAYS))],
    )
    """Days on which the window opens."""
    queues: tuple[str, ...] = ()
    """Paths of the queues to which the window applies, with all queues below them; all queues if empty."""
    utc_offset: float = attrs.field(
        default=0.0, validator=[attrs.validators.ge(-24.0), attrs.validators.le(24.0)]
    )
    """Hours that the local time is ahead of UTC."""
    _context: Context | None = attrs.field(init=False, default=None, eq=False, repr=False)

    def opened(self, context: Context) -> None:
        """Keep the context, for its clock."""
        self._context = context

    def admit(self, app: Application) -> Wait | None:
        """Return None within the window and in other queues, else a wait until the window opens."""
        if self.queues and app.queue is not None:
            path = app.queue.path
            if not any(path == queue or path.startswith(f"{queue}.") for queue in self.queues):
                return None
        assert self._context is not None
        left = self.seconds_left(self._context.now())
        return Wait(left, f"the admission window opens at {self.start}") if left else None

    def seconds_left(self, now: int) -> float:
        """Return the seconds until the window opens; 0 if it is open at `now` (ns)."""
        local = now / SECOND + self.utc_offset * HOUR
        day, second = divmod(local, DAY)
        opens, closes = seconds_of(self.start), seconds_of(self.end)
        if closes <= opens:
            closes += DAY
        # The window of yesterday may still be open.
        if any(self._is_open_on(day - ago) and opens <= second + ago * DAY < closes for ago in (0, 1)):
            return 0.0
        starts = (days * DAY + opens for days in range(9) if self._is_open_on(day + days))
        return next(start for start in starts if start > second) - second

    def _is_open_on(self, day: float) -> bool:
        return DAYS[(int(day) + FIRST_DAY) % 7] in self.days


@hookimpl
def yunikorn_admission_policies() -> list[type[AdmissionPolicy]]:
    """Return the only policy."""
    return [AdmissionWindow]
