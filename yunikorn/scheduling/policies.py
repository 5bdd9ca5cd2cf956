"""Plugin objects of a partition and of its queues.

All objects are created before any part of a configuration is applied, so that an invalid configuration has no
effect (`docs/decisions/0011`). Sort policies of queues are created from the names and options in queue
properties.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.accounting.lifetime_usage import ApplicationUsage
from yunikorn.api import AppSortPolicy, Predicate, SubmitPolicy
from yunikorn.config.properties import InForce, QueueSettings, read_settings
from yunikorn.config.queues_yaml import DEFAULT_RESERVATIONS, WeightedRef
from yunikorn.containment import WrongAnswer, contained, entries_of, exact_text, is_plugin_of
from yunikorn.errors import OptionError, PluginError, UnknownPlugin
from yunikorn.framework import kinds
from yunikorn.framework.instances import make_instance
from yunikorn.model.owner_usage import KINDS, TAG, PolicyUsage
from yunikorn.model.queue import RECOVERY
from yunikorn.model.usage_history import UsageHistory
from yunikorn.scheduling.admission.asked_policies import AskedPolicy
from yunikorn.scheduling.admission.held_applications import ADMIT
from yunikorn.scheduling.admission.permits import AskedPermitPolicy
from yunikorn.scheduling.admission.queue_quotas import check_declarations
from yunikorn.scheduling.admission.submit_answers import SUBMIT, SUBMIT_ASK
from yunikorn.scheduling.ask_order import order_again
from yunikorn.scheduling.member_order import AdmissionGate, MemberOrder
from yunikorn.scheduling.node_orders import DEFAULT
from yunikorn.scheduling.node_policies import CombinedPolicy, NamedPolicy, WeightedScores
from yunikorn.scheduling.placement import PlacementChain
from yunikorn.scheduling.predicate_calls import keeper_of, keeps_books
from yunikorn.scheduling.predicate_chain import PredicateChain
from yunikorn.scheduling.preemption.victim_policy import MODES, VictimPolicy
from yunikorn.scheduling.reservations.reservation_rules import ReservationRules
from yunikorn.scheduling.run_time_estimates import RunTimeEstimates
from yunikorn.scheduling.subject_index import SubjectIndex
from yunikorn.scheduling.topology.gang_placement_rules import GangPlacementRules
from yunikorn.scheduling.topology.topology_tree import Topology
from yunikorn.scheduling.user_groups import UserGroups

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence, Set

    from yunikorn.accounting.books import Keeper
    from yunikorn.accounting.partition import Partition
    from yunikorn.accounting.queue_tree import QueueTree
    from yunikorn.api import ResourceManager
    from yunikorn.clock import Clock
    from yunikorn.config.queues_yaml import PartitionConfig, PluginRef, QueueConfig
    from yunikorn.framework.instances import InstancePlan, PluginInstance, PluginInstances
    from yunikorn.framework.kinds import PluginKind
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.framework.registry import Registry
    from yunikorn.model.owner_usage import OwnerUsage, WantedUsage
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.ask_order import AskOrder


DEFAULT_VICTIMS = "standard"
"""Preemption policy to use instead of one that cannot be used and is not required."""
DEFAULT_GANG_PLACEMENT = "best-fit"


class Policies:
    """Plugin objects of one partition, except those of its queues."""

    def __init__(
        self,
        config: PartitionConfig,
        plan: InstancePlan,
        tree: QueueTree,
        clock: Clock,
        failures: PluginFailures,
        rm: ResourceManager | None,
    ) -> None:
        """Plan the instances of a configuration, those of its queues included, without any effect.

        Raises `UnknownPlugin`, `OptionError` or `PluginError` if an instance cannot be made.
        """
        self.plan = plan
        self._failures = failures
        self.node_sorts = {DEFAULT: self._node_sort(config.node_sort)} | {
            name: self._node_sort(ref) for name, ref in config.node_sorts.items()
        }
        predicates = self._usable(kinds.PREDICATE, config.predicates)
        victims = self._usable_or(kinds.PREEMPTION, config.preemption.policy, DEFAULT_VICTIMS)
        possible = MODES if rm is None else rm.preemption_modes
        self.preemption = VictimPolicy(victims.plugin, victims.name, victims.origin, failures, possible)
        reserving = self._usable_or(kinds.RESERVATION, config.reservations, DEFAULT_RESERVATIONS)
        self.backfills = is_plugin_of(reserving.plugin, Predicate)
        """True if the reservation policy also decides what may start before what waits."""
        if self.backfills:
            predicates.append(reserving)
        counter = plan.registry.statistics
        chain: type[PredicateChain] = PredicateChain if counter is None else counter.chain
        self.predicates = chain([(one.plugin, one.origin) for one in predicates], failures)
        self.reservations = ReservationRules(reserving.plugin, reserving.name, reserving.origin, failures)
        placing = self._usable_or(kinds.GANG_PLACEMENT, config.gang_placement, DEFAULT_GANG_PLACEMENT)
        self.gang_placement = GangPlacementRules(placing.plugin, placing.name, placing.origin, failures)
        self.topology = Topology.of(self._usable(kinds.TOPOLOGY, config.topology), failures)
        estimators = self._usable(kinds.RUN_TIME, config.estimators)
        self.run_times = RunTimeEstimates(estimators, failures, clock.now)
        self.placement = PlacementChain(config.placement_rules, plan, tree, failures)
        self.users = UserGroups.make(config.user_group_resolver, plan, clock, failures)
        submitting = self._usable(kinds.SUBMIT, config.submit_policies)
        self.submit = [AskedPolicy.of(one, SUBMIT, failures) for one in submitting]
        checking = [one for one in submitting if type(one.plugin).submit_ask is not SubmitPolicy.submit_ask]
        self.submit_ask = [AskedPolicy.of(one, SUBMIT_ASK, failures) for one in checking]
        admitting = self._usable(kinds.ADMISSION, config.admission)
        self.admission = [AskedPolicy.of(one, ADMIT, failures) for one in admitting]
        permitting = self._usable(kinds.PERMIT, config.permits)
        self.permits = [AskedPermitPolicy(one, failures) for one in permitting]
        settings: dict[tuple[int, bool], QueueSettings] = {}
        templates: list[QueueSettings] = []
        _collect(config.root, InForce({}).below(config.root.properties), settings, templates)
        for (_, is_leaf), each in settings.items():
            plan.share(*_policy_of(each, is_leaf=is_leaf))
        limited = [each for each in (*settings.values(), *templates) if each.quota_policy]
        for each in limited:
            made = plan.share(kinds.QUOTA, each.quota_policy, each.quota_policy_options)
            check_declarations(made, failures)
        self.names_quotas = bool(limited)
        """True if the configuration names a quota policy."""

    def _usable(self, kind: PluginKind, refs: Sequence[PluginRef]) -> list[PluginInstance]:
        """Return the instances of a list of plugins, without those that `required: false` leaves out."""
        made = (self.plan.make_if_usable(kind, ref.name, ref.options, required=ref.required) for ref in refs)
        return [one for one in made if one is not None]

    def _usable_or(self, kind: PluginKind, ref: PluginRef, default: str) -> PluginInstance:
        """Return the instance of a plugin, or of the default if `required: false` leaves the plugin out."""
        made = self.plan.make_if_usable(kind, ref.name, ref.options, required=ref.required)
        return made or self.plan.make(kind, default, {})

    @classmethod
    def of(
        cls,
        config: PartitionConfig,
        plan: InstancePlan,
        tree: QueueTree,
        clock: Clock,
        failures: PluginFailures,
        rm: ResourceManager | None,
    ) -> Policies:
        """Return the policies; if that raises, everything that the plan has opened is closed."""
        try:
            return cls(config, plan, tree, clock, failures, rm)
        except BaseException:
            plan.discard()
            raise

    def _node_sort(self, ref: PluginRef) -> NamedPolicy:
        if isinstance(ref, WeightedRef):
            members = []
            for score in ref.scores:
                made = self.plan.make(kinds.NODE_SORT, score.name, score.options)
                members.append(CombinedPolicy(made.plugin, made.origin, score.weight, score.range))
            return WeightedScores(members, ref.name, self._failures)
        made = self.plan.make(kinds.NODE_SORT, ref.name, ref.options)
        return NamedPolicy(made.plugin, made.origin, self._failures)

    def keepers(self) -> list[Keeper]:
        """Return the plugins that keep books: predicates, permit policies, then node sort policies."""
        node_sorts = [one for one in self.plan.instances if one.kind is kinds.NODE_SORT]
        sorting = [keeper_of(one.plugin, one.origin) for one in node_sorts]
        return [
            *self.predicates.keepers(),
            *(one.keeper for one in self.permits if one.keeper is not None),
            *(keeper for keeper in sorting if keeper is not None),
            *self.run_times.keepers(),
        ]

    def bind(self, *, workers: bool) -> None:
        """Read what plugins declare; called after opening. With `workers`, those call what may block."""
        resolver = [] if self.users.asked is None else [self.users.asked]
        for asked in (*resolver, *self.submit, *self.submit_ask, *self.admission, *self.permits):
            asked.bind(workers=workers)
        self.placement.bind(workers=workers)
        sorting = [(one.plugin, one.origin) for one in self.plan.instances if one.kind is kinds.NODE_SORT]
        self.predicates.bind(sorting)
        for named in self.node_sorts.values():
            named.bind()


FALLBACK = "fifo"
"""Policy of the recovery queue, independent of its properties (as in YuniKorn 1.9)."""
DEFAULTS = {kinds.APP_SORT.id: QueueSettings().app_sort, kinds.QUEUE_SORT.id: QueueSettings().queue_sort}
"""Policy to use instead of one that cannot be made, by kind."""


class QueuePolicies:
    """Assigns orders to queues; queues with the same policy and options share one policy object."""

    def __init__(
        self,
        instances: PluginInstances,
        registry: Registry,
        failures: PluginFailures,
        partition: Partition,
        usage: OwnerUsage,
    ) -> None:
        """Create for a partition, whose policies share `usage` by owner."""
        self.usage, self._queues = usage, partition.queues
        self._instances = instances
        self.registry = registry
        self._failures = failures
        self._now = partition.clock.now
        self._subjects: dict[int, SubjectIndex] = {}
        """Applications by what their keys depend on, for each policy that keeps books, by its identity."""
        self.keepers_changed = False
        """True if a policy was added to `keepers` since their latest use."""

    def keepers(self) -> list[Keeper]:
        """Return the books of the application sort policies."""
        self.keepers_changed = False
        return [one.keeper for one in self._subjects.values()]

    def keep_only(self, used: Collection[int]) -> None:
        """Forget the books of all policies but these, by their identity, and usage that no policy reads."""
        self._subjects = {key: one for key, one in self._subjects.items() if key in used}
        self._keep_usage(_wanted(self._queues), ())

    def apply(self, queues: Iterable[Queue]) -> None:
        """Assign the order named in its settings to each of these queues."""
        for queue in queues:
            if queue.order is not None and queue.order.subjects is not None:
                for app in queue.applications.values():
                    queue.order.subjects.forget(app)
            ask_order = None if queue.order is None else queue.order.ask_order
            queue.order = self._order(queue)
            self._order_asks(queue, ask_order)
            # Sort keys of different policies are not comparable, so the order starts empty. This also drops
            # members that left before the queue changed between leaf and parent.
            queue.sorted_members.clear()
            self._update_histories(queue)
            for member in queue.dirty:
                member.is_dirty = False
            queue.dirty.clear()
            for app in queue.applications.values():
                app.admitted, app.admission_key = True, None
                app.mark_dirty()
            queue.policy_excluded = 0
        self._keep_usage(self.usage.wanted | _wanted(queues), queues)

    def _keep_usage(self, wanted: Set[WantedUsage], new: Iterable[Queue]) -> None:
        """Keep this usage by owner; the applications of all leaves count, also of those that are `new`."""
        if wanted != self.usage.wanted:
            new = self._queues
            self.usage.use(wanted, (app for queue in new for app in queue.applications.values()))
        for queue in new if wanted or new is self._queues else ():
            if queue.is_leaf:
                queue.cluster.owner_usage = self.usage if wanted else None
                queue.observe()

    @staticmethod
    def _order_asks(queue: Queue, before: AskOrder | None) -> None:
        """Sort the requests of a queue again if the policy that orders them is another one than before."""
        order: MemberOrder = queue.order
        if before is not None and before.policy is order.policy:
            order.ask_order = before
        elif before is not None or order.ask_order is not None:
            for app in queue.applications.values():
                order_again(app, order.ask_order)

    def _update_histories(self, queue: Queue) -> None:
        """Keep the usage histories of the queue and its members if the policies that sort them need these."""
        _keep_app_histories(queue, queue.order.half_life if queue.is_leaf else None, self._now)
        for child in queue.children.values():
            _keep_history(child, queue.order.half_life, self._now)
        if queue.parent is not None and queue.parent.order is not None:
            _keep_history(queue, queue.parent.order.half_life, self._now)

    def _order(self, queue: Queue) -> MemberOrder:
        kind, name, options = _policy_of(queue.settings, is_leaf=queue.is_leaf)
        if queue.path == RECOVERY:
            kind, name, options = kinds.APP_SORT, FALLBACK, {}
        made = self._instances.find_shared(kind, name, options) or self._make(kind, name, options)
        policy, origin = made.plugin, made.origin
        admission_classes = None
        if (
            is_plugin_of(policy, AppSortPolicy)
            and type(policy).admission_class is not AppSortPolicy.admission_class
        ):
            admission_classes = AdmissionGate(policy, origin, self._failures)
        subjects = self._subjects.get(id(policy))
        if subjects is None and is_plugin_of(policy, AppSortPolicy) and keeps_books(policy):
            subjects = self._subjects[id(policy)] = SubjectIndex(policy, origin, self._failures)
            self.keepers_changed = True
        order = MemberOrder(
            policy,
            origin,
            self._failures,
            priority_first=queue.settings.sort_priority,
            admission_classes=admission_classes,
            subjects=subjects,
        )
        owners = _usage_kinds(order, self._failures)
        if owners and order.half_life is not None:
            order.usage = PolicyUsage(self.usage, order.half_life, owners)
        return order

    def _make(self, kind: PluginKind, name: str, options: dict[str, str]) -> PluginInstance:
        # A queue created by placement needs an order at once, and a failing plugin must not reject the
        # application.
        try:
            made = make_instance(self.registry, kind, name, options, comma_lists=True)
        except (UnknownPlugin, OptionError, PluginError) as error:
            default = DEFAULTS[kind.id]
            self._failures.report(name, f"creating it ({default} is used instead)", error)
            made = make_instance(self.registry, kind, default, {})
            made.name, made.options = name, options
        self._instances.add_shared(made)
        return made


def _keep_app_histories(leaf: Queue, half_life: float | None, now: Callable[[], int]) -> None:
    if half_life is None and leaf.app_usage is None:
        return
    kept = None if half_life is None else ApplicationUsage(half_life, now)
    for app in leaf.applications.values():
        if kept is not None:
            kept.begin(app)
        elif app.lifetime is not None:
            app.lifetime.history = None
    leaf.app_usage = kept
    leaf.observe()


def _keep_history(queue: Queue, half_life: float | None, now: Callable[[], int]) -> None:
    if half_life is None:
        queue.history = None
    elif queue.history is None or queue.history.half_life != half_life:
        queue.history = UsageHistory(half_life, now, queue.allocated)
    queue.observe()


def _usage_kinds(order: MemberOrder, failures: PluginFailures) -> tuple[str, ...]:
    """Return the kinds of owners whose usage a policy reads."""
    try:
        kinds = tuple(map(exact_text, entries_of(order.policy.usage_by)))
        wrong = [kind for kind in kinds if not (kind in KINDS or kind.startswith(TAG))]
        if wrong:
            raise WrongAnswer(f"{wrong[0]!r} is no kind of owner; known: {', '.join(KINDS)}, {TAG}TAG")
        if kinds and order.half_life is None:
            raise WrongAnswer("it needs a half_life")
    except contained() as error:
        failures.report(order.origin, "reading its usage_by", error)
        return ()
    return kinds


def _wanted(queues: Iterable[Queue]) -> Set[WantedUsage]:
    """Return the usage that the policies of these queues read."""
    return {
        one
        for queue in queues
        if isinstance(queue.order.usage, PolicyUsage)
        for one in queue.order.usage.wanted
    }


def _policy_of(settings: QueueSettings, *, is_leaf: bool) -> tuple[PluginKind, str, dict[str, str]]:
    if is_leaf:
        return kinds.APP_SORT, settings.app_sort, dict(settings.app_sort_options)
    return kinds.QUEUE_SORT, settings.queue_sort, dict(settings.queue_sort_options)


def _collect(
    config: QueueConfig,
    in_force: InForce,
    found: dict[tuple[int, bool], QueueSettings],
    templates: list[QueueSettings],
) -> None:
    """Collect the settings of a queue and its descendants, by identity and queue type (leaf or parent).

    Those of child templates are added to `templates`.
    """
    found[id(in_force.settings), not config.parent] = in_force.settings
    if config.child_template is not None:
        templates.append(read_settings(config.child_template.properties)[0])
    for child in config.queues:
        _collect(child, in_force.below(child.properties), found, templates)
