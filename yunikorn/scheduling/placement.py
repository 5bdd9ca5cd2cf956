"""Which queue an application goes to: the chain of placement rules of a partition.

The rules are tried in order; the first whose queue the application may use decides. A rule that fails
ends the placement, one that does not match hands on to the next, and when none is left there are two
last resorts: the recovery queue for applications that are forced on the scheduler, and `root.default`
if that queue exists. Source: the placement seed, facts §4.1, §4.2, §20.3, §20.11. Unlike 1.9, a failing
rule does not keep a forced application from the recovery queue, and a rejection says what each rule said.

Nothing here makes a queue: a queue that does not exist yet is a path that can be made, and whose nearest
existing ancestor lets the user submit.
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
    from yunikorn.registry import Registry

__all__ = ["PlacedQueue", "PlacementChain", "PlacementResult", "PlacementTree", "Step"]

NO_MATCH = "application rejected: no placement rule matched"
FALLBACK_QUEUE = f"{ROOT}.default"
RECOVERY_QUEUE = f"{ROOT}.{RECOVERY}"
RECOVERY_RULE = "recovery"
"""What the last step of every chain is called; no configuration can name it."""
IMPLICIT = (RuleConfig("provided"),)
"""The rules of a partition that has none."""


@attrs.frozen(slots=True)
class Step:
    """What came of one rule."""

    number: int
    """Its place in the list, from 1."""
    rule: str
    outcome: str
    """`match`, `no match` or `error`."""
    queue: str = ""
    reason: str = ""
    title: str = ""
    """The rule's name with its value, for people."""


@attrs.frozen(slots=True)
class PlacementResult:
    """Where an application goes, or in `reason` why nowhere."""

    queue: str = ""
    """The full path in lower case; empty when the application is rejected."""
    rule: str = ""
    """The rule that decided; empty when none matched."""
    reason: str = ""
    steps: tuple[Step, ...] = ()
    """Every rule that was tried, in order."""


class PlacementChain:
    """The placement rules of a partition over its queues, their plugins taken from `objects`.

    Raises `UnknownPlugin`, `OptionError` or `PluginError` when a rule cannot be made. What a rule does
    wrong later goes to `failures`.
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
        """Told every placement with its steps, for whoever explains it."""

    def place(self, app: Application) -> PlacementResult:
        """Find the queue for `app`; "nowhere" is an answer, with the reason."""
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
            where = path if queue is not None or gate is None else f"{gate.path}, where {path} would be made"
            return RuleResult(reason=f"user '{app.user}' may not submit to {where}")
        obstacle = self._tree.obstacle(path) if queue is None else ""
        if obstacle:
            return RuleResult(reason=f"queue {path} cannot be made: {obstacle}")
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
                reason=f"the application is not forced, and there is no queue {FALLBACK_QUEUE}"
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
