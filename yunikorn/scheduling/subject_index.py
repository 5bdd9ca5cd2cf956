"""Applications by what their keys depend on, for application sort policies that keep books.

A task that is placed or released changes the keys of all applications with the subject of its application.
Their queues compute these keys again before the next decision; all others stay (docs/decisions/archive/0199).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from yunikorn.accounting.books import Keeper
from yunikorn.api import Where
from yunikorn.containment import contained, kept_key, read_attribute

if TYPE_CHECKING:
    from yunikorn.accounting.books import Others
    from yunikorn.api import Application as ApplicationView
    from yunikorn.api import AppSortPolicy, Node, Task
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.application import Application


class SubjectIndex:
    """Applications of all queues that one policy orders, by the subjects that the policy declares."""

    def __init__(self, policy: AppSortPolicy, origin: str, failures: PluginFailures) -> None:
        self.keeper = Keeper(policy, origin, hears_placements=True)
        self.keeper.on_change = self._changed
        self._subject: Callable[[Any], Hashable] = read_attribute(policy, "subject")
        self._origin = origin
        self._failures = failures
        self._applications: dict[Hashable, dict[Application, None]] = {}
        self._subjects: dict[Application, Hashable] = {}

    def watch(self, app: Application) -> None:
        """Add an application of a queue that the policy orders, unless it is known."""
        if app not in self._subjects:
            subject = self._subjects[app] = self._subject_of(app)
            self._applications.setdefault(subject, {})[app] = None

    def forget(self, app: Application) -> None:
        """Remove an application that the policy does not order any more."""
        if app in self._subjects:
            subject = self._subjects.pop(app)
            alike = self._applications[subject]
            del alike[app]
            if not alike:
                del self._applications[subject]

    def _subject_of(self, app: ApplicationView) -> Hashable:
        try:
            return kept_key(self._subject(app), self._failed_comparison)
        except contained() as error:
            self._failures.report(self._origin, "reading the subject of", error, f"application {app.id}")
            return None

    def _failed_comparison(self, error: BaseException) -> None:
        self._failures.report(self._origin, "comparing subjects", error)

    def _changed(self, task: Task | None, node: Node, others: Others, released: bool) -> None:
        """Mark the applications whose keys a change of the books may have altered."""
        if others is Where.EVERYWHERE:
            subjects = list(self._applications)
        else:
            subjects = [] if isinstance(others, Where) else list(others)
            if task is not None:
                subjects.append(self._subject_of(task.app))
        for subject in subjects:
            for app in self._applications.get(subject, ()):
                app.mark_dirty()
