"""Reload of a configuration: validated against the running partitions, then applied as a difference.

See `docs/decisions/0011`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from yunikorn.errors import ConfigError, OptionError, PluginError, Problem, UnknownPlugin
from yunikorn.scheduling.policies import Policies
from yunikorn.text import number_of

if TYPE_CHECKING:
    from yunikorn.config.queues_yaml import PartitionConfig, QueueConfig, SchedulerConfig
    from yunikorn.framework.registry import Registry
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler


@attrs.frozen
class _Change:
    running: PartitionScheduler
    config: PartitionConfig
    policies: Policies


class Reload:
    """Prepared change from the running partitions to a new configuration.

    Preparation has no side effects, and raises `ConfigError` with all reasons against the change.
    """

    def __init__(
        self,
        running: Mapping[str, PartitionScheduler],
        config: SchedulerConfig,
        registry: Registry,
        *,
        opening: bool = True,
    ) -> None:
        """Prepare a change; with `opening` new plugins are opened, so `discard` or `apply` has to follow."""
        self._opening = opening
        wanted = {partition.name: partition for partition in config.partitions}
        self.new = {name: partition for name, partition in wanted.items() if name not in running}
        """Configurations of the partitions to create, by name."""
        self.gone = {name: partition for name, partition in running.items() if name not in wanted}
        """Partitions to close, by name."""
        self._registry = registry
        self._changes: list[_Change] = []
        problems: list[Problem] = []
        for index, partition in enumerate(config.partitions):
            if partition.name in running:
                self._plan(running[partition.name], partition, f"partitions[{index}]", problems)
        if problems:
            self.discard()
            raise ConfigError(problems)

    def _plan(
        self, running: PartitionScheduler, config: PartitionConfig, path: str, problems: list[Problem]
    ) -> None:
        tree = running.partition.queues
        _check_types(tree.root, config.root, path, problems)
        try:
            plan = running.instances.plan(self._registry, opening=self._opening)
            clock, failures, rm = running.partition.clock, running.failures, running.context.rm
            policies = Policies.of(config, plan, tree, clock, failures, rm)
            self._changes.append(_Change(running, config, policies))
        except (UnknownPlugin, OptionError, PluginError) as error:
            problems.append(Problem(path, str(error)))

    @property
    def is_possible(self) -> bool:
        """True unless queues that a changed type would affect have become non-empty since the preparation."""
        problems: list[Problem] = []
        for change in self._changes:
            _check_types(change.running.partition.queues.root, change.config.root, "", problems)
        return not problems

    def discard(self) -> None:
        """Close the new plugins: the change is not applied."""
        for change in self._changes:
            change.policies.plan.discard()

    def apply(self) -> None:
        """Apply the changes to the running partitions."""
        for change in self._changes:
            change.running.reconfigure(change.config, change.policies)


def _check_types(queue: Queue, config: QueueConfig, path: str, problems: list[Problem]) -> None:
    """Report non-empty queues that would change their type between leaf and parent."""
    if queue.is_leaf == config.parent and not queue.is_empty:
        if queue.is_leaf:
            why = f"{number_of(len(queue.applications), 'application')}, which a parent queue cannot have"
        else:
            why = f"{number_of(len(queue.children), 'child queue')}, which a leaf queue cannot have"
        problems.append(Problem(path, f"queue {queue.path} cannot change its type now: it has {why}"))
    for below in config.queues:
        child = queue.children.get(below.name)
        if child is not None:
            _check_types(child, below, path, problems)
