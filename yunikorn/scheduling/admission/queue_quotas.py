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
from typing import TYPE_CHECKING, Any

from yunikorn.api import Quota
from yunikorn.clock import SECOND
from yunikorn.containment import LONGEST_NAME, items_of, number_or_none, safe_repr, text_or_none
from yunikorn.errors import PluginError
from yunikorn.framework.kinds import QUOTA
from yunikorn.framework.plugin_failures import LONGEST_SECONDS, read_flag, read_seconds
from yunikorn.framework.policy_calls import PolicyAnswer, may_block, safe
from yunikorn.model.policy_quota import PolicyQuota
from yunikorn.model.queue import RECOVERY
from yunikorn.model.sibling_usage import Lender, SiblingUsage
from yunikorn.resources import INT64_MAX, NOTHING, Resource
from yunikorn.scheduling.admission.asked_policies import AFTER_FAILURE, SHORTEST, AskedPolicy, PolicyMethod
from yunikorn.scheduling.admission.policy_copies import QueueCopy
from yunikorn.scheduling.admission.questions import AWAITED, Questions

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.framework.instances import PluginInstance, PluginInstances
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.admission.worker_questions import WorkerQuestions
    from yunikorn.scheduling.preemption.preemption import Preemption

BLOCKS_WITH_SIBLINGS = (
    "a quota policy with blocking = True cannot have watches_siblings, because it would be asked before "
    "every placement: use refresh_every, until or watches_cluster"
)


def check_declarations(one: PluginInstance, failures: PluginFailures) -> None:
    """Raise `PluginError` for a quota policy that may block and watches siblings."""
    blocks = may_block(one.plugin, one.origin, failures)
    if blocks and read_flag(one.plugin, "watches_siblings", one.origin, failures):
        raise PluginError(one.origin, "reading its watches_siblings", BLOCKS_WITH_SIBLINGS)


def _read_quota(argument: tuple[Any, int], answer: Any) -> PolicyAnswer:
    """Return the amounts of an answer. Raises `TypeError` or `ValueError` for a wrong one."""
    now = argument[1]
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
    if amounts is not None:
        amounts = dict(_amount(*entry) for entry in items_of(amounts, MOST_TYPES))
    return PolicyAnswer(max=amounts, until=until, why=safe(why))


MOST_TYPES = 1_000
"""Maximum number of resource types in an answer, which is computed with at every change of usage."""


def _amount(name: Any, value: Any) -> tuple[str, int]:
    text, amount = text_or_none(name, LONGEST_NAME), number_or_none(value)
    if text is None:
        raise TypeError(f"it returned {safe_repr(name)} instead of the name of a resource type")
    if type(amount) is not int or type(value) is bool or not 0 <= amount <= INT64_MAX:
        raise ValueError(
            f"it returned {safe_repr(value)} of {text} instead of a whole number from 0 to {INT64_MAX}"
        )
    return safe(text), amount


SET_MAX = PolicyMethod("quota policy", "quota", "setting the max of", "{0.label}", _read_quota, QueueCopy.of)


class AskedQuotaPolicy(AskedPolicy):
    """A quota policy in use, with what it declares."""

    def __init__(self, made: PluginInstance, failures: PluginFailures, now: Callable[[], int]) -> None:
        super().__init__(made.plugin, made.name, made.origin, SET_MAX, failures)
        quota, self._now = self.call, now
        self.call = lambda argument: quota(argument[0])
        self.watches_siblings = read_flag(made.plugin, "watches_siblings", made.origin, failures)
        self.watches_cluster = read_flag(made.plugin, "watches_cluster", made.origin, failures)
        every = read_seconds(made.plugin, "refresh_every", made.origin, failures)
        self.refresh = round(every * SECOND) if every else 0

    def prepare(self, subject: Any) -> Any:
        """Return a queue, or its copy, and the time."""
        return QueueCopy.of(subject) if self.blocks else subject, self._now()


class QueueQuotas:
    """Quota policies of the queues of one partition."""

    def __init__(
        self,
        partition: Partition,
        instances: PluginInstances,
        failures: PluginFailures,
        preemption: Preemption,
        workers: WorkerQuestions | None,
    ) -> None:
        """Create without policies."""
        self._partition = partition
        self._workers = workers
        self._questions: Questions[Queue, PolicyAnswer] = Questions(
            partition,
            workers,
            lambda queue: self._bound[queue][0].ask(queue),
            self._answered,
            self._ask,
            after=self._report,
        )
        self._instances = instances
        self._failures = failures
        self._preemption = preemption
        self._policies: dict[PluginInstance, AskedQuotaPolicy] = {}
        self._bound: dict[Queue, tuple[AskedQuotaPolicy, PolicyQuota]] = {}
        self._siblings: dict[Queue, SiblingUsage] = {}
        """Usage of siblings by parent, for parents with a child whose policy watches its siblings."""
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
        return {id(policy.plugin) for policy, _ in self._bound.values()}

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
        for queue in self._bound:
            self._questions.withdraw(queue)
        self.ask_all(preempting=False)

    def _drop_unused(self) -> None:
        """Forget policies that no queue uses, and the usage of siblings that no policy watches."""
        used = {policy for policy, _ in self._bound.values()}
        self._policies = {one: policy for one, policy in self._policies.items() if policy in used}
        self.watching = any(policy.watches_siblings or policy.watches_cluster for policy in used)
        for parent, siblings in list(self._siblings.items()):
            if not siblings.watchers:
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
            policy = self._policy(name, dict(options))
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
            if policy.at_once:
                quota.why = AWAITED
            self._bound[queue] = (policy, quota)
            if lender is not None:
                lender.siblings.watchers[queue] = None
            self.watching = self.watching or policy.watches_siblings or policy.watches_cluster
            queue.use_policy_quota(quota)
        return True

    def _policy(self, name: str, options: dict[str, str]) -> AskedQuotaPolicy | None:
        made = self._instances.find_shared(QUOTA, name, options)
        if made is None:
            return None
        found = self._policies.get(made)
        if found is None:
            found = AskedQuotaPolicy(made, self._failures, self._partition.clock.now)
            found.bind(workers=self._workers is not None)
            found.watches_siblings = found.watches_siblings and not found.blocks
            self._policies[made] = found
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
        self._questions.withdraw(queue)
        self._moved.pop(queue, None)
        if (lender := known[1].siblings) is not None:
            del lender.siblings.watchers[queue]
        queue.use_policy_quota(None)

    # -- questions ----------------------------------------------------------------------------------

    def _ask(self, queue: Queue) -> None:
        """Ask the policy of a queue, and apply the answer, at once or when a worker has it."""
        policy, quota = self._bound[queue]
        if not policy.at_once:
            if quota.siblings is not None:
                quota.version = quota.siblings.version
            self._apply(queue, policy.answer(queue))
            return
        # Until the answer, the previous one stays in force.
        self._put(queue, quota, _in_force(queue.configured_max, quota.answer))
        if not self._questions.outdate(queue):
            self._questions.ask(queue)

    def _answered(self, queue: Queue, answer: PolicyAnswer) -> None:
        """Apply the answer of a worker."""
        self._apply(queue, answer)
        self._report()

    def _apply(self, queue: Queue, answer: PolicyAnswer) -> None:
        policy, quota = self._bound[queue]
        quota.failure, quota.until, quota.why = answer.failed or "", answer.until, answer.why
        quota.answer, now = answer.max, self._partition.clock.now()
        times = [] if quota.until is None else [max(quota.until, now + SHORTEST)]
        if quota.failure:
            times.append(now + AFTER_FAILURE)
        if policy.refresh:
            # The same times for all queues, so that they share timers.
            times.append((now // policy.refresh + 1) * policy.refresh)
        self._questions.ask_at(queue, min(times, default=None))
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
                    asked = asked or not policy.at_once
        while self._stale:
            siblings = self._stale.pop()
            siblings.is_listed = False
            for queue in list(siblings.watchers):
                # Many queues may be idle. The arrival of a request brings them here again.
                if any(queue.demand.values()):
                    self._bound[queue][1].current()
                    asked = True
        self._report()
        return asked

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
