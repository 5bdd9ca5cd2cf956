"""What a policy says of its own timing: a number of seconds, or None; whatever else it says is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.errors import CONTAINED

if TYPE_CHECKING:
    from yunikorn.scheduling.plugin_failures import PluginFailures

LONGEST = 1e9
"""Seconds that make no difference to never: some thirty years."""


def read_seconds(policy: object, option: str, origin: str, failures: PluginFailures) -> float | None:
    """The number of seconds that `policy` has as `option`; None where it has none, or nothing of use."""
    try:
        said = getattr(policy, option, None)
        if said is None or (isinstance(said, (int, float)) and 0 <= said < LONGEST):
            return said or None
        cause: BaseException | str = f"{said!r} is no number of seconds, nor None"
    except CONTAINED as error:
        cause = error
    failures.report(origin, f"saying its {option}", cause)
    return None
