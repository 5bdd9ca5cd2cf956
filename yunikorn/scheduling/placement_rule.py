"""One placement rule at work: its plugin, and what the core adds to every rule.

That is the filter in front, the check of the name, the parent rule, and `create`. Source: the placement
seed, facts §4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import attrs

from yunikorn.config.names import ROOT, is_queue_name
from yunikorn.errors import CONTAINED
from yunikorn.registry import PLACEMENT, Registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yunikorn.api import Application, PlacementRule
    from yunikorn.config.schema import RuleConfig
    from yunikorn.registry import Offer
    from yunikorn.scheduling.plugin_failures import PluginFailures
    from yunikorn.scheduling.plugin_objects import PluginObjects

COMPLETE = f"{ROOT}."
"""How a complete queue name starts, in any case."""


class PlacedQueue(Protocol):
    """A queue, as far as placement looks at it."""

    @property
    def path(self) -> str:
        """Its full name."""
        ...

    @property
    def is_leaf(self) -> bool:
        """Whether applications run in it."""
        ...

    @property
    def state(self) -> str:
        """`Active`, `Draining` or `Stopped`."""
        ...

    def submit_allowed(self, user: str, groups: Sequence[str]) -> bool:
        """Whether it or a queue above lets this user in, to submit or to administer."""
        ...


class PlacementTree(Protocol):
    """The queues of a partition, as far as placement looks at them."""

    def queue(self, path: str) -> PlacedQueue | None:
        """The queue of that path, in any case; None when there is none."""
        ...

    def obstacle(self, path: str) -> str:
        """Why the missing queue `path` cannot be made, whoever submits; empty when it can."""
        ...


@attrs.frozen(slots=True)
class RuleResult:
    """What a rule says: a queue's path in lower case, or in `reason` why none."""

    queue: str = ""
    reason: str = ""
    failed: bool = False
    """An error: no later rule may place the application."""


class BoundRule:
    """A rule of the configuration, made from its plugin, with the rules above it."""

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
        """The queue for `app` as far as this rule can tell; access is not looked at."""
        if self._filter is not None and not self._filter.allows(app.user, app.groups):
            return RuleResult(reason=f"its filter does not let user '{app.user}' through")
        try:
            name = self._place(app)
            if name is not None and not isinstance(name, str):
                raise TypeError(f"it returned {name!r} instead of a queue name or None")
        except CONTAINED as error:
            blame = self._failures.report(self._origin, "placing", error, f"application '{app.id}'")
            return RuleResult(reason=str(blame), failed=True)
        if not name:
            return RuleResult(reason="it names no queue for this application")
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
    """What of the rule's configuration is the plugin's.

    Every rule may carry a `value` (decision 3); it reaches only those that have such an option.
    """
    options = dict(config.options)
    if config.value and any(option.name == "value" for option in offer.options):
        options["value"] = config.value
    return options


def _fault_of(level: str) -> str:
    if not level:
        return "a level of it is empty"
    if len(level) > 64:
        return f"'{level[:20]}...' has {len(level)} characters, 64 are allowed"
    return f"'{level}' has other characters than letters, digits and _ : # / @ -"
