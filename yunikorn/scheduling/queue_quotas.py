"""Quotas of queues by quota policies: who is asked, when, and the effect of an answer.

A policy declares what its answers depend on, so that no queue is visited without need. Questions that depend
on the time share timers: queues whose answers change at the same time, or that refresh in the same interval,
have one timer together. A policy that watches siblings is asked where it matters, before a placement in its
queue, and once per round of decisions for its waiting requests
(docs/decisions/archive/0080-quota-policies.md). One that may block is called by workers, and its previous
answer stays in force meanwhile (docs/decisions/archive/0184).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from yunikorn.api import Quota
from yunikorn.clock import SECOND
from yunikorn.containment import (
    LONGEST_NAME,
    contained,
    describe_error,
    is_plugin_of,
    items_of,
    number_or_none,
    read_attribute,
    safe_repr,
    text_or_none,
)
from yunikorn.errors import PluginError
from yunikorn.framework.kinds import QUOTA
from yunikorn.framework.plugin_failures import LONGEST_SECONDS, read_flag, read_seconds
from yunikorn.framework.policy_calls import PolicyAnswer, calls_at_once, may_block, safe
from yunikorn.model.policy_quota import PolicyQuota
from yunikorn.model.queue import RECOVERY
from yunikorn.model.sibling_usage import Lender, SiblingUsage
from yunikorn.resources import INT64_MAX, NOTHING, Resource
from yunikorn.scheduling.application_copies import QueueCopy
from yunikorn.scheduling.policy_questions import AskedPolicy
from yunikorn.scheduling.questions import AWAITED

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.clock import Timer
    from yunikorn.framework.instances import PluginInstance, PluginInstances
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.policy_questions import PolicyQuestions

AFTER_FAILURE = 60 * SECOND
"""Time (ns) until a policy that failed is asked again."""
SHORTEST = SECOND // 10
"""Shortest time (ns) between two questions by a timer about the same queue."""


class LoweredQuotas(Protocol):
    """Part of preemption that handles lowered quotas."""

    def quota_changed(self, queue: Queue, before: Resource | None) -> None:
        """Handle a change of the quota in force."""
        ...


BLOCKS_WITH_SIBLINGS = (
    "a quota policy with blocking = True cannot have watches_siblings, because it would be asked before "
    "every placement: use refresh_every, until or watches_cluster"
)


def check_declarations(one: PluginInstance, failures: PluginFailures) -> None:
    """Raise `PluginError` for a quota policy that may block and watches siblings."""
    blocks = may_block(one.plugin, one.origin, failures)
    if blocks and read_flag(one.plugin, "watches_siblings", one.origin, failures):
        raise PluginError(one.origin, "reading its watches_siblings", BLOCKS_WITH_SIBLINGS)


class _Policy:
    """A plugin object, with what it declares."""

    def __init__(self, one: PluginInstance, failures: PluginFailures, *, workers: bool) -> None:
        self.instance = one
        self.name, self.origin = one.name, one.origin
        self.quota: Callable[[Queue], Any] = read_attribute(one.plugin, "quota")
        self.watches_siblings = read_flag(one.plugin, "watches_siblings", one.origin, failures)
        self.watches_cluster = read_flag(one.plugin, "watches_cluster", one.origin, failures)
        every = read_seconds(one.plugin, "refresh_every", one.origin, failures)
        self.refresh = round(every * SECOND) if every else 0
        self.asked: AskedPolicy | None = None
        """The policy, if workers call it."""
        if may_block(one.plugin, one.origin, failures):
            self.watches_siblings = False
            if workers:
                at_once = calls_at_once(one.plugin, one.origin, failures)
                title, work = f"quota policy {one.name}", partial(_call, self.quota)
                self.asked = AskedPolicy(one.plugin, title, one.origin, work, at_once)
            else:
                self.quota = partial(_quota_of_copy, self.quota)


class _Appointment:
    """Queues whose policies are asked at the same time."""

    __slots__ = ("queues", "timer")

    def __init__(self, timer: Timer) -> None:
        self.timer = timer
        self.queues: dict[Queue, None] = {}


class QueueQuotas:
    """Quota policies of the queues of one partition."""

    def __init__(
        self,
        partition: Partition,
        instances: PluginInstances,
        failures: PluginFailures,
        preemption: LoweredQuotas,
        questions: PolicyQuestions | None,
    ) -> None:
        """Create without policies; workers answer `questions`, if there are any."""
        self._partition = partition
        self._questions = questions
        self._pending: dict[Queue, Callable[[], None]] = {}
        """Queues about which workers ask, each with the function that withdraws the question."""
        self._outdated: set[Queue] = set()
        """Those of them that have to be asked about again after the answer."""
        self._instances = instances
        self._failures = failures
        self._preemption = preemption
        self._policies: dict[PluginInstance, _Policy] = {}
        self._bound: dict[Queue, tuple[_Policy, PolicyQuota]] = {}
        self._appointments: dict[int, _Appointment] = {}
        self._due: dict[Queue, int] = {}
        """Time of the appointment of each queue that has one."""
        self._siblings: dict[Queue, SiblingUsage] = {}
        """Usage of siblings by parent, for parents with a child whose policy watches its siblings."""
        self._watchers: dict[SiblingUsage, dict[Queue, None]] = {}
        """Queues whose policies watch their siblings."""
        self._stale: list[SiblingUsage] = []
        self._moved: dict[Queue, PolicyQuota] = {}
        """Quotas that have changed and were not reported yet."""
        self._size = -1
        """Version of the cluster for which the policies that watch it were asked."""
        self.watching = False
        """True if a policy watches siblings or the cluster, so that `review` is necessary."""

    @property
    def plugins(self) -> set[int]:
        """Identities of the plugin objects in use by queues."""
        return {id(policy.instance.plugin) for policy, _ in self._bound.values()}

    # -- configuration ------------------------------------------------------------------------------

    def apply(self, queues: Iterable[Queue]) -> None:
        """Use the policies that new and changed queues name, and ask them."""
        bound = [queue for queue in queues if self._bind(queue)]
        for queue in bound:
            self._ask(queue)
        if bound:
            self._report()

    def reconfigure(self, *, named: bool) -> None:
        """Use the policies of a new configuration, and ask all of them again; preemption is not notified.

        `named` is False if the configuration names no policy.
        """
        if not (named or self._bound or self._siblings or self._policies):
            return
        tree = self._partition.queues
        present = set(tree)
        for queue in [queue for queue in self._bound if queue not in present]:
            self.forget(queue)
        for queue in tree:
            if queue.settings.quota_policy or queue in self._bound or self._siblings:
                self._bind(queue)
        self._drop_unused()
        for queue in list(self._pending):
            self._withdraw(queue)
        self.ask_all(preempting=False)

    def _drop_unused(self) -> None:
        """Forget policies that no queue uses, and the usage of siblings that no policy watches."""
        used = {policy for policy, _ in self._bound.values()}
        self._policies = {one: policy for one, policy in self._policies.items() if policy in used}
        self.watching = any(policy.watches_siblings or policy.watches_cluster for policy in used)
        for parent, siblings in list(self._siblings.items()):
            if siblings not in self._watchers:
                del self._siblings[parent]
                for child in parent.children.values():
                    child.lender = None
                    child.observe()

    def _bind(self, queue: Queue) -> bool:
        """Use the policy that a queue names; returns True if the policy has to be asked."""
        name, options = queue.settings.quota_policy, queue.settings.quota_policy_options
        known = self._bound.get(queue)
        if not name and known is None and not self._siblings:
            return False
        policy = None
        if name and queue.parent is not None and queue.path != RECOVERY:
            policy = self._policy(name, dict(options), queue)
        reported = queue.max
        if known is not None and known[0] is not policy:
            reported = known[1].reported
            self._release(queue)
            known = None
            if policy is None and reported != queue.max:
                self._partition.changes.quota_changed(queue, "configured max")
        self._lend(queue, watched=policy is not None and policy.watches_siblings)
        if policy is None:
            return False
        if known is None:
            lender = queue.lender if policy.watches_siblings else None
            quota = PolicyQuota(queue.configured_max, policy.name, lender, partial(self._ask, queue))
            quota.reported = reported
            if policy.asked is not None:
                quota.why = AWAITED
            self._bound[queue] = (policy, quota)
            if lender is not None:
                self._watchers.setdefault(lender.siblings, {})[queue] = None
            self.watching = self.watching or policy.watches_siblings or policy.watches_cluster
            queue.use_policy_quota(quota)
        return True

    def _policy(self, name: str, options: dict[str, str], queue: Queue) -> _Policy | None:
        made = self._instances.find_shared(QUOTA, name, options)
        if made is None:
            return None
        found = self._policies.get(made)
        if found is None:
            workers = self._questions is not None
            found = self._policies[made] = _Policy(made, self._failures, workers=workers)
        return found

    def _lend(self, queue: Queue, *, watched: bool) -> None:
        """Include a queue in the usage of siblings of its parent, if a policy needs that."""
        parent = queue.parent
        if parent is None or queue.lender is not None:
            return
        siblings = self._siblings.get(parent)
        children: Iterable[Queue] = (queue,)
        if siblings is None:
            if not watched:
                return
            siblings = self._siblings[parent] = SiblingUsage(self._stale)
            children = parent.children.values()
        for child in children:
            child.lender = Lender(child, siblings)
            child.observe()

    def forget(self, queue: Queue) -> None:
        """Forget a queue that has left the tree."""
        self._release(queue)
        if queue.lender is not None:
            queue.lender.leave()
            queue.lender = None
            queue.observe()
        self._siblings.pop(queue, None)

    def _release(self, queue: Queue) -> None:
        """Put the configured quota of a queue in force instead of that of its policy, if it has one."""
        known = self._bound.pop(queue, None)
        if known is None:
            return
        self._cancel(queue)
        self._withdraw(queue)
        self._moved.pop(queue, None)
        if (lender := known[1].siblings) is not None:
            watchers = self._watchers[lender.siblings]
            del watchers[queue]
            if not watchers:
                del self._watchers[lender.siblings]
        queue.use_policy_quota(None)

    # -- questions ----------------------------------------------------------------------------------

    def _ask(self, queue: Queue) -> None:
        """Ask the policy of a queue, and apply the answer, at once or when a worker has it."""
        policy, quota = self._bound[queue]
        if policy.asked is not None:
            self._consult(queue, quota, policy.asked)
            return
        if quota.siblings is not None:
            quota.version = quota.siblings.version
        try:
            answer: Quota | BaseException = _checked(policy.quota(queue), self._partition.clock.now())
        except contained() as error:
            answer = error
        self._apply(queue, answer)

    def _consult(self, queue: Queue, quota: PolicyQuota, asked: AskedPolicy) -> None:
        """Let a worker ask the policy of a queue; until the answer, the previous one stays in force."""
        assert self._questions is not None
        self._put(queue, quota, _in_force(queue.configured_max, quota.answer))
        if queue in self._pending:
            self._outdated.add(queue)
            return
        clock = self._partition.clock

        def make() -> tuple[QueueCopy, int]:
            return QueueCopy.of(queue), clock.now()

        self._pending[queue] = self._questions.ask(asked, make, partial(self._answered, queue))

    def _answered(self, queue: Queue, answer: PolicyAnswer) -> None:
        """Apply the answer of a worker."""
        del self._pending[queue]
        if answer.failed is not None:
            self._apply(queue, answer.failed)
        else:
            amounts = None if answer.max is None else Resource(answer.max)
            self._apply(queue, Quota(amounts, answer.until, answer.why))
        if queue in self._outdated:
            self._outdated.discard(queue)
            self._ask(queue)
        self._report()

    def _withdraw(self, queue: Queue) -> None:
        """Ignore the answer of a worker about a queue, if one is awaited."""
        withdraw = self._pending.pop(queue, None)
        if withdraw is not None:
            withdraw()
        self._outdated.discard(queue)

    def _apply(self, queue: Queue, answer: Quota | BaseException | str) -> None:
        """Apply an answer about a queue, or the failure of its policy."""
        policy, quota = self._bound[queue]
        failure = ""
        # An error of a plugin may raise where its class is read, as `isinstance` does.
        if not is_plugin_of(answer, Quota):
            error = cast("BaseException | str", answer)
            failure = str(self._failures.report(policy.origin, "setting the max of", error, queue.label))
            answer = Quota(None)
        quota.failure, quota.until, quota.why = failure, answer.until, answer.why
        quota.answer = answer.max
        self._arrange(queue, quota, policy, self._partition.clock.now())
        self._put(queue, quota, _in_force(queue.configured_max, answer.max))

    def _put(self, queue: Queue, quota: PolicyQuota, amount: Resource | None) -> None:
        if amount != quota.amount:
            quota.amount = amount
            queue.apply_policy_quota()
            # Preemption and refused requests are tried again only after a change.
            self._partition.accounting.change_count += 1
        if amount != quota.reported:
            self._moved[queue] = quota

    def ask_all(self, *, preempting: bool = True) -> None:
        """Ask the policies of all queues; with `preempting` preemption is notified of lower quotas."""
        for queue in list(self._bound):
            self._ask(queue)
        self._report(preempting=preempting)

    def ask_again(self, queue: Queue) -> None:
        """Ask the policy of a queue whose configured quota has changed."""
        if queue in self._bound:
            self._ask(queue)
            self._report()

    def review(self) -> bool:
        """Ask the policies that watch siblings or the cluster, if those have changed.

        Returns True if a policy has answered, so that another decision may be possible.
        """
        asked = False
        if self._size != self._partition.cluster.version:
            self._size = self._partition.cluster.version
            for queue, (policy, _) in list(self._bound.items()):
                if policy.watches_cluster:
                    self._ask(queue)
                    asked = asked or policy.asked is None
        while self._stale:
            siblings = self._stale.pop()
            siblings.is_listed = False
            for queue in list(self._watchers.get(siblings, ())):
                # Many queues may be idle. The arrival of a request brings them here again.
                if any(queue.demand.values()):
                    self._bound[queue][1].current()
                    asked = True
        self._report()
        return asked

    # -- timers -------------------------------------------------------------------------------------

    def _arrange(self, queue: Queue, quota: PolicyQuota, policy: _Policy, now: int) -> None:
        """Set the time of the next question about a queue."""
        times = [] if quota.until is None else [max(quota.until, now + SHORTEST)]
        if quota.failure:
            times.append(now + AFTER_FAILURE)
        if policy.refresh:
            # The same times for all queues, so that they share timers.
            times.append((now // policy.refresh + 1) * policy.refresh)
        due = min(times, default=None)
        if due == self._due.get(queue):
            return
        self._cancel(queue)
        if due is not None:
            self._due[queue] = due
            self._appointment(due).queues[queue] = None

    def _appointment(self, due: int) -> _Appointment:
        found = self._appointments.get(due)
        if found is None:
            timer = self._partition.timers.at(due, lambda: self._go(due))
            found = self._appointments[due] = _Appointment(timer)
        return found

    def _cancel(self, queue: Queue) -> None:
        due = self._due.pop(queue, None)
        if due is not None:
            found = self._appointments[due]
            del found.queues[queue]
            if not found.queues:
                found.timer.cancel()
                del self._appointments[due]

    def _go(self, due: int) -> None:
        """Ask about the queues of an appointment."""
        queues = list(self._appointments.pop(due).queues)
        for queue in queues:
            del self._due[queue]
        for queue in queues:
            self._ask(queue)
        self._report()

    # -- effects ------------------------------------------------------------------------------------

    def _report(self, *, preempting: bool = True) -> None:
        """Record the quotas that have changed, and notify quota preemption."""
        if not self._moved:
            return
        moved, self._moved = self._moved, {}
        for queue, quota in moved.items():
            before = quota.reported
            if before == quota.amount:
                continue
            quota.reported = quota.amount
            why = quota.describe(self._partition.clock.now(), queue.configured_max)
            self._partition.changes.quota_changed(queue, why)
            if preempting:
                self._preemption.quota_changed(queue, before)


def _in_force(configured: Resource | None, amounts: Mapping[str, int] | None) -> Resource | None:
    """Return the quota in force; a type without an answer keeps its configured amount."""
    if not amounts:
        return configured
    return Resource({**(configured or NOTHING), **amounts})


MOST_TYPES = 1_000
"""Maximum number of resource types in an answer, which is computed with at every change of usage."""


def _quota_of_copy(quota: Callable[[Any], Any], queue: Queue) -> Any:
    return quota(QueueCopy.of(queue))


def _call(quota: Callable[[Any], Any], given: tuple[QueueCopy, int]) -> PolicyAnswer:
    """Call a quota policy in a worker, with a queue and the time."""
    try:
        answer = _checked(quota(given[0]), given[1])
        amounts = None if answer.max is None else {safe(name): most for name, most in answer.max.items()}
        return PolicyAnswer(max=amounts, until=answer.until, why=safe(answer.why))
    except contained() as error:
        return PolicyAnswer(failed=safe(describe_error(error)))


def _checked(answer: Any, now: int) -> Quota:
    """Return an answer in values of Python itself. Raises `TypeError` or `ValueError` for an invalid one."""
    if answer is None:
        return Quota(None)
    if not issubclass(type(answer), Quota):
        raise TypeError(f"it returned {safe_repr(answer)} instead of None or Quota")
    amounts, until, why = answer.max, answer.until, text_or_none(answer.why)
    if why is None:
        raise TypeError(f"it returned the reason {safe_repr(answer.why)} instead of text")
    if until is not None:
        until = number_or_none(until)
        if type(until) is not int or not now < until < now + LONGEST_SECONDS * SECOND:
            raise ValueError(
                f"it returned until={safe_repr(answer.until)} instead of None or a time in nanoseconds after "
                f"the present, {now}"
            )
    if amounts is None:
        return Quota(None, until, why)
    return Quota(Resource(_amount(*entry) for entry in items_of(amounts, MOST_TYPES)), until, why)


def _amount(name: Any, value: Any) -> tuple[str, int]:
    text, amount = text_or_none(name, LONGEST_NAME), number_or_none(value)
    if text is None:
        raise TypeError(f"it returned {safe_repr(name)} instead of the name of a resource type")
    if type(amount) is not int or type(value) is bool or not 0 <= amount <= INT64_MAX:
        raise ValueError(
            f"it returned {safe_repr(value)} of {text} instead of a whole number from 0 to {INT64_MAX}"
        )
    return text, amount
