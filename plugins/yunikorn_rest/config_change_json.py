"""Changes of a configuration over REST: requests, results, and effects on what runs."""

from __future__ import annotations

from typing import Any, Protocol

import attrs

from yunikorn.accounting.partition import Partition
from yunikorn.config.queues_yaml import SchedulerConfig
from yunikorn.interface.scheduler import Scheduler
from yunikorn.text import number_of
from yunikorn_commands.differences import REMOVED, differences
from yunikorn_rest import shapes
from yunikorn_service.fields import always, optional, shape_like


@attrs.frozen(kw_only=True)
class ConfigChange:
    """One difference between two configurations."""

    path: str = always("partition, queue and key in words")
    partition: str = optional("name of the partition", "")
    queue: str = optional("full path of the queue", "")
    key: str = optional("key of queues.yaml; absent if a whole queue or partition is added or removed", "")
    change: str = always("`added`, `removed` or `changed`; a key with its default counts as absent")
    before: Any = optional("value before; options of plugins without their values", None)
    after: Any = optional("value after", None)
    note: str = optional("effect on what runs, or the options that differ", "")


@attrs.frozen(kw_only=True)
class ConfigResult:
    """Result of a request to change a configuration."""

    applied: bool = always("true if the configuration is in use now")
    persisted: bool = always("true if the file of the configuration was replaced", False)
    checksum: str = always("checksum of the configuration in use before, for `If-Match`", "")
    new_checksum: str = optional("checksum of the new configuration", "")
    policy_group: str = optional("policy group that the configuration belongs to", "")
    resource_managers: tuple[str, ...] = always("ids of the resource managers that use the configuration", ())
    changes: tuple[ConfigChange, ...] = always("differences", ())
    problems: tuple[shapes.ConfigProblem, ...] = always("problems, with their places", ())
    note: str = optional("how long the configuration is used if it was not persisted", "")


@attrs.frozen(kw_only=True)
class ConfigRequest:
    """A request to change a configuration."""

    text: bytes
    policy_group: str = ""
    rm_id: str = ""
    """Resource manager whose own configuration is changed; empty for that of a policy group."""
    persist: bool = True
    dry_run: bool = False
    match: str = ""
    """Checksum that the present configuration must have; empty for any."""


@attrs.frozen
class ConfigText:
    """Text of a configuration in use, as it was given."""

    text: bytes
    checksum: str


class ConfigChanger(Protocol):
    """Owner of the configurations of a service."""

    async def text(self, policy_group: str, rm_id: str) -> ConfigText:
        """Return the text of a policy group, or that of a resource manager itself; raises `Refused`."""
        ...

    async def change(self, request: ConfigRequest) -> ConfigResult:
        """Check a configuration, and use it unless it has problems or `dry_run` is set; raises `Refused`."""
        ...


# -- differences -----------------------------------------------------------------------------------------


def config_changes(old: SchedulerConfig, new: SchedulerConfig) -> list[ConfigChange]:
    """Return the differences, in the order of the old configuration and then of the new one."""
    return [shape_like(ConfigChange, one) for one in differences(old, new)]


HISTORY = "history"
"""Key of the door that a service opens at its start."""


# -- effects ---------------------------------------------------------------------------------------------


def with_effects(
    changes: list[ConfigChange], core: Scheduler, rm_ids: tuple[str, ...]
) -> tuple[ConfigChange, ...]:
    """Return changes with notes on what runs in queues and partitions that are removed."""
    running: dict[str, list[Partition]] = {}
    for rm_id, at in core.all_partitions():
        if rm_id in rm_ids:
            running.setdefault(at.name, []).append(at.partition)
    found = []
    for change in changes:
        note = ""
        if change.change == REMOVED and not change.key:
            note = _effect(change, running.get(change.partition, []))
        elif change.key.startswith(HISTORY) and not change.partition:
            note = "needs a restart"
        found.append(attrs.evolve(change, note=note) if note else change)
    return tuple(found)


def _effect(change: ConfigChange, partitions: list[Partition]) -> str:
    """Return what the removal of a queue or partition means for these partitions."""
    if not partitions:
        return ""
    if not change.queue:
        applications = sum(len(one.applications) for one in partitions)
        nodes = sum(len(one.nodes) for one in partitions)
        return f"ends {number_of(applications, 'application')} and removes {number_of(nodes, 'node')}"
    queues = [queue for one in partitions if (queue := one.queue(change.queue)) is not None]
    count = sum(len(each.applications) for queue in queues for each in queue.walk() if each.is_leaf)
    if not count:
        return "drains, and is removed"
    return f"drains: accepts no new applications, and is removed after its {number_of(count, 'application')}"
