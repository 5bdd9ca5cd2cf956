"""Preemption in one partition: for requests, after quota changes, and on shrunk nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from yunikorn.scheduling.preemption.preemptor import Preemptor
from yunikorn.scheduling.preemption.quota_preemption import PreviousQuota, QuotaPreemption
from yunikorn.scheduling.preemption.victims import overuse, victims_of

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.clock import Timer
    from yunikorn.config.queues_yaml import PreemptionConfig
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.node import Node
    from yunikorn.model.queue import Queue
    from yunikorn.resources import Resource
    from yunikorn.scheduling.cycle import Cycle
    from yunikorn.scheduling.node_orders import NodeOrders
    from yunikorn.scheduling.preemption.victim_policy import VictimPolicy


class Preemption:
    """Entry point of the partition scheduler for all kinds of preemption."""

    def __init__(
        self,
        partition: Partition,
        cycle: Cycle,
        orders: NodeOrders,
        config: PreemptionConfig,
        policy: VictimPolicy,
    ) -> None:
        self._partition = partition
        self._config = config
        self.policy = policy
        self._preemptor = Preemptor(partition, cycle, orders, config, policy)
        self.notice: Callable[[Ask], None] = self._preemptor.notice
        """Handle a request that is new or has changed."""
        self.review: Callable[[], None] = self._preemptor.review
        """Preempt where that is due; called when nothing can be placed."""
        self.is_due: Callable[[], bool] = self._preemptor.is_due
        """Return True if another round is due now."""
        self.next_attempt_at: Callable[[Ask], int | None] = self._preemptor.next_attempt_at
        """Return the time (ns) of the first attempt for a pending request; None if there is none."""
        self.refusal: Callable[[Ask], str] = self._preemptor.refusal
        """Return why a gang has no right to preempt that its queue gives to others; empty if it has."""
        self.protections: Callable[[Ask], dict[str, int]] = self._preemptor.protections
        """Return the number of allocations that the policy protects from a request, by reason."""
        self._evictor = self._preemptor.evictor
        enabled = config.quota_preemption_enabled
        self._quotas = QuotaPreemption(partition, self._evictor, policy, enabled=enabled)
        self._shrunk: dict[Node, Timer] = {}
        """Nodes on which a policy whose answers depend on the time is asked again."""

    def quotas(self, config: PreemptionConfig) -> dict[Queue, PreviousQuota]:
        """Return the quotas before a configuration change, for `reconfigure` with the same `config`."""
        return self._quotas.before(enabled=config.quota_preemption_enabled)

    def reconfigure(
        self, before: Mapping[Queue, PreviousQuota], config: PreemptionConfig, policy: VictimPolicy
    ) -> None:
        """Apply a new configuration, after the queues have been reconfigured."""
        replaced = policy.plugin is not self.policy.plugin
        self._config = config
        self.policy = policy
        self._preemptor.reconfigure(config, policy)
        self._quotas.after(before, policy, enabled=config.quota_preemption_enabled)
        if replaced:
            self._resize_all()

    def ask_again(self) -> None:
        """Search for victims again, because the policy may answer otherwise now."""
        self.reconfigure(self.quotas(self._config), self._config, self.policy)
        self._resize_all()

    def _resize_all(self) -> None:
        """Preempt on nodes that became smaller, whose allocations the policy may have protected."""
        for node in list(self._partition.nodes.values()):
            self.resized(node)

    def quota_changed(self, queue: Queue, before: Resource | None) -> None:
        """Handle a change of the max in force by a quota policy; `before` is the previous one."""
        self._quotas.changed(queue, before)

    def booked(self, app: Application) -> None:
        """Check the quotas of an application whose usage grew without a quota check."""
        if self._config.quota_preemption_enabled:
            for queue in reversed(app.chain):
                self._quotas.exceeded(queue)

    def resized(self, node: Node) -> None:
        """Preempt on a node whose capacity has become smaller than its usage, if configured."""
        timer = self._shrunk.pop(node, None)
        if timer is not None:
            timer.cancel()
        if self._config.shrunk_nodes and any(amount < 0 for amount in node.available.values()):
            victims = self.policy.modes(*victims_of(node, self.policy))
            if victims:
                self._evictor.evict(
                    victims,
                    f"preempting allocations to fit node {node.id}, which became smaller",
                    f"Preempted because node {node.id} became smaller",
                )
            if not self.policy.refresh or not node.allocations:
                return
            if overuse(node) and self._partition.nodes.get(node.id) is node:
                self._shrunk[node] = self._partition.timers.after(
                    self.policy.refresh, lambda: self.resized(node)
                )
