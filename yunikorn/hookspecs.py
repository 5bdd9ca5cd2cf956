"""The hooks: how a plugin hands its classes to the scheduler.

Each hook is called once, when a plugin is registered, and returns *classes*. A class has a `name`, by
which a configuration names it, and typed attributes, which are its options. The core makes one object
per place in the configuration and keeps its bound methods; no hook is ever called while scheduling.

A plugin is a module or an object with functions marked `@yunikorn.api.hookimpl`. Packages announce
theirs through the entry-point group `yunikorn`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from yunikorn.api import (
        AppSortPolicy,
        EventSink,
        NodeSortPolicy,
        PlacementRule,
        Predicate,
        QueueSortPolicy,
        UserGroupResolver,
    )

hookspec = pluggy.HookspecMarker("yunikorn")


@hookspec
def yunikorn_app_sort_policies() -> list[type[AppSortPolicy]]:  # type: ignore[empty-body]
    """Ways to order the applications inside a leaf queue.

    Named in YAML by the queue property `application.sort.policy: NAME`; options are further
    properties, `application.sort.policy.OPTION: VALUE`.

    The core calls `key(app)`, smallest first. A policy that lets only some applications take part
    also has `admission_class(app)` and `admission_limits(counts)`.

    :returns: the classes, each a subclass of `AppSortPolicy`.
    """


@hookspec
def yunikorn_queue_sort_policies() -> list[type[QueueSortPolicy]]:  # type: ignore[empty-body]
    """Ways to order the children of a parent queue.

    Named in YAML by the property `queue.sort.policy: NAME` of a parent queue; options are
    `queue.sort.policy.OPTION: VALUE`. The default is `fair`.

    The core calls `key(queue)`, smallest first.

    :returns: the classes, each a subclass of `QueueSortPolicy`.
    """


@hookspec
def yunikorn_node_sort_policies() -> list[type[NodeSortPolicy]]:  # type: ignore[empty-body]
    """Ways to order the nodes that a request is tried on.

    Named in YAML by a partition's `nodesortpolicy: {type: NAME, OPTION: VALUE}`, and by the named
    alternatives in `nodesortpolicies`.

    The core calls `score(node)`, lowest first, or `score(node, ask_class)` for a policy that looks at
    the request too.

    :returns: the classes, each a subclass of `NodeSortPolicy`.
    """


@hookspec
def yunikorn_placement_rules() -> list[type[PlacementRule]]:  # type: ignore[empty-body]
    """Rules that choose the queue of an application.

    Named in YAML by a partition's `placementrules: [{name: NAME, create: BOOL, filter: ..., parent:
    ..., OPTION: VALUE}]`. Rule names ignore case.

    The core calls `place(app)`. Chain, filter, parent, create, ACLs and qualification are its own.

    :returns: the classes, each a subclass of `PlacementRule`.
    """


@hookspec
def yunikorn_predicates() -> list[type[Predicate]]:  # type: ignore[empty-body]
    """Conditions that a node must meet for a request, beyond room.

    Named in YAML by a partition's `predicates: [NAME]` or `[{name: NAME, OPTION: VALUE}]`.

    The core calls `check(ask, node)`, only for nodes with room.

    :returns: the classes, each a subclass of `Predicate`.
    """


@hookspec
def yunikorn_event_sinks() -> list[type[EventSink]]:  # type: ignore[empty-body]
    """Receivers of the scheduler's events.

    Named in YAML by the top-level `events: {sinks: [NAME]}` or `[{name: NAME, OPTION: VALUE}]`.

    The core calls `send(batch)` after each update or round of decisions that had events.

    :returns: the classes, each a subclass of `EventSink`.
    """


@hookspec
def yunikorn_user_group_resolvers() -> list[type[UserGroupResolver]]:  # type: ignore[empty-body]
    """Ways to find the groups of a user whose application came without any.

    Named in YAML by a partition's `usergroupresolver: {type: NAME, OPTION: VALUE}`.

    The core calls `groups(user)` and remembers the answer for a while.

    :returns: the classes, each a subclass of `UserGroupResolver`.
    """
