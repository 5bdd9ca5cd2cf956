"""Event sinks of a configuration, each isolated from the failures of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from yunikorn.api import Context, Event, EventSink, ResourceManager
from yunikorn.framework.instances import PluginInstances
from yunikorn.framework.registry import EVENT_SINK
from yunikorn.interface.callback import RM

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from yunikorn.clock import Clock
    from yunikorn.config.queues_yaml import PluginRef
    from yunikorn.framework.instances import InstancePlan
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.framework.registry import Registry


Buffer = Callable[[EventSink, str], EventSink]
"""Wrapper of a sink with the given origin, such as a buffer."""


class Sinks:
    """The event sinks of one resource manager; a sink that raises is switched off until the next reload."""

    def __init__(
        self,
        clock: Clock,
        failures: PluginFailures,
        rm: ResourceManager | None = None,
        buffer: Buffer | None = None,
    ) -> None:
        self._buffer = buffer
        context = Context("", clock.now, rm)
        self._instances = PluginInstances(context, failures, on_failure="the sink is switched off")

    def __bool__(self) -> bool:
        return any(one.is_open for one in self._instances)

    def plan(self, refs: Iterable[PluginRef], registry: Registry) -> InstancePlan:
        """Return a plan of the sinks that a configuration names.

        Raises `UnknownPlugin`, `OptionError` or `PluginError`; no new sink is in use yet.
        """
        plan = self._instances.plan(registry)
        for ref in refs:
            # No buffer for the RM: its callback is always called in the core's thread, so that it gets events
            # and responses in their order.
            plan.make(EVENT_SINK, ref.name, ref.options, wrap=self._buffer if ref.name != RM else None)
        return plan

    def use(self, plan: InstancePlan) -> None:
        """Send events to the planned sinks only.

        All others are closed before any new sink is opened, since both may write to the same file.
        """
        self._instances.use(plan, close_first=True)

    def send(self, batch: Sequence[Event]) -> None:
        """Send events to every sink; a sink that raises is switched off and reported."""
        for one in self._instances:
            if one.is_open:
                self._instances.guard(one, "sending events", "send", batch)

    def close(self) -> None:
        """Close all sinks."""
        self._instances.close()
