"""Timing options of policies: a number of seconds, or None; invalid values are reported as failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.errors import CONTAINED

if TYPE_CHECKING:
    from yunikorn.scheduling.plugin_failures import PluginFailures

LONGEST = 1e9
"""Upper bound in seconds (about 30 years); larger numbers are rejected."""


def read_seconds(policy: object, option: str, origin: str, failures: PluginFailures) -> float | None:
    """Return the attribute `option` of `policy` in seconds; None if missing, 0 or invalid."""
    try:
        said = getattr(policy, option, None)
        if said is None or (isinstance(said, (int, float)) and 0 <= said < LONGEST):
            return said or None
        cause: BaseException | str = f"{said!r} is neither None nor a number of seconds from 0 to below 1e9"
    except CONTAINED as error:
        cause = error
    failures.report(origin, f"reading its {option}", cause)
    return None
