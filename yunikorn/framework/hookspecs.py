"""Hook specifications, through which plugins register their classes with the scheduler.

Each hook is called once, when a plugin is registered, and returns *classes*. A class has a `name`, which
the configuration refers to, and typed attributes, which are its options. The core creates one object per
place in the configuration and keeps its bound methods. No hook is called during scheduling.

A plugin is a module or an object with functions marked `@yunikorn.api.hookimpl`. Packages announce their
plugins through the entry-point group `yunikorn`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from yunikorn.api import (
        AdmissionPolicy,
        AppSortPolicy,
        EventSink,
        NodeSortPolicy,
        PermitPolicy,
        PlacementRule,
        Predicate,
        PreemptionPolicy,
        QueueSortPolicy,
        QuotaPolicy,
        ReservationPolicy,
        SubmitPolicy,
        UserGroupResolver,
    )

hookspec = pluggy.HookspecMarker("yunikorn")


@hookspec
def yunikorn_app_sort_policies() -> list[type[AppSortPolicy]]:  # type: ignore[empty-body]
    """Return the policies that order the applications of a leaf queue.

    Named in YAML by the queue property `application.sort.policy: NAME`; options are further
    properties, `application.sort.policy.OPTION: VALUE`.

    The core calls `key(app)`; the smallest key is first. A policy that limits how many applications are
    scheduled at a time also has `admission_class(app)` and `admission_limits(counts)`.

    :returns: the classes, each a subclass of `AppSortPolicy`.
    """


@hookspec
def yunikorn_queue_sort_policies() -> list[type[QueueSortPolicy]]:  # type: ignore[empty-body]
    """Return the policies that order the children of a parent queue.

    Named in YAML by the property `queue.sort.policy: NAME` of a parent queue; options are
    `queue.sort.policy.OPTION: VALUE`. The default is `fair`.

    The core calls `key(queue)`; the smallest key is first.

    :returns: the classes, each a subclass of `QueueSortPolicy`.
    """


@hookspec
def yunikorn_node_sort_policies() -> list[type[NodeSortPolicy]]:  # type: ignore[empty-body]
    """Return the policies that order the nodes on which a request is tried.

    Named in YAML by a partition's `nodesortpolicy: {type: NAME, OPTION: VALUE}`, and by the named
    alternatives in `nodesortpolicies`. The type `weighted` combines several policies.

    The core calls `score(node)`, or `score(node, ask_class)` for a policy that depends on the request; the
    lowest score is first.

    :returns: the classes, each a subclass of `NodeSortPolicy`.
    """


@hookspec
def yunikorn_placement_rules() -> list[type[PlacementRule]]:  # type: ignore[empty-body]
    """Return the rules that choose the queue of an application.

    Named in YAML by a partition's `placementrules: [{name: NAME, create: BOOL, filter: ..., parent:
    ..., OPTION: VALUE}]`. Rule names ignore case.

    The core calls `place(app)`, or `place(app, queues)` for a rule that depends on the queues. The core
    itself evaluates the chain of rules, filters, parent rules, the creation of queues, ACLs, and the
    completion of relative names.

    :returns: the classes, each a subclass of `PlacementRule`.
    """


@hookspec
def yunikorn_predicates() -> list[type[Predicate]]:  # type: ignore[empty-body]
    """Return the conditions that a node must meet for a request, in addition to free resources.

    Named in YAML by a partition's `predicates: [NAME]` or `[{name: NAME, OPTION: VALUE}]`.

    The core calls `check(ask, node)`, and only for nodes with enough free resources.

    :returns: the classes, each a subclass of `Predicate`.
    """


@hookspec
def yunikorn_event_sinks() -> list[type[EventSink]]:  # type: ignore[empty-body]
    """Return the receivers of the scheduler's events.

    Named in YAML by the top-level `events: {sinks: [NAME]}` or `[{name: NAME, OPTION: VALUE}]`.

    The core calls `send(batch)` after each update and each scheduling cycle that produced events.

    :returns: the classes, each a subclass of `EventSink`.
    """


@hookspec
def yunikorn_user_group_resolvers() -> list[type[UserGroupResolver]]:  # type: ignore[empty-body]
    """Return the resolvers that find the groups of a user whose application was submitted without groups.

    Named in YAML by a partition's `usergroupresolver: {type: NAME, OPTION: VALUE}`.

    The core calls `groups(user)` and caches the answer for a limited time.

    :returns: the classes, each a subclass of `UserGroupResolver`.
    """


@hookspec
def yunikorn_preemption_policies() -> list[type[PreemptionPolicy]]:  # type: ignore[empty-body]
    """Return the policies that choose the victims of preemption.

    Named in YAML by a partition's `preemption: {policy: NAME}` or `{policy: {name: NAME, OPTION: VALUE}}`.
    The default is `standard`.

    The core calls `rank(victim, cause)`; the smallest rank is preempted first. A policy that protects
    allocations also has `protects(victim, cause)`, and one that chooses the node has `cost(victim, cause)`.

    :returns: the classes, each a subclass of `PreemptionPolicy`.
    """


@hookspec
def yunikorn_submit_policies() -> list[type[SubmitPolicy]]:  # type: ignore[empty-body]
    """Return the policies that check and change applications before they are placed in a queue.

    Named in YAML by a partition's `submitpolicies: [NAME]` or `[{name: NAME, OPTION: VALUE}]`.

    The core calls `submit(app)` once for each application, after its groups are known.

    :returns: the classes, each a subclass of `SubmitPolicy`.
    """


@hookspec
def yunikorn_admission_policies() -> list[type[AdmissionPolicy]]:  # type: ignore[empty-body]
    """Return the policies that decide when an application may be scheduled.

    Named in YAML by a partition's `admission: [NAME]` or `[{name: NAME, OPTION: VALUE}]`.

    The core calls `admit(app)` when the application has a queue, and again while the policy holds it.

    :returns: the classes, each a subclass of `AdmissionPolicy`.
    """


@hookspec
def yunikorn_quota_policies() -> list[type[QuotaPolicy]]:  # type: ignore[empty-body]
    """Return the policies that set the max of a queue.

    Named in YAML by the property `quota.policy: NAME` of a queue, with options as further properties,
    `quota.policy.OPTION: VALUE`. Queues below do not inherit them.

    The core calls `quota(queue)` when the queue gets the policy, and when what the policy depends on has
    changed.

    :returns: the classes, each a subclass of `QuotaPolicy`.
    """


@hookspec
def yunikorn_reservation_policies() -> list[type[ReservationPolicy]]:  # type: ignore[empty-body]
    """Return the policies that decide who reserves a node, how many do, and for how long.

    Named in YAML by a partition's `reservations: {policy: NAME, OPTION: VALUE}`. The default is `standard`.

    The core calls `reserves_after(ask, delay)` for a request that no node has room for. A policy that bounds
    the number of reservations also has `most_in(queue)` or `most_of(app)`, one that bounds their duration
    `lasts(ask)`, and one that chooses the node `rank_node(ask, node)`.

    :returns: the classes, each a subclass of `ReservationPolicy`.
    """


@hookspec
def yunikorn_permit_policies() -> list[type[PermitPolicy]]:  # type: ignore[empty-body]
    """Return the policies that may hold a placement before the resource manager is informed of it.

    Named in YAML by a partition's `permits: [NAME]` or `[{name: NAME, OPTION: VALUE}]`.

    The core calls `permit(allocation)` when a task is placed, and again while the policy holds the placement.

    :returns: the classes, each a subclass of `PermitPolicy`.
    """
