"""Readers of partitions, users, groups and placement rules: from objects of the core to shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from yunikorn.config.acl import is_expression, is_group_name, is_user_name
from yunikorn.model.queue import RECOVERY
from yunikorn.model.usage_tracker import GROUP, USER
from yunikorn.states import compatible_state
from yunikorn_rest import shapes
from yunikorn_rest.application_reader import present
from yunikorn_rest.queue_reader import percentages
from yunikorn_service.fields import NONE

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.config.filters import FilterConfig
    from yunikorn.config.queues_yaml import PluginRef, RuleConfig
    from yunikorn.model.application import Application
    from yunikorn.model.usage_tracker import UsageTracker
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

STEP = 1000
"""Number of applications that are counted without a pause."""
TRACKERS = 200
"""Number of queues whose usage by a user or group is read without a pause."""
MARKED = 100
"""Number of applications whose usage is booked without a pause."""
WEIGHTS = {"memory": 1.0, "vcore": 1.0}
"""Weights of resource types in node sort policies that set none."""


def active_applications_of(at: PartitionScheduler) -> list[Application]:
    """Return the applications that have not ended, with those that wait for a policy, as a copy."""
    return [*at.partition.applications.values(), *(one.app for one in at.submitted)]


def read_partition(rm_id: str, at: PartitionScheduler) -> Generator[None, None, shapes.Partition]:
    """Read a partition; the numbers of applications and allocations are counted in slices."""
    partition = at.partition
    capacity, used = partition.cluster.total, present(partition.used)
    found: dict[str, Any] = {
        "capacity": shapes.PartitionCapacity(
            capacity=capacity, used_capacity=used, utilization=percentages(capacity, used)
        ),
        "node_sorting_policy": shapes.NodeSortingPolicy(
            type=at.config.node_sort.name, resource_weights=_weights(at.config.node_sort)
        ),
        "preemption_enabled": at.config.preemption.enabled,
        "quota_preemption_enabled": at.config.preemption.quota_preemption_enabled,
        "total_nodes": len(partition.nodes),
        "state": partition.state,
        "last_state_transition_time": partition.state_since,
    }
    states: Counter[str] = Counter()
    containers = 0
    for index, app in enumerate([*active_applications_of(at), *partition.ended.values()]):
        states[app.state] += 1
        containers += len(app.allocations)
        if index % STEP == STEP - 1:
            yield
    numbers = {**states, "total": states.total()}
    reported: Counter[str] = Counter()
    for state, number in numbers.items():
        reported[compatible_state(state)] += number
    return shapes.Partition(
        cluster_id=rm_id,
        name=at.name,
        total_containers=containers,
        applications=reported,
        design_applications=NONE if numbers == reported else numbers,
        **found,
    )


def _weights(node_sort: PluginRef) -> Mapping[str, float]:
    given = node_sort.options.get("resourceweights")
    if not isinstance(given, Mapping):
        return WEIGHTS
    try:
        return {name: float(weight) for name, weight in given.items()}
    except (TypeError, ValueError):
        return NONE


# -- users and groups ------------------------------------------------------------------------------------


def book_usage(partition: Partition) -> Generator[None, None, None]:
    """Bring the usage of all users and groups up to date, in slices."""
    while partition.usage.flush_some(MARKED):
        yield


def read_user(partition: Partition, user: str) -> Generator[None, None, shapes.UserUsage]:
    """Read the usage of a user, in slices if there are many queues."""
    trackers = partition.usage.through(USER, user)
    apps = [partition.applications.get(app) for app in _running(trackers)]
    return shapes.UserUsage(
        user_name=user,
        groups={app.id: app.group for app in apps if app is not None and app.group},
        queues=(yield from _usage_tree(trackers)),
    )


def read_group(partition: Partition, group: str) -> Generator[None, None, shapes.GroupUsage]:
    """Read the usage of a group, in slices if there are many queues."""
    trackers = partition.usage.through(GROUP, group)
    running = _running(trackers)
    queues = yield from _usage_tree(trackers)
    return shapes.GroupUsage(group_name=group, applications=running, queues=queues)


def _running(trackers: Sequence[UsageTracker]) -> tuple[str, ...]:
    """Return the applications of the first tracker, which is that of the root queue."""
    return trackers[0].applications if trackers else ()


def _usage_tree(trackers: Sequence[UsageTracker]) -> Generator[None, None, shapes.QueueUsage | None]:
    """Return the trackers, which are sorted so that parents precede their children, as a tree."""
    below: dict[str, list[shapes.QueueUsage]] = {}
    top: shapes.QueueUsage | None = None
    for index, tracker in enumerate(reversed(trackers)):
        if index % TRACKERS == TRACKERS - 1:
            yield
        top = shapes.QueueUsage(
            queue_path=tracker.path,
            resource_usage=present(tracker.usage),
            running_applications=tracker.applications,
            max_resources=tracker.max_resources or NONE,
            max_applications=tracker.max_applications,
            children=tuple(reversed(below.pop(tracker.path, []))),
        )
        below.setdefault(tracker.path.rpartition(".")[0], []).append(top)
    return top


# -- placement rules -------------------------------------------------------------------------------------


def read_rules(rules: Sequence[RuleConfig]) -> tuple[shapes.Rule, ...]:
    """Return the placement rules of a configuration, and the recovery queue as the last one."""
    found = [read_rule(rule) for rule in rules]
    if not found:
        found.append(shapes.Rule(name="provided", parameters={"create": "false"}))
    return (*found, shapes.Rule(name="recovery", parameters={"queue": RECOVERY}))


def read_rule(rule: RuleConfig) -> shapes.Rule:
    """Return a placement rule with its filter and the rule for the parent queue."""
    parameters = {"create": str(rule.create).lower()}
    if rule.name == "fixed":
        parameters["queue"] = rule.value
        parameters["qualified"] = str(rule.value.lower().startswith("root.")).lower()
    elif rule.name == "tag":
        parameters["tagName"] = rule.value
    elif rule.value:
        parameters["value"] = rule.value
    return shapes.Rule(
        name=rule.name,
        parameters=parameters,
        filter=_filter(rule.filter),
        parent_rule=None if rule.parent is None else read_rule(rule.parent),
    )


def _filter(config: FilterConfig | None) -> shapes.RuleFilter | None:
    if config is None or not (config.users or config.groups):
        return None
    by_user = len(config.users) == 1 and is_expression(config.users[0], is_user_name)
    by_group = len(config.groups) == 1 and is_expression(config.groups[0], is_group_name)
    return shapes.RuleFilter(
        type="allow" if config.allow else "deny",
        user_list=() if by_user else config.users,
        group_list=() if by_group else config.groups,
        user_exp=config.users[0] if by_user else "",
        group_exp=config.groups[0] if by_group else "",
    )
