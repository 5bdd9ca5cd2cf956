"""Times and durations for people."""

from __future__ import annotations

from yunikorn.clock import SECOND
from yunikorn_rest.time_texts import rfc3339
from yunikorn_rest.web.time_windows import in_utc

_STEPS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def duration(nanoseconds: int) -> str:
    """Return a duration with at most two units: `0.4 s`, `45 s`, `3 min 20 s`, `2 d 4 h`."""
    if nanoseconds < 0:
        return f"-{duration(-nanoseconds)}"
    seconds = nanoseconds // SECOND
    if nanoseconds < 10 * SECOND and nanoseconds % SECOND:
        return f"{nanoseconds / SECOND:.1f}\u00a0s" if nanoseconds >= SECOND // 20 else "0\u00a0s"
    for index, (size, unit) in enumerate(_STEPS):
        if seconds >= size:
            whole, rest = divmod(seconds, size)
            text = f"{whole}\u00a0{unit}"
            if index + 1 < len(_STEPS) and whole < 10:
                smaller, smaller_unit = _STEPS[index + 1]
                if rest >= smaller:
                    text += f"\u00a0{rest // smaller}\u00a0{smaller_unit}"
            return text
    return "0\u00a0s"


def ago(then: int, now: int) -> str:
    """Return the time since a moment, in one unit: `now`, `8 s ago`, `3 min ago`; `in 5 s` if it is ahead."""
    seconds = (now - then) // SECOND
    if -1 <= seconds < 1:
        return "now"
    for size, unit in _STEPS:
        if abs(seconds) >= size:
            text = f"{abs(seconds) // size}\u00a0{unit}"
            return f"{text} ago" if seconds > 0 else f"in {text}"
    raise AssertionError("a second is the smallest unit")


def exact(nanoseconds: int) -> str:
    """Return a time in RFC 3339; the number itself if no calendar has it."""
    try:
        return rfc3339(nanoseconds)
    except (ValueError, OverflowError, OSError):
        return str(nanoseconds)


def clock_time(nanoseconds: int) -> str:
    """Return a time of day in UTC, as `21:56:53`; the number itself if no calendar has it."""
    text = exact(nanoseconds)
    return text[11:19] if "T" in text else text


def minute(milliseconds: int) -> str:
    """Return a time (ms) in UTC to the minute, as `27 Nov 2026 21:56`."""
    return in_utc(milliseconds, "%d %b %Y %H:%M")
