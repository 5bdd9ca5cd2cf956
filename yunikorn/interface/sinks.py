"""Event sinks of a configuration, each isolated from the failures of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from yunikorn.api import Context, Event, EventSink, ResourceManager
from yunikorn.framework.registry import EVENT_SINK
from yunikorn.interface.callback import RM

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from yunikorn.clock import Clock
    from yunikorn.config.queues_yaml import PluginRef
    from yunikorn.framework.registry import Registry
    from yunikorn.scheduling.plugin_failures import PluginFailures


Buffer = Callable[[EventSink, str], EventSink]
"""Wrapper of a sink with the given origin, such as a buffer."""


@attrs.define
class Outlet:
    """An event sink in use, with its reference in the configuration."""

    ref: PluginRef
    sink: EventSink
    origin: str
    on: bool = True


class Sinks:
    """The event sinks of one resource manager."""

    def __init__(
        self,
        clock: Clock,
        failures: PluginFailures,
        rm: ResourceManager | None = None,
        buffer: Buffer | None = None,
    ) -> None:
        self._buffer = buffer
        self._context = Context("", clock.now, rm)
        self._failures = failures
        self._outlets: list[Outlet] = []

    def __bool__(self) -> bool:
        return any(outlet.on for outlet in self._outlets)

    def make(self, refs: Iterable[PluginRef], registry: Registry) -> list[Outlet]:
        """Return the sinks that a configuration names; a sink with an unchanged reference is kept.

        A sink that was switched off is made again, and thus gets another chance. Raises `UnknownPlugin`,
        `OptionError` or `PluginError`; no new sink is in use yet.
        """
        running = [outlet for outlet in self._outlets if outlet.on]
        made = []
        for ref in refs:
            kept = next((outlet for outlet in running if outlet.ref == ref), None)
            if kept is not None:
                running.remove(kept)
                made.append(kept)
                continue
            sink = registry.make(EVENT_SINK, ref.name, ref.options)
            origin = registry.find(EVENT_SINK, ref.name).origin
            if self._buffer is not None and ref.name != RM:
                # No buffer for the RM: its callback is always called in the core's thread, so that it gets
                # events and responses in their order.
                sink = self._buffer(sink, origin)
            made.append(Outlet(ref, sink, origin))
        return made

    def use(self, outlets: list[Outlet]) -> None:
        """Send events to these sinks only.

        All others are closed before any new sink is opened, since both may write to the same file.
        """
        before, self._outlets = self._outlets, outlets
        for outlet in before:
            if not any(outlet is new for new in outlets):
                self._guard(outlet, "closing", outlet.sink.closed)
        for outlet in outlets:
            context = self._failures.context_of(outlet.origin, self._context)
            if any(outlet is old for old in before):
                self._guard(outlet, "reloading", outlet.sink.reloaded, context)
            else:
                self._guard(outlet, "opening", outlet.sink.opened, context)

    def send(self, batch: Sequence[Event]) -> None:
        """Send events to every sink; a sink that raises is switched off and reported."""
        for outlet in self._outlets:
            if outlet.on:
                self._guard(outlet, "sending events", outlet.sink.send, batch)

    def _guard(self, outlet: Outlet, operation: str, call: Callable[..., object], *arguments: object) -> None:
        if not self._failures.call_guarded(
            outlet.origin, f"{operation} (the sink is switched off)", call, *arguments
        ):
            outlet.on = False

    def close(self) -> None:
        """Close all sinks."""
        self.use([])
