"""Application sort policy with the factors of `multifactor`, and one more: the deadline in a tag.

The tag `deadline` has Unix seconds. The factor rises from 0, a day before the deadline, to 1 at the deadline.
"""

from __future__ import annotations

import attrs

from yunikorn.api import Application, AppSortPolicy, hookimpl
from yunikorn_policies.multifactor import Multifactor

DAY = 86_400.0


@attrs.define(eq=False)
class MultifactorWithDeadline(Multifactor):
    """Adds the factor `deadline` to those of `multifactor`."""

    name = "multifactor-deadline"

    def deadline_factor(self, app: Application) -> float:
        """Return how near the deadline is; 0 without one."""
        text = app.tags.get("deadline", "")
        if not (text.isdecimal() and len(text) < 12):
            return 0.0
        return 1.0 - (int(text) - self._now() / 1e9) / DAY


@hookimpl
def yunikorn_app_sort_policies() -> list[type[AppSortPolicy]]:
    """Return the policy of this module."""
    return [MultifactorWithDeadline]
