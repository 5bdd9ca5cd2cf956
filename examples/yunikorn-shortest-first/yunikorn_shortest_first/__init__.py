"""An application sort policy for YuniKorn: the application with the least pending resources goes first.

queues:
  - name: batch
    properties:
      application.sort.policy: shortest-first
      application.sort.policy.resource: vcore
"""

from __future__ import annotations

import attrs

from yunikorn.api import Application, AppSortPolicy, hookimpl


@attrs.frozen
class ShortestFirst(AppSortPolicy):
    """Sorts applications by their pending amount of one resource, smallest first."""

    name = "shortest-first"
    resource: str = "memory"

    def key(self, app: Application) -> int:
        """Return the pending amount of the resource."""
        return app.pending.get(self.resource, 0)


@hookimpl
def yunikorn_app_sort_policies() -> list[type[AppSortPolicy]]:
    """Return the policy of this package."""
    return [ShortestFirst]
