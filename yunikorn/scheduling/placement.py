"""Placement of applications in queues by the chain of placement rules.

Rules are tried in order. The first rule that names a queue which accepts the application decides. A failing
rule ends the placement; a rule without a match passes on to the next. If no rule matches, forced applications
are placed in the recovery queue, and others in `root.default` if that queue exists, as in YuniKorn 1.9.
Unlike 1.9, a forced application is placed in the recovery queue even if a rule fails, and a rejection lists
the results of all rules (`docs/decisions/archive/0015`).

Placement creates no queues. A missing queue is returned as a path if the queue can be created and its nearest
existing ancestor allows the user to submit.

`BoundRule` is a configured rule: its plugin, and the checks that the core adds to every rule. The core
applies the filter, validates the queue name, evaluates the parent rule, and checks `create`.

Quotas in the tags of an application (those of namespaces in Kubernetes, as in YuniKorn 1.9) are applied to
its dynamic queue.
"""

from __future__ import annotations

import inspect
import json
import logging
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.api import Refused
from yunikorn.config.acl import RECOVERY, ROOT, is_queue_name
from yunikorn.config.queues_yaml import RuleConfig
from yunikorn.containment import contained, cut, safe_repr, text_or_none
from yunikorn.errors import PluginError
from yunikorn.framework.kinds import PLACEMENT
from yunikorn.framework.plugin_failures import PluginFailures
from yunikorn.framework.policy_calls import PolicyAnswer, may_block, safe
from yunikorn.resources import INT64_MAX, Resource, above_zero
from yunikorn.scheduling.admission.asked_policies import AskedPolicy, PolicyMethod
from yunikorn.scheduling.admission.policy_copies import ApplicationCopy
from yunikorn.scheduling.user_groups import is_forced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from yunikorn.accounting.queue_tree import QueueTree
    from yunikorn.api import Application
    from yunikorn.api import Queue as QueueView
    from yunikorn.framework.instances import InstancePlan
    from yunikorn.framework.offers import Offer
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.admission.asked_policies import Steps

_log = logging.getLogger("yunikorn.placement")

MAX_TAG = "namespace.resourcequota"
GUARANTEED_TAG = "namespace.resourceguaranteed"
APPS_TAG = "namespace.resourcemaxapps"
DIGITS = 20
"""Maximum number of digits of the application limit: no 64-bit integer has more."""


def apply_namespace_quota(queue: Queue, tags: Mapping[str, str]) -> None:
    """Apply the quota tags to a dynamic queue; an unreadable tag is ignored with a warning."""
    if not tags:
        return
    lower = {name.lower(): value for name, value in tags.items()}
    quota, guaranteed = _amount(lower, MAX_TAG), _amount(lower, GUARANTEED_TAG)
    if quota is not None or guaranteed is not None:
        queue.set_quota(
            queue.guaranteed if guaranteed is None else guaranteed,
            queue.configured_max if quota is None else quota,
        )
    apps = lower.get(APPS_TAG, "")
    if apps.isdecimal() and len(apps) <= DIGITS and int(apps):
        queue.max_applications = int(apps)
        queue.check_full()


def _amount(tags: Mapping[str, str], name: str) -> Resource | None:
    text = tags.get(name)
    if not text:
        return None
    try:
        # Clients that write these tags omit values of 0.
        amounts = json.loads(text)["resources"].items()
        amount = Resource({key: _whole(value.get("value", 0)) for key, value in amounts})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        _log.warning("tag %s is ignored, %.200r is not a resource: %s", name, text, error)
        return None
    return amount if above_zero(amount) else None


def _whole(value: object) -> int:
    if type(value) is not int or abs(value) > INT64_MAX:
        raise ValueError(f"{value!r:.40} is not a whole number of 64 bits")
    return value


POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
COMPLETE = f"{ROOT}."
"""Prefix of a fully qualified queue name (case-insensitive)."""


@attrs.frozen(slots=True)
class RuleResult:
    """Result of a rule: a queue path in lower case, or the `reason` why there is none."""

    queue: str = ""
    reason: str = ""
    outcome: str = "no match"
    """Outcome without a queue. After `refused` and `error` no later rule may place the application."""

    def step(self, number: int, rule: str, title: str) -> Step:
        """Return this result as that of one rule of a chain."""
        return Step(number, rule, "match" if self.queue else self.outcome, self.queue, self.reason, title)


def _read_place(app: object, answer: Any) -> PolicyAnswer:
    """Return the queue name or the refusal of an answer. Raises `TypeError` for a wrong one."""
    if issubclass(type(answer), Refused):
        reason = text_or_none(answer.reason)
        if reason is None:
            raise TypeError(f"it refused with the reason {safe_repr(answer.reason)} instead of text")
        return PolicyAnswer(reason=safe(reason))
    name = text_or_none(answer)
    if name is None:
        raise TypeError(f"it returned {safe_repr(answer)} instead of a queue name or None")
    return PolicyAnswer(queue=safe(name))


PLACE = PolicyMethod(
    "placement rule", "place", "placing", "application '{0.id}'", _read_place, ApplicationCopy.of
)
NO_QUEUE = RuleResult(reason="the rule returns no queue for this application")
BLOCKS_WITH_QUEUES = (
    "a rule with blocking = True gets no queues, which change while it is asked: define place(app), and "
    "return the name; if that queue does not exist and the rule has no create, the next rule is tried"
)


class BoundRule:
    """A configured rule with its plugin object and its parent rules."""

    def __init__(
        self,
        config: RuleConfig,
        plan: InstancePlan,
        tree: QueueTree,
        failures: PluginFailures,
    ) -> None:
        offer = plan.registry.find(PLACEMENT, config.name)
        self.name = config.name
        self.title = f"{config.name} '{config.value}'" if config.value else config.name
        made = plan.make(PLACEMENT, config.name, plugin_options(config, offer))
        self._policy = AskedPolicy.of(made, PLACE, failures)
        self.parent = BoundRule(config.parent, plan, tree, failures) if config.parent else None
        place: Callable[..., Any] = self._policy.call
        if _takes_queues(place):
            if may_block(made.plugin, made.origin, failures):
                raise PluginError(made.origin, "reading its place", BLOCKS_WITH_QUEUES)
            queues = TreeView(tree)
            self._policy.call = lambda app: place(app, queues)
        self._create = config.create
        self._filter = config.filter
        self._tree = tree

    def bind(self, *, workers: bool) -> None:
        """Let `workers` call the rule if it may block, which gets a copy of the application."""
        if self.parent is not None:
            self.parent.bind(workers=workers)
        self._policy.bind(workers=workers)

    def steps(self, app: Application) -> Steps[RuleResult]:
        """Return the queue that this rule selects for `app`; access rights are not checked."""
        if self._filter is not None and not self._filter.allows(app.user, app.groups):
            return RuleResult(reason=f"its filter excludes user '{app.user}'")
        answer = yield from self._policy.ask(app)
        if answer.failed is not None:
            return RuleResult(reason=answer.failed, outcome="error")
        if answer.reason is not None:
            return RuleResult(reason=answer.reason, outcome="refused")
        if not answer.queue:
            return NO_QUEUE
        return (yield from self._complete(answer.queue, app))

    def _complete(self, name: str, app: Application) -> Steps[RuleResult]:
        if name.lower() == COMPLETE:
            return RuleResult(ROOT)
        for level in name.split("."):
            if not is_queue_name(level):
                return RuleResult(
                    reason=f"invalid queue name '{cut(name, 200)}': {_fault_of(level)}", outcome="error"
                )
        if not name.lower().startswith(COMPLETE):
            above = yield from self._above(app)
            if not above.queue:
                return above
            name = f"{above.queue}.{name}"
        path = name.lower()
        if not self._create and self._tree.queue(path) is None:
            return RuleResult(reason=f"queue {path} does not exist, and the rule does not create it")
        return RuleResult(path)

    def _above(self, app: Application) -> Steps[RuleResult]:
        if self.parent is None:
            return RuleResult(ROOT)
        choice = yield from self.parent.steps(app)
        if not choice.queue:
            return attrs.evolve(choice, reason=f"parent rule {self.parent.title}: {choice.reason}")
        queue = self._tree.queue(choice.queue)
        if queue is not None and queue.is_leaf:
            return RuleResult(reason=f"parent rule returned a leaf queue: {queue.path}")
        return choice


class TreeView:
    """Queues as a placement rule sees them; see `yunikorn.api.QueueTree`."""

    def __init__(self, tree: QueueTree) -> None:
        self._tree = tree

    def get(self, path: str) -> QueueView | None:
        """Return the queue with this full path, ignoring case, or None."""
        return self._tree.queue(path)

    def children(self, path: str) -> Sequence[QueueView]:
        """Return the children of a queue, sorted by name; empty for a leaf or an unknown queue."""
        queue: Any = self._tree.queue(path)
        return [] if queue is None else [queue.children[name] for name in sorted(queue.children)]


def _takes_queues(place: Callable[..., object]) -> bool:
    """Return True if a rule has a parameter for the queues."""
    try:
        parameters = inspect.signature(place).parameters.values()
    except contained():
        return False  # extension types may have no signature
    return len([one for one in parameters if one.kind in POSITIONAL]) > 1


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
    """One of `match`, `no match`, `refused` and `error`."""
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
    """Placement rules of a partition; their plugin objects come from `plan`.

    Raises `UnknownPlugin`, `OptionError` or `PluginError` if a rule cannot be created. Later failures of a
    rule are reported to `failures`.
    """

    def __init__(
        self,
        rules: Sequence[RuleConfig],
        plan: InstancePlan,
        tree: QueueTree,
        failures: PluginFailures | None = None,
    ) -> None:
        failures = PluginFailures() if failures is None else failures
        self._rules: list[BoundRule] = []
        for rule in rules or IMPLICIT:
            with plan.optional(PLACEMENT, rule.name, required=rule.required):
                self._rules.append(BoundRule(rule, plan, tree, failures))
        self._tree = tree
        self.observer: Callable[[Application, PlacementResult], None] | None = None
        """Receives every placement with its steps; used for explanations."""

    def bind(self, *, workers: bool) -> None:
        """Let `workers` call the rules that may block; called before the first placement."""
        for rule in self._rules:
            rule.bind(workers=workers)

    def steps(self, app: Application) -> Steps[PlacementResult]:
        """Return the queue for `app`, or the reason why there is none."""
        placement = yield from self._run(app)
        if self.observer is not None:
            self.observer(app, placement)
        return placement

    def _run(self, app: Application) -> Steps[PlacementResult]:
        forced = is_forced(app.tags)
        steps: list[Step] = []
        for number, rule in enumerate(self._rules, 1):
            choice = yield from rule.steps(app)
            if choice.queue:
                choice = self._admit(choice.queue, app, forced)
            steps.append(choice.step(number, rule.name, rule.title))
            if choice.queue:
                return PlacementResult(choice.queue, rule.name, "", tuple(steps))
            if choice.outcome != "no match" and not forced:
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

    def _nearest(self, path: str) -> Queue | None:
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
        steps.append(choice.step(len(steps) + 1, RECOVERY_RULE, RECOVERY_RULE))
        if choice.queue:
            return PlacementResult(choice.queue, RECOVERY_RULE, "", tuple(steps))
        said = "; ".join(f"{step.title}: {step.reason}" for step in steps)
        return PlacementResult("", "", f"{NO_MATCH} ({said})", tuple(steps))
