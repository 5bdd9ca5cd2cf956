"""Everything that takes capacity back in one partition, as the partition at work drives it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from yunikorn.scheduling.preemption.preemptor import Preemptor
from yunikorn.scheduling.preemption.quota_change import PreviousQuota, QuotaChange
from yunikorn.scheduling.preemption.shrunk_node import victims_of

if TYPE_CHECKING:
    from yunikorn.config.schema import PreemptionConfig
    from yunikorn.objects.application import Application
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.node import Node
    from yunikorn.objects.partition import Partition
    from yunikorn.objects.queue import Queue
    from yunikorn.scheduling.cycle import Cycle
    from yunikorn.scheduling.node_orders import NodeOrders


class Preemption:
    """For requests, after changes of quotas, and on nodes that shrank."""

    def __init__(
        self, partition: Partition, cycle: Cycle, orders: NodeOrders, config: PreemptionConfig
    ) -> None:
        self._partition = partition
        self._config = config
        self._preemptor = Preemptor(partition, cycle, orders, config)
        self._evictor = self._preemptor.evictor
        self._quotas = QuotaChange(partition, self._evictor, enabled=config.quota_preemption_enabled)

    def notice(self, ask: Ask) -> None:
        """A request starts to wait, or has changed."""
        self._preemptor.notice(ask)

    def look(self) -> None:
        """Nothing can be placed now: preempt where that is due."""
        self._preemptor.look()

    def is_due(self) -> bool:
        """Whether another look is due at this instant."""
        return self._preemptor.is_due()

    def next_attempt_at(self, ask: Ask) -> int | None:
        """When preemption is first tried for a waiting request (ns); None when it is not."""
        return self._preemptor.next_attempt_at(ask)

    def quotas(self, config: PreemptionConfig) -> dict[Queue, PreviousQuota]:
        """The quotas before the configuration changes, for `reconfigure` with the same `config`."""
        return self._quotas.before(enabled=config.quota_preemption_enabled)

    def reconfigure(self, before: Mapping[Queue, PreviousQuota], config: PreemptionConfig) -> None:
        """The queues are configured anew."""
        self._config = config
        self._preemptor.reconfigure(config)
        self._quotas.after(before, enabled=config.quota_preemption_enabled)

    def booked(self, app: Application) -> None:
        """Something of an application was booked without asking quotas."""
        if self._config.quota_preemption_enabled:
            for queue in reversed(app.chain):
                self._quotas.exceeded(queue)

    def resized(self, node: Node) -> None:
        """The room of a node changed."""
        if self._config.shrunk_nodes and any(amount < 0 for amount in node.available.values()):
            victims = victims_of(node)
            if victims:
                self._evictor.evict(
                    victims,
                    f"preempting allocations to fit node {node.id}, which became smaller",
                    f"Preempted because node {node.id} became smaller",
                )
