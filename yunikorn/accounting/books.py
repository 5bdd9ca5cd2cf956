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
from yunikorn.containment import contained, entries_of, items_of, kept_key, safe_repr, text_or_none
from yunikorn.model.allocation import TerminationType

if TYPE_CHECKING:
    from yunikorn.api import Task
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask, AskSpec
    from yunikorn.model.foreign_allocation import ForeignAllocation
    from yunikorn.model.node import Node

ADDING, REMOVING = "adding to its books", "removing from its books"
LONGEST_TAG = 1_000_000
"""Number of characters of a tag that a plugin commits."""
Others = tuple[Hashable, ...] | Where
"""Domains in which a refusal may have ended, besides that of the node of a task that is released."""


class Keeper:
    """One plugin that keeps books."""

    def __init__(
        self,
        plugin: Any,
        origin: str,
        *,
        counts_foreign: bool = False,
        hears_placements: bool = False,
        commits: bool = False,
    ) -> None:
        self.plugin = plugin
        self.origin = origin
        self.counts_foreign = counts_foreign
        """True if the books contain foreign tasks, too."""
        self.hears_placements = hears_placements
        """True if `on_change` is called for every placement, not only for those that change other domains."""
        self.commits = commits
        """True if the plugin has tags for allocations."""
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
        self._committing = [keeper for keeper in keepers if keeper.commits]
        self.planned: list[tuple[Ask, dict[str, str]]] = []
        """Tags of the allocations that are made next, with their requests."""
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
            self._each("released", REMOVING, task, node)
        try:
            yield
        finally:
            for task, node in reversed(tasks):
                self._each("placed", ADDING, task, node)

    def _each(self, method: str, operation: str, task: Task, node: Node) -> None:
        for keeper in self._keepers:
            self._call(keeper, method, operation, task, node)

    # -- tags of allocations ------------------------------------------------------------------------

    @property
    def commits(self) -> bool:
        """True if a plugin has tags for allocations."""
        return bool(self._committing)

    def plan(self, plan: Sequence[tuple[Ask, Node]], leaving: Sequence[tuple[Task, Node]] = ()) -> bool:
        """Collect the tags of the next allocations, without tasks that leave; return False if one fails.

        The books of a plugin that fails are unknown then, so that it refuses everything.
        """
        if not self._committing:
            return True
        self.planned = []
        done = 0
        with self.without(leaving):
            try:
                for ask, node in plan:
                    tags = [self._tags(keeper, ask, node) for keeper in self._committing]
                    if any(keeper.failed for keeper in self._committing):
                        self.planned = []
                        return False
                    self.planned.append((ask, {name: one[name] for one in tags for name in one}))
                    if len(plan) > 1:
                        self._each("placed", ADDING, ask, node)
                        done += 1
                return True
            finally:
                for ask, node in reversed(plan[:done]):
                    self._each("released", REMOVING, ask, node)

    def spec_of(self, ask: Ask) -> AskSpec:
        """Return the options of the next allocation of a request: those of the request, and planned tags."""
        if not self.planned or self.planned[0][0] is not ask:
            return ask.spec
        tags = self.planned.pop(0)[1]
        return ask.spec.with_tags({**ask.spec.tags, **tags}) if tags else ask.spec

    def _tags(self, keeper: Keeper, ask: Ask, node: Node) -> dict[str, str]:
        if keeper.failed:
            return {}
        try:
            found = keeper.plugin.commit(ask, node)
            return {} if found is None else dict(map(_tag, items_of(found)))
        except contained() as error:
            self._fail(keeper, "committing", error, f"{ask.label} on {node.label}")
        return {}

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
            self._fail(keeper, operation, error, where)
        return ()

    def _fail(self, keeper: Keeper, operation: str, error: BaseException, where: str) -> None:
        keeper.failed = str(self._failures.report(keeper.origin, operation, error, where))
        keeper.on_failure(keeper.failed)
        self._distrust(keeper.plugin)


def _tag(item: tuple[object, object]) -> tuple[str, str]:
    """Return a tag that a plugin commits. Raises `TypeError`."""
    name, value = (text_or_none(one, LONGEST_TAG + 1) for one in item)
    if name is None or value is None or len(name) + len(value) > LONGEST_TAG:
        raise TypeError(f"commit returned the tag {safe_repr(item)} instead of two texts")
    return name, value


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
