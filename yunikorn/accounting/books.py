"""Books of plugins: every placement and release is passed on to the plugins that keep books of running tasks.

The tasks in the books are the allocations on nodes, with one difference: from the decision to replace a
placeholder, the real task counts instead of the placeholder, so that nothing else takes its place before the
resource manager has ended the placeholder. See `docs/decisions/0066`. Plugins with `counts_foreign` also get
the foreign tasks of the nodes (`docs/decisions/archive/0117`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from yunikorn.api import Where
from yunikorn.containment import contained, entries_of, kept_key
from yunikorn.model.allocation import TerminationType

if TYPE_CHECKING:
    from yunikorn.api import AppSortPolicy, NodeSortPolicy, PermitPolicy, Predicate, Task
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.foreign_allocation import ForeignAllocation
    from yunikorn.model.node import Node

ADDING, REMOVING = "adding to its books", "removing from its books"
Others = tuple[Hashable, ...] | Where
"""Domains in which a refusal may have ended, besides that of the node of a task that is released."""


class Keeper:
    """One plugin that keeps books."""

    def __init__(
        self,
        plugin: Predicate | NodeSortPolicy | PermitPolicy | AppSortPolicy,
        origin: str,
        *,
        counts_foreign: bool = False,
        hears_placements: bool = False,
    ) -> None:
        self.plugin = plugin
        self.origin = origin
        self.counts_foreign = counts_foreign
        """True if the books contain foreign tasks, too."""
        self.hears_placements = hears_placements
        """True if `on_change` is called for every placement, not only for those that change other domains."""
        self.failed = ""
        """Message of the failure that made the books unknown; empty while they are exact."""
        self.on_change: Callable[[Task | None, Node, Others, bool], None] | None = None
        """Handler of a change, with the task (None for a change of nodes), the node, the domains that the
        plugin returned, and True for a release."""
        self.on_failure: Callable[[str], None] = _ignore
        """Handler of a failure, with its message."""

    def failed_comparison(self, error: BaseException) -> None:
        """Ignore an exception of a comparison of domains: they count as different."""


def _ignore(message: str) -> None:
    """Do nothing."""


class Books:
    """The plugins of a partition that keep books."""

    def __init__(
        self, keepers: Sequence[Keeper], failures: PluginFailures, distrust: Callable[[object], None]
    ) -> None:
        """Create books that have not been filled; `distrust` gets a plugin whose books became unknown."""
        self._keepers = keepers
        self._foreign = [keeper for keeper in keepers if keeper.counts_foreign]
        self._failures = failures
        self._distrust = distrust

    @property
    def keepers(self) -> Sequence[Keeper]:
        """The plugins, in the order of the configuration."""
        return self._keepers

    def fill(self, known: Sequence[object], nodes: Iterable[Node]) -> None:
        """Pass all nodes and running tasks, in order of placement, to the plugins that are not in `known`."""
        new = [keeper for keeper in self._keepers if not any(keeper.plugin is one for one in known)]
        if not new:
            return
        hosts = list(nodes)
        tasks: list[tuple[Allocation | ForeignAllocation, Node]] = [
            (task, node) for node in hosts for task in counted_on(node)
        ]
        if any(keeper.counts_foreign for keeper in new):
            tasks += ((task, node) for node in hosts for task in foreign_on(node))
        tasks.sort(key=lambda one: one[0].placed)
        for keeper in new:
            for node in hosts:
                self._call(keeper, "node_added", ADDING, node)
            for task, node in tasks:
                if keeper.counts_foreign or not task.foreign:
                    self._call(keeper, "placed", ADDING, task, node)

    # -- decisions ----------------------------------------------------------------------------------

    def placed(self, task: Task, node: Node) -> None:
        """Add a task; undone by `released`."""
        self._placed(self._keepers, task, node)

    def released(self, task: Task, node: Node) -> None:
        """Remove a task."""
        self._released(self._keepers, task, node)

    def foreign_placed(self, task: ForeignAllocation) -> None:
        """Add a foreign task to the books that contain such tasks."""
        if self._foreign and not task.awaited:
            self._placed(self._foreign, task, task.node)

    def foreign_released(self, task: ForeignAllocation) -> None:
        """Remove a foreign task."""
        if self._foreign and not task.awaited:
            self._released(self._foreign, task, task.node)

    def _placed(self, keepers: Sequence[Keeper], task: Task, node: Node) -> None:
        for keeper in keepers:
            others = self._call(keeper, "placed", ADDING, task, node)
            if (others or keeper.hears_placements) and keeper.on_change is not None:
                keeper.on_change(task, node, others, False)

    def _released(self, keepers: Sequence[Keeper], task: Task, node: Node) -> None:
        for keeper in keepers:
            others = self._call(keeper, "released", REMOVING, task, node)
            if keeper.on_change is not None:
                keeper.on_change(task, node, others, True)

    @contextmanager
    def without(self, tasks: Sequence[tuple[Task, Node]]) -> Iterator[None]:
        """Remove tasks for the duration of the context; no handler is called."""
        for task, node in tasks:
            for keeper in self._keepers:
                self._call(keeper, "released", REMOVING, task, node)
        try:
            yield
        finally:
            for task, node in reversed(tasks):
                for keeper in self._keepers:
                    self._call(keeper, "placed", ADDING, task, node)

    # -- nodes --------------------------------------------------------------------------------------

    def node_added(self, node: Node) -> None:
        """Add a node and the tasks on it."""
        for keeper in self._keepers:
            others = self._call(keeper, "node_added", ADDING, node)
            if others and keeper.on_change is not None:
                keeper.on_change(None, node, others, False)
        for task in counted_on(node):
            self.placed(task, node)
        if self._foreign:
            for foreign in foreign_on(node):
                self.foreign_placed(foreign)

    def node_removed(self, node: Node) -> None:
        """Remove a node and the tasks on it."""
        if self._foreign:
            for foreign in reversed(foreign_on(node)):
                self.foreign_released(foreign)
        for task in reversed(counted_on(node)):
            self.released(task, node)
        for keeper in self._keepers:
            others = self._call(keeper, "node_removed", REMOVING, node)
            if others and keeper.on_change is not None:
                keeper.on_change(None, node, others, False)

    # -- calls --------------------------------------------------------------------------------------

    def _call(self, keeper: Keeper, method: str, operation: str, *what: Any) -> Others:
        """Call a method of a plugin unless its books are unknown; return its result as a tuple."""
        if keeper.failed:
            return ()
        try:
            changed = getattr(keeper.plugin, method)(*what)
            if changed is None:
                return ()
            if type(changed) is Where:
                return changed
            return tuple(kept_key(key, keeper.failed_comparison) for key in entries_of(changed))
        except contained() as error:
            node: Node = what[-1]
            where = node.label
            if len(what) > 1:
                task: Task = what[0]
                of = (
                    f"foreign task {task.key}"
                    if task.foreign
                    else f"task {task.key} of application {task.app.id}"
                )
                where = f"{of} on {where}"
            keeper.failed = str(self._failures.report(keeper.origin, operation, error, where))
            keeper.on_failure(keeper.failed)
            self._distrust(keeper.plugin)
        return ()


def counted_on(node: Node) -> list[Allocation]:
    """Return the tasks on `node` that books contain: real tasks instead of the placeholders they replace."""
    found: list[Allocation] = []
    for one in node.allocations.values():
        if one.releasing != TerminationType.PLACEHOLDER_REPLACED:
            found.append(one)
        elif (real := one.replacement) is not None and real.node is node:
            found.append(real)
    return found


def foreign_on(node: Node) -> list[ForeignAllocation]:
    """Return the foreign tasks on `node` that books may contain, in the order of their reports."""
    return [one for one in node.foreign.values() if not one.awaited]
