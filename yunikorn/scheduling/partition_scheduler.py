"""Scheduler of one partition: its objects, policies, preemption and scheduling cycle."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import attrs

from yunikorn.accounting.books import Books
from yunikorn.accounting.partition import Partition
from yunikorn.api import Context, ResourceManager
from yunikorn.errors import StateError
from yunikorn.framework.instances import PluginInstances
from yunikorn.framework.kinds import ADMISSION, NODE_SORT, PERMIT, PREDICATE, PREEMPTION, QUOTA
from yunikorn.model.allocation import TerminationType, is_own
from yunikorn.model.application import Application
from yunikorn.model.node import Node
from yunikorn.resources import Resource, has_negative
from yunikorn.scheduling.admission.held_applications import HeldApplications
from yunikorn.scheduling.admission.permits import Permits
from yunikorn.scheduling.admission.queue_quotas import QueueQuotas
from yunikorn.scheduling.admission.submitted_applications import SubmittedApplications
from yunikorn.scheduling.admission.submitted_asks import SubmittedAsks
from yunikorn.scheduling.admission.wake_ups import WakeUps
from yunikorn.scheduling.admission.worker_questions import WorkerQuestions
from yunikorn.scheduling.application_admission import MaxAppsEvents
from yunikorn.scheduling.ask_admission import AS_REQUESTED as ASK_AS_REQUESTED
from yunikorn.scheduling.ask_admission import AskAdmission, ended_by
from yunikorn.scheduling.cycle import Cycle
from yunikorn.scheduling.decision_states import DecisionStates
from yunikorn.scheduling.existing_allocations import ExistingAllocations
from yunikorn.scheduling.node_orders import DEFAULT, NodeOrders
from yunikorn.scheduling.policies import Policies, QueuePolicies
from yunikorn.scheduling.preemption.preemption import Preemption
from yunikorn.scheduling.start_failures import StartFailures
from yunikorn.states import NODE, PARTITION
from yunikorn.text import listed

if TYPE_CHECKING:
    from collections.abc import Callable

    from yunikorn.accounting.state_reporter import StateReporter
    from yunikorn.config.queues_yaml import PartitionConfig
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.framework.registry import Registry
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.context import CoreContext, Timeouts
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.placement import PlacementChain
    from yunikorn.states import NodeEvent

NODE_SORT_TAG = "yunikorn.apache.org/node-sort-policy"
ACTIONS = {"drain": "DRAIN_NODE", "schedule": "DRAIN_TO_SCHEDULABLE"}
"""Node action of the RM, as named in messages, by state event."""
AS_REQUESTED = "allocation remove as per RM request"


class PartitionScheduler:
    """Applies the reports of an RM to one partition, and makes its scheduling decisions."""

    def __init__(
        self,
        name: str,
        config: PartitionConfig,
        registry: Registry,
        core_context: CoreContext,
        failures: PluginFailures,
        rm: ResourceManager | None = None,
        *,
        opening: bool = True,
        rm_id: str = "",
    ) -> None:
        """Create a partition; with `opening` its plugins are opened, and a failure raises `PluginError`."""
        self.config = config
        self._delays = core_context.timeouts
        self.failures = failures
        clock = core_context.clock
        wake = partial(core_context.wake_requests.add, rm_id, config.name)
        self.context = self._make_context(Context(config.name, clock.now, rm, wake=wake))
        self.partition = Partition(name, config.name, config.root, core_context)
        self.partition.timeouts = self._timeouts()
        calls = core_context.policy_calls
        self.questions: WorkerQuestions | None = None
        """Questions to policies that workers call; None if there are no workers."""
        if calls is not None:
            self.questions = WorkerQuestions(self.partition, calls, core_context.activate)
        self.decision_states = DecisionStates()
        shared = self.decision_states.of
        self.instances = PluginInstances(self.context, failures, calls=self.questions, shared=shared)
        plan = self.instances.plan(registry, opening=opening)
        self.policies = Policies.of(config, plan, self.partition.queues, clock, failures, rm)
        usage = core_context.owner_usage.enter(rm_id, config.name)
        self._leave_usage = partial(core_context.owner_usage.leave, rm_id, config.name)
        self.queue_policies = QueuePolicies(self.instances, registry, failures, self.partition, usage)
        self._is_open = False
        meter = self.partition.measurements
        self.orders = self._make_orders()
        self.decision_states.orders = self.orders
        self.cycle: Cycle = (Cycle if meter is None else meter.make_cycle)(self.partition, self.orders)
        self.planner = self.cycle.atomic.planner
        self.cycle.reservations.use(self.policies.reservations)
        self._measured = None if meter is None else meter.measure(self.cycle.decide, self._decide_after_all)
        victims = self.policies.preemption
        self.preemption = Preemption(self.partition, self.cycle, self.orders, config.preemption, victims)
        self.quotas = QueueQuotas(self.partition, self.instances, failures, self.preemption, self.questions)
        self.partition.changes.readers.queue_removed.append(self.quotas.forget)
        self.max_apps_events = MaxAppsEvents(self.partition)
        self.asks = AskAdmission(self.partition, self.planner, self.preemption, self.max_apps_events)
        self.submitted_asks = SubmittedAsks(self.partition, self.asks, self.questions)
        self.existing = ExistingAllocations(
            self.partition, self.preemption, lambda app_id: app_id in self.submitted, self.submitted_asks
        )
        self.held_applications = HeldApplications(
            self.partition, self.policies.admission, self._admitted, self.questions
        )
        self.submitted: SubmittedApplications = SubmittedApplications(
            self.partition,
            self.policies,
            self.existing,
            self.held_applications,
            self.quotas,
            on_new_queues=self.apply_queue_changes,
            node_order=self._node_order,
            workers=self.questions,
        )
        unschedulable = self.cycle.unschedulable_queue
        self.start_failures = StartFailures(self.partition, self.asks, self.preemption, unschedulable)
        self.permits = Permits(
            self.partition,
            self.asks,
            self.preemption,
            self.cycle.allocator,
            unschedulable,
            self.questions,
            self.decision_states,
        )
        self.wake_ups = WakeUps(clock, self.partition.timers, self._ask_again)
        self.state_reporter: StateReporter | None = None
        """Reports scheduling states to the RM; None if the RM has not asked for them."""

    def _make_context(self, context: Context) -> Context:
        """Return the context with what policies may ask; they may ask once everything is made."""
        return attrs.evolve(
            context,
            run_time=lambda task, age: self.policies.run_times.of(task, age),
            waiting=lambda: self.cycle.waiting(self.partition.queues.root),
            usable=lambda ask, node: self.policies.predicates.is_usable(ask, node),
            hypothetical=lambda: self.policies.predicates.is_hypothetical,
        )

    def _make_orders(self) -> NodeOrders:
        meter, partition = self.partition.measurements, self.partition
        make: Callable[..., NodeOrders] = NodeOrders if meter is None else meter.make_orders
        return make(
            self.policies.node_sorts,
            self.policies.predicates,
            partition.nodes,
            partition.pending_classes,
            partition.changes.readers,
            partition.clock,
            self.failures,
        )

    def open(self) -> None:
        """Open the plugins and order the queues; before this call the partition does not schedule."""
        self._is_open = True
        self._open_policies()
        self.apply_queue_changes()
        self._keep_books()

    def _open_policies(self) -> None:
        self.instances.use(self.policies.plan)
        self.queue_policies.registry = self.policies.plan.registry
        self.submitted.policies = self.policies
        self.planner.use(self.policies.topology, self.policies.gang_placement)
        self.policies.bind(workers=self.questions is not None)
        self.submitted_asks.use(self.policies.submit_ask)
        self.permits.use(self.policies.permits)
        self.cycle.atomic.backfills = self.policies.backfills

    def _keep_books(self) -> None:
        """Keep the books of the present policies, and fill those that are new."""
        before = self.orders.books
        keepers = [*self.policies.keepers(), *self.queue_policies.keepers()]
        if before is not None:
            failed = {id(one.plugin): one.failed for one in before.keepers}
            for keeper in keepers:
                keeper.failed = failed.get(id(keeper.plugin), "")
        books = Books(keepers, self.failures, self.instances.distrust) if keepers else None
        self.cycle.allocator.keep_books(books)
        self.orders.books = books
        self.orders.watch_domains()
        if books is not None:
            known = () if before is None else [keeper.plugin for keeper in before.keepers]
            books.fill(known, self.partition.nodes.values())

    def apply_queue_changes(self) -> None:
        """Give new and reconfigured queues the order and the quota policy named in their settings."""
        self.quotas.apply(self._order_changed_queues())
        if self.queue_policies.keepers_changed and self._is_open:
            self._keep_books()

    def _order_changed_queues(self) -> list[Queue]:
        """Give new and reconfigured queues the order named in their settings, and return these queues."""
        tree = self.partition.queues
        changed, tree.changed = tree.changed, []
        self.queue_policies.apply(changed)
        return changed

    @property
    def name(self) -> str:
        """Name of the partition in the configuration."""
        return self.config.name

    @property
    def placement(self) -> PlacementChain:
        """Chain of placement rules."""
        return self.policies.placement

    def decide(self) -> Allocation | None:
        """Place the next request; None when nothing can be placed now."""
        if self.policies.predicates.changes_classes:
            self._reclassify()
        if self._measured is not None:
            return self._measured.decide()
        return self.cycle.decide() or self._decide_after_all()

    def _decide_after_all(self) -> Allocation | None:
        """Preempt if due, and report scheduling states; returns an allocation that preemption allowed."""
        allocation: Allocation | None = None
        if self.quotas.watching and self.quotas.review():
            allocation = self.cycle.decide()
            if allocation is not None:
                return allocation
        while allocation is None:
            asked = self.permits.review()
            if not asked and not self.partition.accounting.changed_nodes:
                break
            # A permitted placeholder can be replaced, and preemption reserves a node, which may cancel the
            # reservation of another node.
            allocation = self.cycle.decide()
            if not asked:
                break
        if allocation is None:
            if self.decision_states.states:
                self.decision_states.forget()
            if self.partition.changes.events.wants_waiting:
                self.max_apps_events.review()
            if self.state_reporter is not None:
                self.state_reporter.review()
        return allocation

    def decide_up_to(self, most: int | None) -> int:
        """Place up to `most` requests, or all that can be placed now; returns the number of allocations."""
        if self.policies.predicates.changes_classes:
            self._reclassify()
        if self._measured is not None:
            return self._measured.decide_up_to(most)
        taken, decide = 0, self.cycle.decide
        while taken != most and (decide() or self._decide_after_all()):
            taken += 1
        return taken

    def report_states(self, reporter: StateReporter | None) -> None:
        """Report the scheduling states of requests by `reporter` from now on; None stops reporting."""
        if self.state_reporter is not None:
            self.state_reporter.stop()
        self.state_reporter = self.partition.changes.state_reader = reporter

    # -- applications -------------------------------------------------------------------------------

    def _admitted(self, app: Application) -> None:
        """Notify those that decide on requests of an application that is no longer held."""
        self.cycle.replacement.resume()
        if app.not_started and self.partition.changes.events.enabled:
            self.max_apps_events.watch(app)
        for ask in app.asks.values():
            if ask.pending:
                self.preemption.notice(ask)

    def _node_order(self, app: Application, of_queue: str) -> str:
        chosen = app.tags.get(NODE_SORT_TAG, "")
        if chosen and chosen not in self.orders.policies:
            known = listed(name for name in self.orders.policies if name)
            message = f"unknown node sort policy '{chosen}' in tag {NODE_SORT_TAG}; known: {known}"
            self.partition.changes.noted(app, "UnknownNodeSortPolicy", message)
            chosen = ""
        chosen = chosen or of_queue
        return chosen if chosen in self.orders.policies else DEFAULT

    def knows(self, app_id: str) -> bool:
        """Return True if this application exists, is waiting, has ended, or has awaited allocations."""
        holders = (self.partition.applications, self.submitted, self.partition.ended, self.existing.awaited)
        return any(app_id in holder for holder in holders)

    def remove_application(self, app_id: str) -> None:
        """Remove an application at the request of the RM; unknown applications are ignored."""
        app, message = self.partition.applications.get(app_id), f"Application {app_id} Removed"
        self._let_others_pass()
        if app is not None:
            self.submitted_asks.withdraw(app_id)
            self.partition.remove_application(app, message)
        else:
            if app_id in self.submitted:
                self.submitted.withdraw(app_id)
                self.existing.occupied.release(app_id, "", "", message)
            self.existing.awaited.release(app_id, "", "", message)

    # -- allocations --------------------------------------------------------------------------------

    def release(
        self, app_id: str, uuid: str, key: str, termination: TerminationType, message: str = ""
    ) -> bool:
        """End allocations of an application, by uuid, by key or all; without uuid also asks.

        Without an application, `key` names a foreign allocation. A release requested by the RM is confirmed,
        with the RM's message if given; a confirmation by the RM is not answered. Requests of allocations that
        the RM could not start wait again. Returns True if an allocation ended. Unknown allocations are
        answered and counted (see `Partition.unknown_releases`).
        """
        own = is_own(termination)
        confirmation = message or AS_REQUESTED
        app = self.partition.applications.get(app_id)
        if app is None:
            if not app_id and self.partition.foreign.release(key):
                return True
            if app_id and self.existing.awaited.release(app_id, uuid, key, confirmation if own else ""):
                return True
            self.partition.answer_unknown_release(app_id, uuid, key, confirmed=not own)
            return False
        failed, waited = termination == TerminationType.SCHEDULING_FAILED_ON_RM, False
        if own and not uuid and not failed:
            waited = self.submitted_asks.end(
                app_id, key, TerminationType.STOPPED_BY_RM, message or ASK_AS_REQUESTED
            )
            self.partition.held_placements.take_back_of(app, key)
        found, asks = ended_by(app, uuid, key, termination)
        if not (found or waited) and (uuid or (key and key not in app.asks)):
            self.partition.answer_unknown_release(app_id, uuid, key, confirmed=not own)
        if failed:
            self.start_failures.take(found, message)
            return bool(found)
        self._let_others_pass()
        for ask in asks:
            self.partition.end_ask(ask, TerminationType.STOPPED_BY_RM, message or ASK_AS_REQUESTED)
        for allocation in found:
            if own:
                self.partition.release(allocation, TerminationType.STOPPED_BY_RM, confirmation)
            else:
                self.partition.accounting.release(allocation, termination, message)
        return bool(found)

    def _let_others_pass(self) -> None:
        """Count a withdrawal as a change if others may have waited behind what is withdrawn."""
        self.partition.accounting.change_count += self.policies.backfills

    # -- nodes --------------------------------------------------------------------------------------

    def add_node(
        self,
        node_id: str,
        capacity: Resource,
        attributes: Mapping[str, str],
        occupied: Resource,
        *,
        schedulable: bool = True,
    ) -> Node | None:
        """Add a node, or reject it with a reason."""
        reason = self._node_refusal(node_id, capacity, occupied)
        if reason:
            self.partition.rejected_nodes += 1
            self.partition.changes.node_rejected(node_id, reason)
            return None
        node = Node(node_id, capacity, attributes, occupied)
        if not schedulable:
            self.partition.move_node(node, "drain")
        if node_id in self.partition.drained_by_operator:
            node.drained_by_operator = True
            NODE.fire(node, "drain")
        self.partition.ask_classes.forget_node(node_id)
        self._classify(node)
        self.partition.add_node(node)
        if self.orders.books is not None:
            self.orders.books.node_added(node)
        return node

    def _classify(self, node: Node) -> None:
        """Compute the classes and domains of a node, as predicates and the topology declare them."""
        self.policies.topology.join(node)
        self.cycle.atomic.domains.joined(node)
        predicates = self.policies.predicates
        if not predicates and not node.domains:
            node.classes = ()
            return
        node.classes = predicates.node_classes(node)
        if predicates.has_domains or node.domains:
            predicates.join_domains(node)
            node.unfit = 0

    def _node_refusal(self, node_id: str, capacity: Resource, occupied: Resource) -> str:
        if reason := self.partition.closed_to("nodes"):
            return reason
        if not node_id:
            return "a node needs an id"
        if node_id in self.partition.nodes:
            return f"partition {self.name} has an existing node {node_id}, node name must be unique"
        if has_negative(capacity) or has_negative(occupied):
            return "node has negative resources"
        return ""

    def remove_node(self, node: Node) -> None:
        """Remove a node with all its allocations."""
        self.existing.awaited.forget(node)
        self.partition.remove_node(node)
        self.policies.topology.leave(node)
        self.cycle.atomic.domains.joined(node)
        if self.orders.books is not None:
            self.orders.books.node_removed(node)
            self.policies.predicates.leave_domains(node)

    def update_node(
        self,
        node: Node,
        capacity: Resource | None,
        occupied: Resource | None,
        attributes: Mapping[str, str] | None,
        move: NodeEvent | None = None,
    ) -> str:
        """Change a node, and its state by the event `move`; returns the reason for a rejection, or "".

        None leaves that part of the node unchanged. A rejected change has no effect.
        """
        if any(amount is not None and has_negative(amount) for amount in (capacity, occupied)):
            return "node has negative resources"
        if move:
            try:
                self.partition.move_node(node, move)
            except StateError:
                state = "drained by an operator only" if node.drained_by_operator else node.state
                return f"{node.label} is {state}: {ACTIONS[move]} is not possible"
            if capacity is None and occupied is None and attributes is None:
                return ""
        if attributes is not None and attributes != node.attributes:
            self._relabel(node, attributes)
        self.partition.update_node(node, capacity, occupied, attributes)
        self.preemption.resized(node)
        return ""

    def _relabel(self, node: Node, attributes: Mapping[str, str]) -> None:
        """Change the attributes of a node; its tasks leave the books before, and enter them again after."""
        books = self.orders.books
        # Predicates have accepted the node as it was.
        self.partition.held_placements.take_back_on(node)
        if books is not None:
            books.node_removed(node)
            self.policies.predicates.leave_domains(node)
        node.attributes = MappingProxyType(dict(attributes))
        self._classify(node)
        if books is not None:
            books.node_added(node)
        self._end_refused_reservations(node)

    def _end_refused_reservations(self, node: Node) -> None:
        """End the reservations of a node for requests that predicates refuse there now."""
        for ask in list(node.reservations):
            # The node would be kept for a request that it may not run.
            if ask.gang is None and self.policies.predicates.judge_reservation(ask, node) is not None:
                self.partition.accounting.node_reservations.unreserve(ask)

    # -- configuration ------------------------------------------------------------------------------

    def _timeouts(self) -> Timeouts:
        """Return the timeouts of the core, overridden by those of the partition."""
        return attrs.evolve(self._delays, **self.config.periods)  # type: ignore[arg-type]

    def reconfigure(self, config: PartitionConfig, policies: Policies) -> None:
        """Apply a new configuration, whose policies have already been created."""
        partition = self.partition
        classified = bool(self.policies.predicates or policies.predicates or policies.topology.trees)
        policies.run_times.take_over(self.policies.run_times)
        self.policies, self.config = policies, config
        partition.timeouts = self._timeouts()
        self._open_policies()
        for node in partition.nodes.values() if classified else ():
            self._classify(node)
        self.orders.replace(policies.node_sorts, policies.predicates)
        quotas = self.preemption.quotas(config.preemption)
        partition.queues.configure(config.root)
        if policies.plan.replaced:
            replaced = {id(one.plugin) for one in policies.plan.replaced}
            tree = partition.queues
            tree.changed += [
                queue
                for queue in tree
                if all(queue is not other for other in tree.changed) and id(queue.order.policy) in replaced
            ]
        policies.plan.forget_others()
        self._order_changed_queues()
        planned = {id(one.plugin) for one in policies.plan.instances}
        self.queue_policies.keep_only(planned | {id(queue.order.policy) for queue in partition.queues})
        self._keep_books()
        if self.questions is not None:
            # They were questions to the policies before; those that follow ask the new ones.
            self.questions.forget_questions()
        self.quotas.reconfigure(named=policies.names_quotas)
        partition.usage.rebuild(partition.applications.values(), partition.queues)
        if self.state_reporter is not None:
            self.state_reporter.recount()
        for app in partition.applications.values():
            self._reconsider(app)
            self.cycle.atomic.domains.settle(app)
        partition.reconsider()
        self.cycle.reservations.use(policies.reservations)
        self.preemption.reconfigure(quotas, config.preemption, policies.preemption)
        self.held_applications.reconfigure(policies.admission)
        self.submitted.check_again()
        self.submitted_asks.check_again()
        self.permits.ask_all()
        policies_of_queues = {id(queue.order.policy) for queue in partition.queues} | self.quotas.plugins
        self.instances.close_unused([one for one in self.instances if id(one.plugin) in policies_of_queues])

    def _reclassify(self) -> None:
        """Move the pending asks whose class a plugin has changed, and make them schedulable."""
        if not self.policies.predicates.classes_changed():
            return
        for app in self.partition.applications.values():
            moved = False
            for ask in [] if app.queue is None else list(app.asks.values()):
                moved |= self.asks.reclassify(ask)
            if moved and app.whole_gang is not None:
                self.partition.gangs.formation.form(app.whole_gang)

    def _reconsider(self, app: Application) -> None:
        """Recompute the ask classes of an application, and make its pending asks schedulable."""
        queue = app.queue
        if queue is None:
            return
        app.node_order = self._node_order(app, queue.settings.node_sort)
        self.cycle.backoff.wake(app)
        for ask in list(app.asks.values()):
            if ask.pending:
                reshape = self.partition.accounting.pending_accounting.reshape
                reshape(ask, self.asks.pending_class_of(ask))
        if app.whole_gang is not None:
            self.partition.gangs.formation.form(app.whole_gang)

    def _ask_again(self, kind: str) -> None:
        """Forget what the policies of a kind have answered, so that they are asked again where it matters."""
        # Preemption, reservations and refused requests are tried again only after a change.
        self.partition.accounting.change_count += 1
        predicates = self.policies.predicates
        if kind == PREDICATE.id:
            predicates.ask_again()
            self.planner.forget()
        if kind in (PREDICATE.id, NODE_SORT.id):
            self.orders.replace(self.policies.node_sorts, predicates)
            self.orders.review_domains()
        elif kind == QUOTA.id:
            self.quotas.ask_all()
        elif kind == ADMISSION.id:
            self.held_applications.ask_now()
        elif kind == PERMIT.id:
            self.permits.ask_now()
        elif kind == PREEMPTION.id:
            self.preemption.ask_again()
        self.partition.reconsider()
        if kind == PREDICATE.id:
            for node in list(self.partition.accounting.node_reservations.nodes):
                self._end_refused_reservations(node)

    # -- the end ------------------------------------------------------------------------------------

    def close(self, reason: str) -> None:
        """Remove the partition: all applications fail, all nodes are removed."""
        partition = self.partition
        PARTITION.fire(partition, "remove")
        if not self._is_open:
            self.policies.plan.discard()
            partition.timers.close()
            self._leave_usage(was_open=False)
            return
        self.submitted.close(reason)
        self.submitted_asks.close(reason)
        for app in list(partition.applications.values()):
            partition.fail_application(app, reason)
        for node in list(partition.nodes.values()):
            self.remove_node(node)
        if self.state_reporter is not None:
            self.state_reporter.stop()
        if self.questions is not None:
            self.questions.close()
        self.instances.close()
        partition.timers.close()
        self._leave_usage(was_open=True)
