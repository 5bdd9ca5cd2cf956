"""Event sinks of a configuration, each isolated from the failures of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from yunikorn.accounting.event_batch import EventBatch
from yunikorn.api import Context, Event, EventSink, ResourceManager
from yunikorn.containment import contained
from yunikorn.event_types import EventType
from yunikorn.framework.event_wants import NOTHING_WANTED, Wanted, read_wants, union_of
from yunikorn.framework.instances import PluginInstances
from yunikorn.framework.kinds import EVENT_SINK
from yunikorn.interface.callback import RM

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from yunikorn.clock import Clock
    from yunikorn.config.queues_yaml import PluginRef
    from yunikorn.framework.instances import InstancePlan, PluginInstance
    from yunikorn.framework.plugin_failures import PluginFailure, PluginFailures
    from yunikorn.framework.registry import Registry


SWITCHED_OFF = "the sink is switched off"
"""Remark on the failure of a sink."""


class BufferedSink(EventSink):
    """A sink that takes events for another one, and may switch that one off by itself."""

    is_off = False
    """True once it takes no more events."""


class SinkBuffers(Protocol):
    """Factory of buffers, such as `yunikorn_service.buffered_sinks`."""

    def __call__(self, sink: EventSink, origin: str) -> BufferedSink:
        """Return a sink that takes events for `sink`, whose name and package `origin` says."""
        ...

    def finish(self) -> None:
        """Wait for the closed sinks."""
        ...


class EventReceiver(Protocol):
    """Receiver of the events of all resource managers, which belongs to no configuration."""

    failures_seen: int
    """Number of distinct plugin failures that were received, or precede the first one."""

    @property
    def wanted(self) -> Wanted:
        """Events to be received, which never change."""
        ...

    def append(self, batch: EventBatch) -> None:
        """Receive events, oldest first, in the core's thread; must return soon, and must not raise."""
        ...

    def configure(self, rm_id: str, settings: Mapping[str, str] | None) -> bool:
        """Apply the settings of a resource manager, or forget them at the end of its session (None).

        Returns False if the resource manager keeps its events from the receiver.
        """
        ...


class Sinks:
    """The event sinks of one resource manager; a sink that raises is switched off until the next reload."""

    def __init__(
        self,
        clock: Clock,
        failures: PluginFailures,
        rm: ResourceManager | None = None,
        buffers: SinkBuffers | None = None,
    ) -> None:
        """Create without sinks and receiver, which `use` and `receive` add."""
        self._buffers = buffers
        self._receiver: EventReceiver | None = None
        self._failures = failures
        self._wanted: dict[PluginInstance, Wanted] = {}
        """Events that each sink wants; read on first use."""
        context = Context("", clock.now, rm)
        self._instances = PluginInstances(context, failures, on_failure=SWITCHED_OFF)

    @property
    def wanted(self) -> Wanted:
        """Events that at least one sink or the receiver wants."""
        wanted = [self._wanted_by(one) for one in self._instances if _is_open(one)]
        if self._receiver is not None:
            wanted.append(self._receiver.wanted)
        return union_of(wanted)

    def receive(self, receiver: EventReceiver | None) -> None:
        """Send events to another receiver, or to none."""
        self._receiver = receiver

    def plan(self, refs: Iterable[PluginRef], registry: Registry) -> InstancePlan:
        """Return a plan of the sinks that a configuration names.

        Raises `UnknownPlugin`, `OptionError` or `PluginError`; no new sink is in use yet.
        """
        for one in self._instances:
            _is_open(one)
        plan = self._instances.plan(registry)
        for ref in refs:
            # No buffer for the RM: its callback is always called in the core's thread, so that it gets events
            # and responses in their order.
            wrap = self._buffers if ref.name != RM else None
            plan.make_if_usable(EVENT_SINK, ref.name, ref.options, wrap=wrap, required=ref.required)
        return plan

    def use(self, plan: InstancePlan) -> None:
        """Send events to the planned sinks only.

        All others are closed before any new sink is opened, since both may write to the same file.
        """
        self._instances.use(plan, close_first=True)
        self._wanted = {}

    def _wanted_by(self, one: PluginInstance) -> Wanted:
        """Return the events that a sink wants, as read after it was opened or reloaded."""
        found = self._wanted.get(one)
        if found is None:
            found = self._wanted[one] = self._read_wants(one)
        return found

    def _read_wants(self, one: PluginInstance) -> Wanted:
        """Return the events that a sink wants; a sink without a valid answer is switched off and reported."""
        try:
            return read_wants(one.plugin.wants)
        except contained() as error:
            self._failures.report(one.origin, f"reading its wants ({SWITCHED_OFF})", error)
            self._instances.close_one(one)
            return NOTHING_WANTED

    def send(self, batch: EventBatch) -> None:
        """Send each sink the events that it wants; a sink that raises is switched off and reported."""
        if self._receiver is not None:
            self._receiver.append(batch.selected(self._receiver.wanted))
        for one in () if batch.is_silent else self._instances:
            if _is_open(one):
                selected = batch.selected(self._wanted_by(one))
                if selected is batch or selected:
                    self._instances.guard(one, "sending events", "send", selected)

    def send_failures(self, failures: Iterable[PluginFailure], now: int, before: int = 0) -> None:
        """Send events of failures to the sinks, except to the sink that failed; `before` precede these.

        A sink that reports a failure whenever it receives an event would otherwise keep itself busy.
        """
        events = [
            (failure.plugin, Event(EventType.PLUGIN, failure.plugin, message=failure.message, timestamp=now))
            for failure in failures
        ]
        if self._receiver is not None:
            # Each resource manager has sinks of its own, but all have this receiver.
            new = EventBatch([event for _, event in events[max(0, self._receiver.failures_seen - before) :]])
            self._receiver.failures_seen = max(self._receiver.failures_seen, before + len(events))
            self._receiver.append(new.selected(self._receiver.wanted))
        for one in self._instances:
            batch = EventBatch([event for plugin, event in events if plugin != one.origin])
            if batch and _is_open(one) and (selected := batch.selected(self._wanted_by(one))):
                self._instances.guard(one, "sending events", "send", selected)

    def close(self) -> None:
        """Close all sinks."""
        self._instances.close()


def _is_open(one: PluginInstance) -> bool:
    """Return True if a sink takes events, after noting a failure in its own thread."""
    # Not `isinstance`, which runs code of a plugin that has a `__class__` of its own.
    if issubclass(type(one.plugin), BufferedSink) and one.plugin.is_off:
        one.is_open = False
    return one.is_open
