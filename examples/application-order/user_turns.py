"""Application sort policy with books: the user with the fewest running tasks goes first."""

from __future__ import annotations

from collections import Counter

from yunikorn.api import Application, AppSortPolicy, Node, Task, hookimpl


class UserTurns(AppSortPolicy):
    """Sorts applications by the number of running tasks of their user, fewest first."""

    name = "user-turns"

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()
        """Number of running tasks by user."""

    def key(self, app: Application) -> int:
        """Return the number of running tasks of the user."""
        return self._running[app.user]

    def subject(self, app: Application) -> str:
        """Return the user, on whose tasks alone the key depends."""
        return app.user

    def placed(self, task: Task, node: Node) -> None:
        """Count a task."""
        self._running[task.app.user] += 1

    def released(self, task: Task, node: Node) -> None:
        """Count a task no more; entries of 0 are removed, so that the books do not grow."""
        self._running[task.app.user] -= 1
        if not self._running[task.app.user]:
            del self._running[task.app.user]


@hookimpl
def yunikorn_app_sort_policies() -> list[type[AppSortPolicy]]:
    """Return the policy of this module."""
    return [UserTurns]
