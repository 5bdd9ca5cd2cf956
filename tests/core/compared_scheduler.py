"""A scheduler and its slow reference side by side: every operation is applied to both and compared."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from tests.core.accounting_checks import check_accounting, check_reservations
from tests.core.kit import RM, Decision, document
from tests.core.predicates import CHECKS, plugins
from tests.core.reference import Ask, Node, Reference
from yunikorn.config.load import check_config
from yunikorn.errors import ConfigError
from yunikorn.interface.messages import Allocation, NodeAction, PreemptionPolicy
from yunikorn.model.context import Timeouts
from yunikorn.resources import Resource

Amounts = Mapping[str, int]
Texts = Mapping[str, str]
PROTECTED = PreemptionPolicy(allow_preempt_self=False)


class ComparedScheduler:
    """Both sides of the comparison; every decision must equal that of the reference."""

    predicates: Sequence[str] = ("zone",)
    timeouts = Timeouts(reservation=None)

    def __init__(self, config: dict[str, Any]) -> None:
        config = self._valid(config)
        self.rm = RM(self._text(config), plugins(), timeouts=self.timeouts)
        # The reference has no preemption, which has tests of its own.
        self.rm.policy = PROTECTED
        self.reference = Reference(config, [CHECKS[name] for name in self.predicates])
        self.submitted = self.placed = 0

    def _valid(self, config: dict[str, Any]) -> dict[str, Any]:
        """Return the configuration; quotas and limits are left out where they contradict each other."""
        tried = config
        for keys in ((), ("resources",), ("maxapplications",), ("maxapplications", "resources"), ("limits",)):
            tried = copy.deepcopy(config)
            _strip(tried["queues"][0], keys)
            if check_config(self._text(tried), plugins()).valid:
                return tried
        _strip(tried["queues"][0], ("maxapplications", "resources"))
        return tried

    def _text(self, config: dict[str, Any]) -> str:
        return document({**config, "preemption": {"enabled": False}, "predicates": list(self.predicates)})

    # -- nodes ----------------------------------------------------------------------------------------

    def add_node(self, node_id: str, capacity: Amounts, attributes: Texts) -> None:
        self.rm.take_response()
        self.rm.node(node_id, attributes, capacity=capacity)
        known = node_id in self.reference.nodes
        assert bool(self.rm.take_response().rejected_nodes) == known
        if not known:
            self.reference.nodes[node_id] = Node(node_id, capacity, {}, attributes)

    def resize_node(self, node_id: str, capacity: Amounts) -> None:
        self.reference.nodes[node_id].capacity = capacity
        self.rm.change_node(node_id, capacity=capacity)

    def occupy_node(self, node_id: str, occupied: Amounts) -> None:
        self.reference.nodes[node_id].occupied = occupied
        self.rm.change_node(node_id, occupied=occupied)

    def relabel_node(self, node_id: str, attributes: Texts) -> None:
        self.reference.nodes[node_id].attributes = attributes
        self.rm.change_node(node_id, attributes=attributes)

    def move_node(self, node_id: str, action: NodeAction) -> None:
        node = self.reference.nodes[node_id]
        resume = action == NodeAction.DRAIN_TO_SCHEDULABLE
        self.rm.take_response()
        self.rm.change_node(node_id, action)
        assert bool(self.rm.take_response().failed_node_updates) == (resume and node.schedulable)
        node.schedulable = resume

    def remove_node(self, node_id: str) -> None:
        self.reference.remove_node(node_id)
        self.rm.change_node(node_id, NodeAction.DECOMMISSION)

    def recover(self, node_id: str, capacity: Amounts, app_id: str, uuid: str, amount: Amounts) -> None:
        """Register a node with an allocation, whose uuid may equal one that the scheduler assigns."""
        if node_id in self.reference.nodes:
            return
        existing = Allocation(uuid.partition("#")[0], app_id, uuid, node_id, Resource(amount))
        existing.preemption_policy = PROTECTED
        self.rm.take_response()
        self.rm.node(node_id, existing=[existing], capacity=capacity)
        node = self.reference.nodes[node_id] = Node(node_id, capacity, {}, {})
        refused = self.rm.take_response().rejected_allocations
        assert bool(refused) == (uuid in self.rm.running)
        if not refused:
            self.rm.running[uuid] = existing
            self.reference.recover(app_id, node, uuid, amount)

    # -- applications, asks, releases -------------------------------------------------------------------

    def submit(
        self, path: str, tags: Texts, user: str, groups: Sequence[str], *, again: bool = False
    ) -> None:
        """Submit an application; with `again`, under the id of the last one."""
        self.submitted += not again
        app_id = f"app{self.submitted}"
        self.rm.take_response()
        self.rm.app_tagged(app_id, path, tags, user=user, groups=groups)
        accepted = self.reference.submit(app_id, path, tags, user, groups)
        received = self.rm.take_response()
        assert [one.application_id for one in received.accepted_applications] == [app_id] * accepted
        assert [one.application_id for one in received.rejected_applications] == [app_id] * (not accepted)

    def remove_app(self, app_id: str) -> None:
        self.rm.remove_app(app_id)
        self.reference.remove_app(app_id)

    def ask(self, app_id: str, key: str, count: int, priority: int, amount: Amounts, tags: Texts) -> None:
        self.rm.ask(app_id, key, count, priority=priority, tags=tags, resource=amount)
        self.reference.ask(app_id, key, count, priority, tags, amount)

    def release_asks(self, app_id: str, key: str) -> None:
        self.rm.release_ask(app_id, key)
        self.reference.release_asks(app_id, key)

    def release(self, uuid: str) -> None:
        app_id = self.rm.running[uuid].application_id
        self.rm.release(app_id, uuid)
        self.reference.release(app_id, uuid)
        assert uuid not in self.rm.running

    # -- time and configuration -----------------------------------------------------------------------

    def pass_time(self, seconds: int) -> None:
        self.reference.pass_time(seconds)
        self.rm.pass_time(seconds)

    def reload(self, config: dict[str, Any], predicates: Sequence[str] | None = None) -> None:
        """Reload a configuration; a refusal is expected only for a queue that would change its type."""
        before = self.predicates
        self.predicates = before if predicates is None else predicates
        config = self._valid(config)
        reason = ""
        try:
            self.rm.reload(self._text(config))
        except ConfigError as error:
            reason = str(error)
        if reason:
            assert "cannot change its type" in reason
            self.predicates = before
        else:
            self.reference.configure(config)
            self.reference.checks = [CHECKS[name] for name in self.predicates]

    # -- decisions --------------------------------------------------------------------------------------

    def schedule(self, most: int) -> None:
        """Take up to `most` decisions one by one."""
        for _ in range(most):
            if not self._compare(self.rm.schedule(1)):
                self.expect_nothing()
                return

    def schedule_all(self) -> None:
        self.rm.take_response()
        self._compare(self.rm.schedule())
        self.expect_nothing()

    def _compare(self, decisions: list[Decision]) -> bool:
        made = [one for response in self.rm.responses for one in response.new_allocations]
        uuids = [one.uuid for one in made[len(made) - len(decisions) :]]
        for decision, uuid in zip(decisions, uuids, strict=True):
            ask, node = self.choose(decision)
            assert (ask.app.id, ask.key, node.id) == decision
            self.reference.place(ask, node, uuid)
            self.placed += 1
        return bool(decisions)

    def choose(self, decision: Decision) -> tuple[Ask, Node]:
        """Return the decision of the reference, for comparison with `decision`."""
        found = next(self.reference.candidates(), None)
        assert found is not None, f"{decision} was decided, although nothing can be placed"
        return found

    def expect_nothing(self) -> None:
        """Assert that the reference can place nothing more."""
        left = [(ask.app.id, ask.key, node.id) for ask, node in self.reference.candidates()]
        assert left == [], f"could be placed, and was not: {left}"

    def check(self) -> None:
        """Assert that the accounting is right and no plugin failed."""
        assert self.rm.failures() == []
        check_accounting(self.rm, self.reference)


class RetryingComparedScheduler(ComparedScheduler):
    """Predicates do not declare all their inputs, so the scheduler retries with a back-off.

    During a back-off other asks may overtake, but only the asks that back off. In the end none may remain.
    """

    predicates = ("zone", "crowd", "disk")

    def schedule_all(self) -> None:
        # One by one, because the asks in back-off can be determined only at the moment of a decision.
        self.rm.take_response()
        self.schedule(10_000)

    def choose(self, decision: Decision) -> tuple[Ask, Node]:
        for ask, node in self.reference.candidates():
            if (ask.app.id, ask.key, node.id) == decision:
                return ask, node
            assert self._waits_for_a_retry(ask), f"{ask.app.id} {ask.key} was passed over for {decision}"
        raise AssertionError(f"{decision} was decided, although it cannot be placed there")

    def _waits_for_a_retry(self, ask: Ask) -> bool:
        real = self.rm.at_work().partition.applications[ask.app.id].asks[ask.key]
        return real.unschedulable or real.ask_class.unschedulable


class ReservingComparedScheduler(ComparedScheduler):
    """Compared schedulers with reservations, which hide nodes from all other asks.

    Decisions may differ from the reference but must be allowed. Remaining asks must fit no unreserved node.
    """

    timeouts = Timeouts()

    def choose(self, decision: Decision) -> tuple[Ask, Node]:
        app_id, key, node_id = decision
        ask = self.reference.apps[app_id].asks[key]
        nodes = [node for node in self.reference.nodes_for(ask) if node.id == node_id]
        assert nodes, f"{decision} was decided, although it is not allowed"
        return ask, nodes[0]

    def expect_nothing(self) -> None:
        nodes = self.rm.at_work().partition.nodes
        left = [
            (ask.app.id, ask.key, node.id)
            for ask, _ in self.reference.candidates()
            for node in self.reference.nodes_for(ask)
            if all((one.app.id, one.key) == (ask.app.id, ask.key) for one in nodes[node.id].reservations)
        ]
        assert left == [], f"could be placed, and was not: {left}"

    def check(self) -> None:
        super().check()
        check_reservations(self.rm)


def _strip(queue: dict[str, Any], keys: Sequence[str]) -> None:
    for key in keys:
        queue.pop(key, None)
    for child in queue.get("queues", ()):
        _strip(child, keys)
