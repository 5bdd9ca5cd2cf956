"""A partition at work: its objects, its policies and its cycle, as the interface drives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from yunikorn.api import Context, ResourceManager
from yunikorn.clock import SECOND
from yunikorn.objects.application import Application
from yunikorn.objects.ask import INT32_MAX, INT32_MIN, Ask
from yunikorn.objects.gang import TIME_DIGITS
from yunikorn.objects.newcomers import Newcomers
from yunikorn.objects.node import Node
from yunikorn.objects.outbox import AskRelease, Refusal
from yunikorn.objects.partition import Partition
from yunikorn.objects.run_limit import RunLimit
from yunikorn.objects.termination import TerminationType
from yunikorn.objects.terms import Terms
from yunikorn.resources import NOTHING, Resource, has_negative, is_zero
from yunikorn.scheduling.cycle import Cycle
from yunikorn.scheduling.existing import ExistingAllocations
from yunikorn.scheduling.gang_admission import gang_refusal, make_gang, report_oversize
from yunikorn.scheduling.holds import Holds
from yunikorn.scheduling.namespace_quota import apply_namespace_quota
from yunikorn.scheduling.node_orders import DEFAULT, NodeOrders
from yunikorn.scheduling.outstanding import Outstanding
from yunikorn.scheduling.policies import Policies
from yunikorn.scheduling.preemption.preemption import Preemption
from yunikorn.scheduling.queue_policies import Made, QueuePolicies
from yunikorn.scheduling.user_groups import is_forced
from yunikorn.states import ACCEPTED, ACTIVE, FAILING, PARTITION, RUNNING, STARTING

if TYPE_CHECKING:
    from yunikorn.config.schema import PartitionConfig
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.environment import Environment
    from yunikorn.objects.periods import Periods
    from yunikorn.objects.shape import Shape
    from yunikorn.registry import Registry
    from yunikorn.scheduling.faults import FaultLog
    from yunikorn.scheduling.placement import PlacementChain

NODE_SORT_TAG = "yunikorn.apache.org/node-sort-policy"
REQUIRED_NODE_TAG = "yunikorn.apache.org/requiredNode"
CREATION_TAG = "creationTime"
TAKING = frozenset({ACCEPTED, STARTING, RUNNING})
"""States of an application that a new ask does not change."""
AS_REQUESTED = "allocation remove as per RM request"


@attrs.define
class Submission:
    """An application as it is submitted."""

    id: str
    queue_name: str = ""
    user: str = ""
    groups: Sequence[str] = ()
    tags: Mapping[str, str] = attrs.field(factory=dict)
    run_limit: int = 0
    """How long it may run (ns), or its placeholders are held; 0 is without a limit, or the default."""
    gang: Resource = NOTHING
    """What the tasks of its gang take together; nothing if it is none."""
    gang_style: str = ""


@attrs.define
class Demand:
    """An ask as it is made: `count` times `resource`."""

    key: str
    resource: Resource
    count: int = 1
    priority: int = 0
    tags: Mapping[str, str] = attrs.field(factory=dict)
    originator: bool = False
    may_preempt: bool = True
    may_be_preempted: bool = True
    run_limit: int = 0
    """How long each of its allocations may run (ns); 0 is for ever."""
    task_group: str = ""
    placeholder: bool = False
    """Whether it keeps room for its task group; without one the flag is ignored."""


class PartitionScheduler:
    """Takes in what an RM reports of one partition, and takes its decisions."""

    def __init__(
        self,
        name: str,
        config: PartitionConfig,
        registry: Registry,
        environment: Environment,
        faults: FaultLog,
        rm: ResourceManager | None = None,
    ) -> None:
        self.config = config
        self._delays = environment.periods
        self.faults = faults
        clock = environment.clock
        self.context = Context(config.name, clock.now, rm)
        self.partition = Partition(name, config.root, environment)
        self.partition.periods = self._periods()
        tree = self.partition.queues
        self.policies = Policies(config, registry, tree, clock, faults)
        self.queue_policies = QueuePolicies(registry, faults, self.context)
        made = self.queue_policies.prepare(config.root, registry)
        self.orders = NodeOrders(
            self.policies.node_sorts, self.partition.nodes.values, self.partition.claims, clock, faults
        )
        self.cycle = Cycle(self.partition, self.orders, self.policies.predicates)
        self.preemption = Preemption(self.partition, self.cycle, self.orders, config.preemption)
        self.existing = ExistingAllocations(self)
        self.holds = Holds(self.partition)
        self.outstanding: Outstanding | None = None
        """Tells the RM how its requests fare, if it wants to know."""
        self.policies.open(self.context, self.faults)
        self.queue_policies.use(registry, made)
        self.apply_queue_changes()

    def apply_queue_changes(self) -> None:
        """Give new and reconfigured queues the orders that their settings name."""
        tree = self.partition.queues
        changed, tree.changed = tree.changed, []
        self.queue_policies.apply(changed)

    @property
    def name(self) -> str:
        """The partition's name in the configuration."""
        return self.config.name

    @property
    def placement(self) -> PlacementChain:
        """The chain of placement rules."""
        return self.policies.placement

    def decide(self) -> Allocation | None:
        """Place the next request; None when nothing can be placed now."""
        allocation = self.cycle.decide()
        if allocation is None:
            self.preemption.look()
            if self.partition.ledger.changed_nodes:
                # It took a node for a request: another that was kept until then is free.
                allocation = self.cycle.decide()
        if allocation is None:
            if self.partition.journal.listening:
                self.holds.review()
            if self.outstanding is not None:
                self.outstanding.look()
        return allocation

    def decide_up_to(self, most: int | None) -> int:
        """Place up to `most` requests, or all that can be placed now; returns how many."""
        taken = 0
        while taken != most and self.decide() is not None:
            taken += 1
        return taken

    def report_states(self, *, wanted: bool = True) -> None:
        """Keep track of how requests fare, from now on, for an RM that wants to know; or not any more."""
        if wanted == (self.outstanding is not None):
            return
        ledger = self.partition.ledger
        if self.outstanding is not None:
            self.outstanding.stop()
        self.outstanding = ledger.watcher = ledger.kept.watcher = Outstanding(self) if wanted else None

    # -- applications -------------------------------------------------------------------------------

    def submit(self, submission: Submission) -> Application:
        """Place an application and take it in, or reject it with the reason (facts §4.5)."""
        partition = self.partition
        app = Application(
            submission.id,
            submission.user,
            submission.groups,
            submission.queue_name,
            submission.tags,
            submitted=partition.clock.now(),
            arrival=partition.next_arrival(),
            listener=partition.state_changed,
        )
        partition.journal.record("APP", app.id, change="ADD", detail="APP_NEW")
        app.forced = is_forced(submission.tags)
        if not is_zero(submission.gang):
            make_gang(app, submission.gang, submission.gang_style, submission.run_limit, partition)
        elif submission.run_limit:
            app.run_limit = RunLimit(submission.run_limit)
        reason = self._take_in(app)
        if reason:
            partition.reject_application(app, reason)
        else:
            self.existing.arrived(app)
        return app

    def _take_in(self, app: Application) -> str:
        partition = self.partition
        if partition.state != ACTIVE:
            return f"partition {self.name} is {partition.state.lower()}: it takes no new application {app.id}"
        if app.id in partition.applications:
            return f"application {app.id} exists already in partition {self.name}"
        owner = self.policies.users.identify(app.user, app.groups, forced=app.forced)
        if owner.refusal:
            return owner.refusal
        app.user, app.groups = owner.user, owner.groups
        placement = self.policies.placement.place(app)
        if not placement.queue:
            return f"failed to place application {app.id}: {placement.reason}"
        queue = partition.queue(placement.queue)
        if queue is None:
            made = partition.queues.create(placement.queue, app.user, app.groups)
            if isinstance(made, str):
                return f"failed to place application {app.id}: {made}"
            queue = made
            self.apply_queue_changes()
        if not queue.is_leaf:
            return f"failed to place application {app.id}: queue {queue.path} is not a leaf queue"
        if not queue.managed:
            apply_namespace_quota(queue, app.tags)
        reason = gang_refusal(app, queue)
        if reason:
            partition.queues.check_empty(queue)
            return reason
        app.node_order = self._node_order(app, queue.settings.node_sort)
        partition.add_application(app, queue)
        report_oversize(app, partition)
        return ""

    def _node_order(self, app: Application, of_queue: str) -> str:
        chosen = app.tags.get(NODE_SORT_TAG, "")
        if chosen and chosen not in self.orders.policies:
            known = ", ".join(name for name in self.orders.policies if name) or "none"
            message = f"unknown node sort policy '{chosen}' in tag {NODE_SORT_TAG}; known: {known}"
            self.partition.journal.record("APP", app.id, message=message)
            chosen = ""
        chosen = chosen or of_queue
        return chosen if chosen in self.orders.policies else DEFAULT

    def remove_application(self, app_id: str) -> None:
        """The RM takes an application away; unknown ones are ignored (facts §6.7)."""
        app, message = self.partition.applications.get(app_id), f"Application {app_id} Removed"
        if app is not None:
            self.partition.remove_application(app, message)
        else:
            self.existing.awaited.release(app_id, "", "", message)

    # -- asks ---------------------------------------------------------------------------------------

    def ask(self, app_id: str, demand: Demand) -> None:
        """Take in an ask, or change the one with the same key; refuse it with the reason (facts §10.5)."""
        app = self.partition.applications.get(app_id)
        reason = self.closed_to("requests") or self._refusal(app, app_id, demand)
        if reason or app is None:
            self.partition.outbox.rejected_asks.append(Refusal(demand.key, reason, app_id))
            return
        known = app.asks.get(demand.key)
        if known is not None and (reason := _other_part(known, demand)):
            self.partition.outbox.rejected_asks.append(Refusal(demand.key, reason, app_id))
            return
        if known is not None:
            self._change(known, demand)
            self.preemption.notice(known)
            return
        ask = self._new_ask(app, demand)
        self._classify(ask)
        self.partition.ledger.add_ask(ask)
        if app.fresh and self.partition.journal.listening:
            self.holds.watch(app)
        self.preemption.notice(ask)

    def newcomers(self, app_id: str) -> Newcomers | None:
        """Where plain asks of an application may gather, to be booked by `book`.

        None where `ask` has to look at them one by one: it has not begun, is a gang, or takes none now.
        """
        app = self.partition.applications.get(app_id)
        if app is None or app.state not in TAKING or self.partition.state != ACTIVE:
            return None
        if app.gang is not None or app.atomic is not None:
            return None
        return Newcomers(app, self.partition, self._shape, alike=not self.policies.predicates)

    def book(self, newcomers: Newcomers) -> None:
        """What has gathered waits from now on."""
        first = newcomers.book()
        if first is not None:
            if first.app.fresh and self.partition.journal.listening:
                self.holds.watch(first.app)
            # The others came at the same moment, for the same queue.
            self.preemption.notice(first)

    def closed_to(self, what: str) -> str:
        """Why the partition takes no new things of this kind now; empty when it does."""
        state = self.partition.state
        return "" if state == ACTIVE else f"partition {self.name} is {state.lower()}: it takes no new {what}"

    @staticmethod
    def _refusal(app: Application | None, app_id: str, demand: Demand) -> str:
        if app is None:
            return f"failed to find application {app_id}"
        if app.state == FAILING:
            return f"application {app_id} is failing: it takes no new requests"
        if demand.placeholder and app.atomic is not None:
            return f"application {app_id} is an atomic gang: it takes no placeholders"
        if is_zero(demand.resource):
            return "ask contains no resources"
        if has_negative(demand.resource):
            return "ask contains negative resources"
        if demand.count < 1:
            return f"maxAllocations is {demand.count}: an ask is for one allocation or more"
        if not INT32_MIN < demand.priority <= INT32_MAX:
            return f"priority {demand.priority} is out of range"
        return ""

    def _new_ask(self, app: Application, demand: Demand) -> Ask:
        created, arrival = self.created(demand.tags), self.partition.next_arrival()
        terms = _terms(demand)
        return Ask(demand.key, app, demand.resource, demand.count, demand.priority, created, arrival, terms)

    def created(self, tags: Mapping[str, str]) -> int:
        """When a request with these tags was made (ns): as its tags say, else now."""
        # Unix seconds from the RM keep the order of what was asked for before a restart (facts §3.1).
        text = tags.get(CREATION_TAG, "") if tags else ""
        readable = text.isdecimal() and len(text) <= TIME_DIGITS
        return int(text) * SECOND if readable else self.partition.clock.now()

    def _classify(self, ask: Ask) -> None:
        ask.claim = self.partition.claims.of(self._shape(ask), ask.app.owner)

    def _shape(self, ask: Ask) -> Shape:
        predicates = self.policies.predicates
        classes = predicates.ask_classes(ask) if predicates else ()
        required = ask.tags.get(REQUIRED_NODE_TAG, "") if ask.tags else ""
        return self.partition.shapes.of(ask.resource, ask.app.node_order, required, classes)

    def _change(self, ask: Ask, demand: Demand) -> None:
        ledger = self.partition.ledger
        same = (ask.resource, ask.priority, ask.tags) == (demand.resource, demand.priority, demand.tags)
        ask.terms = _terms(demand)
        if same:
            if not ask.pending:
                # Since the last of it was served its shape may have been forgotten, or its limits changed.
                ledger.kept.unreserve(ask)
                self._classify(ask)
            ledger.change_pending(ask, demand.count)
            return
        # A node that is kept, and what was told to go, was for the request as it was.
        ledger.kept.unreserve(ask)
        if ask.plight is not None:
            ask.plight.eviction = None
        ledger.change_pending(ask, 0)
        ask.resource, ask.priority = demand.resource, demand.priority
        self._classify(ask)
        ledger.change_pending(ask, demand.count)

    def release_asks(self, app_id: str, key: str, termination: TerminationType) -> None:
        """Drop asks: one by key, or without a key all of the application; a key alone is searched for."""
        for app in self._owners(app_id, key):
            for ask in _asks(app, key):
                detail = "REQUEST_TIMEOUT" if termination == TerminationType.TIMEOUT else "REQUEST_CANCEL"
                self.partition.ledger.drop_ask(ask, detail)
                message = "ask released as per RM request"
                self.partition.outbox.ask_releases.append(AskRelease(app.id, ask.key, termination, message))

    def _owners(self, app_id: str, key: str) -> list[Application]:
        applications = self.partition.applications
        if app_id:
            app = applications.get(app_id)
            return [app] if app is not None else []
        return [app for app in applications.values() if key in app.asks][:1]

    # -- allocations --------------------------------------------------------------------------------

    def release(self, app_id: str, uuid: str, key: str, termination: TerminationType) -> bool:
        """End allocations of an application: one by uuid, those of a key, or all and its asks too.

        Without an application it is a foreign allocation that ends, by key. What the RM asked to stop is
        confirmed; what it confirms itself is not. Returns whether there was anything to end; what is
        unknown is answered and counted (see `Partition.strays`).
        """
        own = termination in (TerminationType.STOPPED_BY_RM, TerminationType.UNKNOWN)
        app = self.partition.applications.get(app_id)
        if app is None:
            if not app_id and self.partition.foreign.release(key):
                return True
            if app_id and self.existing.awaited.release(app_id, uuid, key, AS_REQUESTED if own else ""):
                return True
            self.partition.answer_stray(app_id, uuid, key, confirmed=not own)
            return False
        if uuid:
            found = [app.allocations[uuid]] if uuid in app.allocations else []
        else:
            found = app.of_key(key) if key else list(app.allocations.values())
        replaced = termination == TerminationType.PLACEHOLDER_REPLACED
        told = [one for one in found if one.releasing == termination]
        if replaced or (told and not uuid):
            # A confirmation by key is for those of its allocations that were told to go.
            found = told
        asked = key in app.asks if key else bool(app.asks)
        if not found and (uuid or (key and not asked)):
            self.partition.answer_stray(app_id, uuid, key, confirmed=not own)
        if not uuid and not replaced and not told and termination != TerminationType.TIMEOUT:
            for ask in _asks(app, key):
                self.partition.ledger.drop_ask(ask)
        for allocation in found:
            if own:
                self.partition.release(allocation, TerminationType.STOPPED_BY_RM, AS_REQUESTED)
            else:
                self.partition.ledger.release(allocation, termination)
        return bool(found)

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
        """Take in a node, or refuse it with the reason (facts §10.2)."""
        reason = self._node_refusal(node_id, capacity, occupied)
        if reason:
            self.partition.outbox.rejected_nodes.append(Refusal(node_id, reason))
            return None
        node = Node(node_id, capacity, attributes, occupied)
        if not schedulable:
            self.partition.move_node(node, "drain")
        self.partition.shapes.forget_node(node_id)
        node.classes = self.policies.predicates.node_classes(node)
        self.partition.add_node(node)
        return node

    def _node_refusal(self, node_id: str, capacity: Resource, occupied: Resource) -> str:
        if reason := self.closed_to("nodes"):
            return reason
        if not node_id:
            return "a node needs an id"
        if node_id in self.partition.nodes:
            return f"partition {self.name} has an existing node {node_id}, node name must be unique"
        if has_negative(capacity) or has_negative(occupied):
            return "node has negative resources"
        return ""

    def remove_node(self, node: Node) -> None:
        """A node leaves, with all that runs on it."""
        self.existing.awaited.forget(node)
        self.partition.remove_node(node)

    def update_node(
        self,
        node: Node,
        capacity: Resource | None,
        occupied: Resource | None,
        attributes: Mapping[str, str] | None,
    ) -> str:
        """Change a node; returns the reason if it cannot be."""
        if any(amount is not None and has_negative(amount) for amount in (capacity, occupied)):
            return "node has negative resources"
        if attributes is not None:
            node.attributes = dict(attributes)
            node.classes = self.policies.predicates.node_classes(node)
        self.partition.update_node(node, capacity, occupied, attributes)
        self.preemption.resized(node)
        return ""

    # -- configuration ------------------------------------------------------------------------------

    def _periods(self) -> Periods:
        """The delays of the scheduler, but for those that the partition sets itself."""
        return attrs.evolve(self._delays, **self.config.periods)  # type: ignore[arg-type]

    def reconfigure(
        self, config: PartitionConfig, policies: Policies, queue_policies: Made, registry: Registry
    ) -> None:
        """Work by another configuration from now on; its policies are made already."""
        partition = self.partition
        before, self.policies, self.config = self.policies, policies, config
        partition.periods = self._periods()
        policies.open(self.context, self.faults)
        for node in partition.nodes.values():
            node.classes = policies.predicates.node_classes(node)
        self.orders.replace(policies.node_sorts)
        self.cycle.use(policies.predicates)
        quotas = self.preemption.quotas()
        partition.queues.configure(config.root)
        self.queue_policies.use(registry, queue_policies)
        self.apply_queue_changes()
        self.queue_policies.drop_unused(partition.queues)
        partition.usage.rebuild(partition.applications.values(), partition.queues)
        if self.outstanding is not None:
            self.outstanding.recount()
        for app in partition.applications.values():
            self._reconsider(app)
        partition.reconsider()
        self.preemption.reconfigure(quotas, config.preemption)
        before.close(self.faults)

    def _reconsider(self, app: Application) -> None:
        """Everything an application waits for gets its shape, and its chance, anew."""
        queue = app.queue
        if queue is None:
            return
        app.node_order = self._node_order(app, queue.settings.node_sort)
        self.cycle.backoff.wake(app)
        for ask in list(app.asks.values()):
            if ask.pending:
                shape = self._shape(ask)
                self.partition.ledger.reshape(ask, self.partition.claims.of(shape, app.owner))
        if app.atomic is not None:
            app.atomic.form()

    # -- the end ------------------------------------------------------------------------------------

    def close(self, reason: str) -> None:
        """The partition goes: its applications fail, its nodes leave (decision 11)."""
        partition = self.partition
        PARTITION.fire(partition, "remove")
        for app in list(partition.applications.values()):
            if app.state in ("New", "Accepted", "Starting", "Running"):
                partition.fail_application(app, reason)
            else:
                partition.remove_application(app, reason)
        for node in list(partition.nodes.values()):
            self.remove_node(node)
        if self.outstanding is not None:
            self.outstanding.stop()
        self.policies.close(self.faults)
        self.queue_policies.close()
        partition.timers.close()


def _terms(demand: Demand) -> Terms:
    return Terms(
        demand.tags,
        may_preempt=demand.may_preempt,
        may_be_preempted=demand.may_be_preempted,
        originator=demand.originator,
        run_limit=demand.run_limit,
        task_group=demand.task_group,
        placeholder=demand.placeholder and bool(demand.task_group),
    )


def _other_part(ask: Ask, demand: Demand) -> str:
    """Why a demand cannot replace this ask: it would have another part in its application's gang."""
    if (ask.task_group, ask.placeholder) == (
        demand.task_group,
        demand.placeholder and bool(demand.task_group),
    ):
        return ""
    if not ask.task_group:
        part = "of no task group"
    else:
        part = f"{'a placeholder' if ask.placeholder else 'a real task'} of task group '{ask.task_group}'"
    return f"ask {ask.key} is {part}, which cannot be changed: release it and ask anew"


def _asks(app: Application, key: str) -> list[Ask]:
    """The ask of this key, if there is one; all of them without a key."""
    if not key:
        return list(app.asks.values())
    ask = app.asks.get(key)
    return [] if ask is None else [ask]
