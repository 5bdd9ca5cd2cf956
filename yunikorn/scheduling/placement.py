"""Placement of applications: the chain of placement rules of a partition.

Rules are tried in order. The first rule that names a queue which accepts the application decides. A failing
rule ends the placement; a rule without a match passes on to the next. If no rule matches, forced applications
are placed in the recovery queue, and others in `root.default` if that queue exists, as in YuniKorn 1.9.
Unlike 1.9, a forced application is placed in the recovery queue even if a rule fails, and a rejection lists
the results of all rules (`docs/decisions/0015`).

Placement creates no queues. A missing queue is returned as a path if the queue can be created and its nearest
existing ancestor allows the user to submit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from yunikorn.config.names import RECOVERY, ROOT
from yunikorn.config.schema import RuleConfig
from yunikorn.scheduling.placement_rule import BoundRule, PlacedQueue, PlacementTree, RuleResult
from yunikorn.scheduling.plugin_failures import PluginFailures
from yunikorn.scheduling.plugin_objects import PluginObjects
from yunikorn.scheduling.user_groups import is_forced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from yunikorn.api import Application
    from yunikorn.framework.registry import Registry

__all__ = ["PlacedQueue", "PlacementChain", "PlacementResult", "PlacementTree", "Step"]

NO_MATCH = "application rejected: no placement rule matched"
FALLBACK_QUEUE = f"{ROOT}.default"
RECOVERY_QUEUE = f"{ROOT}.{RECOVERY}"
RECOVERY_RULE = "recovery"
"""Name of the last step of every chain; not available in configurations."""
IMPLICIT = (RuleConfig("provided"),)
"""Rules of a partition that configures none."""


@attrs.frozen(slots=True)
class Step:
    """Result of one rule."""

    number: int
    """Position in the list of rules, from 1."""
    rule: str
    outcome: str
    """One of `match`, `no match` and `error`."""
    queue: str = ""
    reason: str = ""
    title: str = ""
    """Display name: the rule's name with its value."""


@attrs.frozen(slots=True)
class PlacementResult:
    """Queue of an application, or the `reason` for its rejection."""

    queue: str = ""
    """Full path in lower case; empty if the application is rejected."""
    rule: str = ""
    """Name of the rule that decided; empty if none matched."""
    reason: str = ""
    steps: tuple[Step, ...] = ()
    """Every rule that was tried, in order."""


class PlacementChain:
    """Placement rules of a partition; their plugin objects come from `objects`.

    Raises `UnknownPlugin`, `OptionError` or `PluginError` if a rule cannot be created. Later failures of a
    rule are reported to `failures`.
    """

    def __init__(
        self,
        rules: Sequence[RuleConfig],
        registry: Registry,
        tree: PlacementTree,
        failures: PluginFailures | None = None,
        objects: PluginObjects | None = None,
    ) -> None:
        failures = PluginFailures() if failures is None else failures
        objects = PluginObjects(registry) if objects is None else objects
        self._rules = [BoundRule(rule, registry, tree, failures, objects) for rule in rules or IMPLICIT]
        self._tree = tree
        self.observer: Callable[[Application, PlacementResult], None] | None = None
        """Receives every placement with its steps; used for explanations."""

    def place(self, app: Application) -> PlacementResult:
        """Return the queue for `app`, or the reason why there is none."""
        placement = self._run(app)
        if self.observer is not None:
            self.observer(app, placement)
        return placement

    def _run(self, app: Application) -> PlacementResult:
        forced = is_forced(app.tags)
        steps: list[Step] = []
        for number, rule in enumerate(self._rules, 1):
            choice = rule.choose(app)
            if choice.queue:
                choice = self._admit(choice.queue, app, forced)
            steps.append(_step(number, rule.name, choice, rule.title))
            if choice.queue:
                return PlacementResult(choice.queue, rule.name, "", tuple(steps))
            if choice.failed and not forced:
                return PlacementResult("", rule.name, choice.reason, tuple(steps))
        return self._last_resort(app, forced, steps)

    def _admit(self, path: str, app: Application, forced: bool) -> RuleResult:
        if forced and path == RECOVERY_QUEUE:
            return RuleResult(path)
        queue = self._tree.queue(path)
        gate = queue if queue is not None else self._nearest(path)
        if gate is None or not gate.submit_allowed(app.user, app.groups):
            where = path
            if queue is None and gate is not None:
                where = f"{gate.path}, where {path} would be created"
            return RuleResult(reason=f"user '{app.user}' may not submit to {where}")
        obstacle = self._tree.obstacle(path) if queue is None else ""
        if obstacle:
            return RuleResult(reason=f"queue {path} cannot be created: {obstacle}")
        if queue is not None and not queue.is_leaf:
            return RuleResult(reason=f"queue {path} is a parent queue, applications run in leaf queues")
        if queue is not None and queue.state == "Draining":
            return RuleResult(reason=f"queue {path} is being removed")
        return RuleResult(path)

    def _nearest(self, path: str) -> PlacedQueue | None:
        while "." in path:
            path = path.rpartition(".")[0]
            queue = self._tree.queue(path)
            if queue is not None:
                return queue
        return None

    def _last_resort(self, app: Application, forced: bool, steps: list[Step]) -> PlacementResult:
        if forced:
            choice = RuleResult(RECOVERY_QUEUE)
        elif self._tree.queue(FALLBACK_QUEUE) is None:
            choice = RuleResult(
                reason=f"application.create.force is not true, and there is no queue {FALLBACK_QUEUE}"
            )
        else:
            choice = self._admit(FALLBACK_QUEUE, app, forced)
        steps.append(_step(len(steps) + 1, RECOVERY_RULE, choice, RECOVERY_RULE))
        if choice.queue:
            return PlacementResult(choice.queue, RECOVERY_RULE, "", tuple(steps))
        said = "; ".join(f"{step.title}: {step.reason}" for step in steps)
        return PlacementResult("", "", f"{NO_MATCH} ({said})", tuple(steps))


def _step(number: int, rule: str, choice: RuleResult, title: str) -> Step:
    outcome = "match" if choice.queue else "error" if choice.failed else "no match"
    return Step(number, rule, outcome, choice.queue, choice.reason, title)
