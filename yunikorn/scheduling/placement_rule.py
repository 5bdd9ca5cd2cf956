"""A configured placement rule: its plugin, and the checks that the core adds to every rule.

The core applies the filter, validates the queue name, evaluates the parent rule, and checks `create`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import attrs

from yunikorn.config.names import ROOT, is_queue_name
from yunikorn.errors import CONTAINED
from yunikorn.framework.registry import PLACEMENT, Registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yunikorn.api import Application, PlacementRule
    from yunikorn.config.schema import RuleConfig
    from yunikorn.framework.registry import Offer
    from yunikorn.scheduling.plugin_failures import PluginFailures
    from yunikorn.scheduling.plugin_objects import PluginObjects

COMPLETE = f"{ROOT}."
"""Prefix of a fully qualified queue name (case-insensitive)."""


class PlacedQueue(Protocol):
    """Queue interface required by placement."""

    @property
    def path(self) -> str:
        """Full name of the queue."""
        ...

    @property
    def is_leaf(self) -> bool:
        """True if the queue can contain applications."""
        ...

    @property
    def state(self) -> str:
        """One of `Active`, `Draining` and `Stopped`."""
        ...

    def submit_allowed(self, user: str, groups: Sequence[str]) -> bool:
        """Return True if the queue or an ancestor allows this user to submit or to administer."""
        ...


class PlacementTree(Protocol):
    """Interface of a partition's queues required by placement."""

    def queue(self, path: str) -> PlacedQueue | None:
        """Return the queue with this path (case-insensitive), or None."""
        ...

    def obstacle(self, path: str) -> str:
        """Return why the missing queue `path` cannot be created by any user; empty if it can."""
        ...


@attrs.frozen(slots=True)
class RuleResult:
    """Result of a rule: a queue path in lower case, or the `reason` why there is none."""

    queue: str = ""
    reason: str = ""
    failed: bool = False
    """True after an error: no later rule may place the application."""


class BoundRule:
    """A configured rule with its plugin object and its parent rules."""

    def __init__(
        self,
        config: RuleConfig,
        registry: Registry,
        tree: PlacementTree,
        failures: PluginFailures,
        objects: PluginObjects,
    ) -> None:
        offer = registry.find(PLACEMENT, config.name)
        self.name = config.name
        self.title = f"{config.name} '{config.value}'" if config.value else config.name
        self.plugin: PlacementRule
        self.plugin, self._origin = objects.make(PLACEMENT, config.name, plugin_options(config, offer))
        self.parent = BoundRule(config.parent, registry, tree, failures, objects) if config.parent else None
        self._place = self.plugin.place
        self._create = config.create
        self._filter = config.filter
        self._tree = tree
        self._failures = failures

    def choose(self, app: Application) -> RuleResult:
        """Return the queue that this rule selects for `app`; access rights are not checked."""
        if self._filter is not None and not self._filter.allows(app.user, app.groups):
            return RuleResult(reason=f"its filter excludes user '{app.user}'")
        try:
            name = self._place(app)
            if name is not None and not isinstance(name, str):
                raise TypeError(f"it returned {name!r} instead of a queue name or None")
        except CONTAINED as error:
            blame = self._failures.report(self._origin, "placing", error, f"application '{app.id}'")
            return RuleResult(reason=str(blame), failed=True)
        if not name:
            return RuleResult(reason="the rule returns no queue for this application")
        return self._complete(name, app)

    def _complete(self, name: str, app: Application) -> RuleResult:
        if name.lower() == COMPLETE:
            return RuleResult(ROOT)
        for level in name.split("."):
            if not is_queue_name(level):
                return RuleResult(reason=f"invalid queue name '{name}': {_fault_of(level)}", failed=True)
        if not name.lower().startswith(COMPLETE):
            above = self._above(app)
            if not above.queue:
                return above
            name = f"{above.queue}.{name}"
        path = name.lower()
        if not self._create and self._tree.queue(path) is None:
            return RuleResult(reason=f"queue {path} does not exist, and the rule does not create it")
        return RuleResult(path)

    def _above(self, app: Application) -> RuleResult:
        if self.parent is None:
            return RuleResult(ROOT)
        choice = self.parent.choose(app)
        if not choice.queue:
            return attrs.evolve(choice, reason=f"parent rule {self.parent.title}: {choice.reason}")
        queue = self._tree.queue(choice.queue)
        if queue is not None and queue.is_leaf:
            return RuleResult(reason=f"parent rule returned a leaf queue: {queue.path}")
        return choice


def plugin_options(config: RuleConfig, offer: Offer) -> dict[str, Any]:
    """Return the options of a configured rule that its plugin receives.

    Every rule may have a `value`; only plugins with such an option receive it (`docs/decisions/0003`).
    """
    options = dict(config.options)
    if config.value and any(option.name == "value" for option in offer.options):
        options["value"] = config.value
    return options


def _fault_of(level: str) -> str:
    if not level:
        return "one of its levels is empty"
    if len(level) > 64:
        return f"'{level[:20]}...' has {len(level)} characters, 64 are allowed"
    return f"'{level}' contains characters other than letters, digits and _ : # / @ -"
