"""Session of a resource manager: its configuration, its partitions, its callback."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

from yunikorn.accounting.changes import Changes
from yunikorn.config.load import load_config
from yunikorn.errors import (
    ConfigError,
    OptionError,
    PluginError,
    Problem,
    UnknownPlugin,
    UsageError,
    printable,
)
from yunikorn.framework.defaults import import_default
from yunikorn.framework.event_wants import NOTHING_WANTED
from yunikorn.framework.plugin_code import CodeSource, NoNewCode
from yunikorn.interface.callback import Callback, CallbackAdapter, RMFacade, add_plugin, with_rm
from yunikorn.interface.configurations import ConfigSource, ReloadPlan, discard
from yunikorn.interface.delivery import response_of
from yunikorn.interface.messages import (
    ContainerSchedulingState,
    RegisterResourceManagerRequest,
    ReSyncSchedulerCacheArgs,
    SchedulerAction,
    UpdateContainerSchedulingStateRequest,
    UpdateResponse,
)
from yunikorn.interface.rm_partitions import RMPartitions
from yunikorn.interface.session_state import PausedState, SessionStatus
from yunikorn.interface.sinks import EventReceiver, SinkBuffers, Sinks
from yunikorn.interface.update_handler import UpdateHandler
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.scheduling.reload import Reload
from yunikorn.states import SESSION, STOPPED

if TYPE_CHECKING:
    from yunikorn.accounting.event_recorder import EventRecorder
    from yunikorn.accounting.state_reporter import StateReporter
    from yunikorn.config.queues_yaml import PartitionConfig, SchedulerConfig
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.framework.registry import Registry
    from yunikorn.interface.messages import UpdateRequest
    from yunikorn.model.context import CoreContext


_log = logging.getLogger("yunikorn.sessions")


class Session:
    """A registered resource manager with all its objects."""

    def __init__(
        self,
        rm_id: str,
        callback: Callback,
        config: SchedulerConfig,
        registry: Registry,
        core_context: CoreContext,
        failures: PluginFailures,
        introduction: RegisterResourceManagerRequest | None = None,
        buffer_sinks: SinkBuffers | None = None,
        event_receiver: EventReceiver | None = None,
    ) -> None:
        self.rm_id = rm_id
        self.introduction = introduction or RegisterResourceManagerRequest(rm_id)
        """Registration request, with the version, policy group and build of the RM."""
        self.when_over: Callable[[], None] = lambda: self.close("it has not registered again in time")
        """Called when the session was paused for too long."""
        self.number = 0
        """Position in the order of registrations."""
        self.on_active: Callable[[Session], None] = lambda _: None
        """Called when the session may have a decision to make or a message to send: see `activate`."""
        self.config_source = ConfigSource(config.text)
        self.callback_adapter = CallbackAdapter(rm_id, callback, failures)
        self.config = config
        self.state = SESSION.initial
        self._syncing = self._again = False
        """`_syncing` is True during an update of the RM's cache; `_again` if another flush must follow."""
        self._reloads = 0
        """Number of changes of the configuration."""
        self._unsent: UpdateResponse | None = None
        """Response whose delivery an interrupt prevented."""
        self.paused_state: PausedState | None = None
        """Set while the session is paused."""
        self.registry = registry
        self._core_context, self.failures = core_context, failures
        self._failures_sent = len(failures)
        """Number of distinct plugin failures that were sent to the sinks, or precede this session."""
        unrouted = Changes(core_context.clock, core_context.measurements)
        # Its messages concern no partition, and no sink gets events of it.
        unrouted.events.listen(NOTHING_WANTED)
        self.partitions = RMPartitions(rm_id, unrouted)
        self.partitions.priority_classes = config.priority_classes
        self._rm_facade = RMFacade(
            self.callback_adapter, self.partitions.queue_of, self.introduction.preemption_modes
        )
        enabled = registry.configured(config.disabled, config.overriding, config.loaded)
        self.enabled = enabled
        """Plugins of the configuration in use."""
        whole = with_rm(config, enabled, self.callback_adapter)
        self._event_receiver = event_receiver
        self.sinks = Sinks(core_context.clock, failures, self._rm_facade, buffer_sinks)
        self._planned_sinks = self.sinks.plan(whole.sinks, enabled)
        """Event sinks that `open` puts into use."""
        try:
            for partition in whole.partitions:
                self.partitions.by_name[partition.name] = self._make(partition, enabled)
        except BaseException:
            discard(self.partitions.by_name, "the configuration was refused")
            raise
        self._update_handler = UpdateHandler(self.partitions, workers=core_context.policy_calls is not None)
        version = self.introduction.version
        SESSION.fire(self, "register", f"version {version} of the interface" if version else "")

    def open(self) -> None:
        """Open plugins and sinks; a session that is not open can be discarded without effect."""
        for partition in self.partitions:
            partition.open()
        self.sinks.use(self._planned_sinks)
        self._configure_receiver()
        self._listen()

    def _configure_receiver(self) -> None:
        """Send events to the receiver unless the settings of the resource manager keep them from it."""
        receiver = self._event_receiver
        if receiver is not None:
            wants = receiver.configure(self.rm_id, self.introduction.extra_config)
            self.sinks.receive(receiver if wants else None)

    @property
    def label(self) -> str:
        """Name of the resource manager in messages."""
        return f"resource manager {self.rm_id}"

    def on_state_change(self, before: str, reason: str) -> None:
        """Log a state change; called by the state machine."""
        why = f": {reason}" if reason else ""
        _log.info("%s", printable(f"{self.label}: {before} -> {self.state}{why}"))

    def _make(
        self, config: PartitionConfig, registry: Registry, *, opening: bool = True
    ) -> PartitionScheduler:
        name = self.partitions.internal_name(config.name)
        own = self._core_context.branch(self.activate)
        try:
            made = PartitionScheduler(
                name, config, registry, own, self.failures, self._rm_facade, opening=opening, rm_id=self.rm_id
            )
        except BaseException:
            own.timers.close()
            raise
        made.partition.changes.events.source = self.rm_id, config.name
        if self.callback_adapter.wants_states:
            made.report_states(_state_reporter(made))
        return made

    def _listen(self) -> None:
        wanted = self.sinks.wanted
        for partition in self.partitions:
            partition.partition.changes.events.listen(wanted)

    # -- working ------------------------------------------------------------------------------------

    def activate(self) -> None:
        """Put the session on the scheduler's list of active sessions."""
        self.on_active(self)

    @property
    def may_decide_again(self) -> bool:
        """True if the session may have a decision to make without a further call or timer.

        Sort keys that depend on waiting times change although no timer announces this, and a bounded search
        of preemption continues in the next call at the same time.
        """
        if self.paused_state is None:
            for partition in self.partitions.by_name.values():
                if partition.cycle.is_time_dependent or partition.preemption.is_due():
                    return True
        return False

    def take(self, request: UpdateRequest) -> None:
        """Apply an update; a paused session answers RESYNC instead.

        The content of a dropped update is part of the report that the RM makes when it registers again.
        """
        if self.paused_state is None:
            self._update_handler.take(request)
        elif not self.paused_state.sending_resync:
            self.paused_state.resync_due = True

    def flush(self) -> None:
        """Send pending events to the sinks, and one response to the RM."""
        if self.state == STOPPED:  # a sink or callback of another session may have ended this one
            return
        if self._syncing:
            self._again = True
            return
        for partition in self.partitions.by_name.values():
            events = partition.partition.changes.events
            if events.entries:
                self._send_events(events)
        failures = self.failures
        if failures.count != self._failures_sent or failures.reports.pending:
            self._send_failures()
        if self.paused_state is not None:
            self._hold_back(self.paused_state)
            return
        if self._unsent is not None:
            unsent, self._unsent = self._unsent, None
            self._deliver(unsent)
        callback = self.callback_adapter
        changes = self._cache_changes() if callback.keeps_cache else None
        response = self.partitions.response()
        if changes is not None:
            try:
                self._sync_cache(changes)
            except BaseException:
                # After an interrupt the response is sent with the next flush.
                self._unsent = response
                raise
        if response is not None:
            self._deliver(response)
        if self.callback_adapter.wants_states and self.paused_state is None:
            self._send_states()
        if self._again:
            self._again = False
            self.flush()

    def _cache_changes(self) -> ReSyncSchedulerCacheArgs | None:
        changes: ReSyncSchedulerCacheArgs | None = self.callback_adapter.records.cache_changes(
            one.outbox for one in self.partitions.changes()
        )
        return changes

    def _sync_cache(self, changes: ReSyncSchedulerCacheArgs) -> None:
        """Update the RM's cache before the response; calls of the RM from within are answered after that."""
        self._syncing = True
        try:
            self.callback_adapter.sync_cache(changes)
        finally:
            self._syncing = False

    def _deliver(self, response: UpdateResponse) -> None:
        """Deliver a response; an RM whose callback failed is out of step, and is paused."""
        if self.state == STOPPED:
            return
        if not self.callback_adapter.deliver(response) and self.state != STOPPED:
            self.pause("its callback failed to handle a response", reachable=True)

    # -- out of step --------------------------------------------------------------------------------

    def pause(self, reason: str, *, reachable: bool = False) -> None:
        """Pause the session: no decisions are made, the accounting and a limited number of messages are kept.

        `reachable` is True for an RM that is out of step but connected: RESYNC follows with the next flush.
        """
        SESSION.fire(self, "resync" if reachable else "lose", reason)
        self.activate()
        if self.paused_state is None:
            self.paused_state = PausedState(reason, reachable)
            self._give_up_after_a_while(self.paused_state)
        elif reachable:
            self.paused_state.resync_due = True
        else:
            self.paused_state.reachable = False

    def reconnect(self, callback: Callback) -> None:
        """Replace the callback after a new connection, send RESYNC, and restart the registration timeout."""
        callback_adapter = CallbackAdapter(self.rm_id, callback, self.failures)
        reason = f"{self.label} has reconnected and must register again"
        self.pause(reason, reachable=True)
        assert self.paused_state is not None
        self.callback_adapter = self._rm_facade.callback_adapter = callback_adapter
        self.paused_state.reachable = True
        self._give_up_after_a_while(self.paused_state)

    def _give_up_after_a_while(self, paused_state: PausedState) -> None:
        paused_state.end()
        delay = self._core_context.timeouts.session
        if delay is not None:
            paused_state.timer = self._core_context.timers.after(delay, self._time_out)

    def _time_out(self) -> None:
        SESSION.fire(self, "timeout", "it has not registered again in time")
        self.when_over()

    def _hold_back(self, paused_state: PausedState) -> None:
        paused_state.keep(self.partitions.changes())
        for partition in self.partitions:
            if partition.state_reporter is not None:
                partition.state_reporter.drain()
        if paused_state.resync_due and paused_state.reachable:
            response = self.partitions.response() or UpdateResponse()
            response.action = SchedulerAction.RESYNC
            paused_state.resync_due, paused_state.sending_resync = False, True
            delivered = self.callback_adapter.deliver(response)
            paused_state.sending_resync = False
            if not delivered:
                paused_state.resync_due = True
                self.activate()

    def _send_states(self) -> None:
        for partition in self.partitions:
            for one in partition.state_reporter.drain() if partition.state_reporter is not None else ():
                state = ContainerSchedulingState[one.state]
                request = UpdateContainerSchedulingStateRequest(
                    one.application_id, one.key, state, one.reason
                )
                self.callback_adapter.send_state(request)

    def _send_failures(self) -> None:
        """Send failures of plugins that occurred for the first time to the sinks."""
        found = self.failures.since(self._failures_sent)
        if found:
            before, self._failures_sent = self._failures_sent, self._failures_sent + len(found)
            self.sinks.send_failures(found, self._core_context.clock.now(), before)
            self._listen()

    def _send_events(self, events: EventRecorder) -> None:
        if events.entries:
            self.sinks.send(events.drain())
            self._listen()

    # -- what the RM brings along -------------------------------------------------------------------

    def use_callback(self, callback: Callback) -> None:
        """Replace the callback, or use the one in place after its methods have changed.

        Raises `ConfigError` if the configuration cannot be used with the callback; then nothing has changed.
        """
        before, self.callback_adapter = (
            self.callback_adapter,
            CallbackAdapter(self.rm_id, callback, self.failures),
        )
        self._rm_facade.callback_adapter = self.callback_adapter
        if self.callback_adapter.offers == before.offers:
            return
        try:
            self.reload(self.config)
        except ConfigError:
            self.callback_adapter = self._rm_facade.callback_adapter = before
            raise
        for partition in self.partitions:
            wanted = self.callback_adapter.wants_states
            if wanted != (partition.state_reporter is not None):
                partition.report_states(_state_reporter(partition) if wanted else None)

    def add_plugin(self, plugin: object, name: str) -> bool:
        """Add a plugin of the RM and use its offers; return False if it was left out and reported.

        Raises `ConfigError` if an object of the plugin cannot be made; then the plugin is left out, too.
        """
        if not add_plugin(plugin, name, self.rm_id, self.registry, self.failures):
            return False
        try:
            self.reload(self.config)
        except ConfigError:
            self.registry.unregister(name)
            raise
        return True

    def drop_plugin(self, name: str) -> None:
        """Remove a plugin of the RM; raise `UsageError` if there is none, or if it is needed."""
        plugin = self.registry.own_plugin(name)
        if plugin is None:
            raise UsageError(f"{self.label} has not registered a plugin '{name}'")
        self.registry.unregister(name)
        try:
            # Without the code of a file that has changed since.
            code = NoNewCode(self.config.loaded)
            self.reload(load_config(self.config.text, self.registry.permitting(code)))
        except ConfigError as error:
            add_plugin(plugin, name, self.rm_id, self.registry, self.failures)
            raise UsageError(
                f"the configuration in use needs plugin {name} of {self.label}: {error}; "
                "first load a configuration that does not name the plugin"
            ) from error

    # -- configuration ------------------------------------------------------------------------------

    def check(self, config: SchedulerConfig) -> None:
        """Raise `ConfigError` if another configuration cannot be used now. Changes nothing."""
        self.prepare(config, opening=False).discard("it was created for a check only")

    def reload(self, config: SchedulerConfig) -> None:
        """Use another configuration; raise `ConfigError` and change nothing if that is impossible.

        See `docs/decisions/0011`.
        """
        self._use(self.prepare(config))

    def _use(self, reload_plan: ReloadPlan) -> None:
        """Apply a plan, which nothing can prevent any more."""
        self._reloads += 1
        config, gone = reload_plan.config, reload_plan.plan.gone
        reload_plan.plan.apply()
        for name, one in gone.items():
            one.close(f"partition {name} was removed from the configuration")
        before = self.partitions.by_name
        self.partitions.by_name = {
            partition.name: before.get(partition.name) or reload_plan.made[partition.name]
            for partition in config.partitions
        }
        self.config, self.partitions.priority_classes = config, config.priority_classes
        self.enabled = reload_plan.enabled
        for one in reload_plan.made.values():
            one.open()
        # Sinks and callbacks may call the scheduler, so they are called only after the change is complete.
        for one in gone.values():
            self._send_events(one.partition.changes.events)
        self.sinks.use(reload_plan.sinks)
        self._configure_receiver()
        self._listen()
        left = {name: one.partition.changes for name, one in gone.items()}
        response = response_of([(name, one) for name, one in left.items() if not one.outbox.is_empty])
        if self.paused_state is None and response is not None:
            self._deliver(response)

    def prepare(self, config: SchedulerConfig, *, opening: bool = True) -> ReloadPlan:
        """Return the change to another configuration; with `opening` its new plugins are opened already.

        Raises `ConfigError`. A plan that `reload_text` does not use must be discarded.
        """
        enabled = self.registry.configured(config.disabled, config.overriding, config.loaded)
        whole = with_rm(config, enabled, self.callback_adapter)
        made: dict[str, PartitionScheduler] = {}
        plan: Reload | None = None
        try:
            sinks = self.sinks.plan(whole.sinks, enabled)
            plan = Reload(self.partitions.by_name, whole, enabled, opening=opening)
            for name, new in plan.new.items():
                made[name] = self._make(new, enabled, opening=opening)
        except (UnknownPlugin, OptionError, PluginError) as error:
            discard(made, "the configuration was refused")
            if plan is not None:
                plan.discard()
            raise ConfigError([Problem("", str(error))]) from error
        return ReloadPlan(config, plan, made, sinks, enabled, self._reloads)

    def reload_text(
        self, text: str | bytes, *, code: CodeSource | None = None, prepared: ReloadPlan | None = None
    ) -> bool:
        """Use this configuration; return False if it is in use already. Raises like `reload`.

        The `code` of a configuration is what it may load. A plan `prepared` for this text is used, unless the
        session has changed in the meantime so that it does not apply any more.
        """
        if prepared is not None:
            if prepared.since == self._reloads and prepared.plan.is_possible:
                self._use(prepared)
                return True
            prepared.discard("the session has changed in the meantime")
        config = load_config(text, self.registry if code is None else self.registry.permitting(code))
        if not self.differs(config):
            return False
        self.reload(config)
        return True

    def change_settings(self, extra_config: Mapping[str, str]) -> None:
        """Use other settings than those of the registration."""
        if extra_config == self.introduction.extra_config:
            return
        self.introduction = attrs.evolve(self.introduction, extra_config=dict(extra_config))
        self._configure_receiver()
        self._listen()

    def differs(self, config: SchedulerConfig) -> bool:
        """Return True if a configuration is not the one in use."""
        return config.checksum != self.config.checksum or config.loaded != self.config.loaded

    def status(self) -> SessionStatus:
        """Return the status of the session."""
        request = self.introduction
        return SessionStatus(
            self.rm_id,
            self.state,
            self.paused_state.reason if self.paused_state is not None else "",
            request.version,
            self.config_source.group,
            dict(request.build_info),
            dict(request.extra_config),
            tuple(self.partitions.by_name),
            self.config.checksum,
        )

    def close(self, reason: str) -> None:
        """End the session: remove its partitions without further messages to the RM.

        An RM that shuts down needs no messages, and one that registers again reports its allocations:
        releases would make the RM end them.
        """
        if self.state != STOPPED:
            SESSION.fire(self, "shutdown", reason)
        if self.paused_state is not None:
            self.paused_state.end()
        if self._event_receiver is not None:
            self._event_receiver.configure(self.rm_id, None)
        for partition in self.partitions:
            changes = partition.partition.changes
            self._send_events(changes.events)
            partition.close(reason)
            changes.clear_outbox()
            changes.events.drain()
        self.partitions.by_name = {}
        self.sinks.close()


def _state_reporter(at: PartitionScheduler) -> StateReporter:
    made: StateReporter = import_default(
        "yunikorn_service.scheduling_state_reporter"
    ).SchedulingStateReporter(at)
    return made


def make_session(
    request: RegisterResourceManagerRequest,
    callback: Callback,
    config: SchedulerConfig,
    registry: Registry,
    core_context: CoreContext,
    failures: PluginFailures,
    buffer_sinks: SinkBuffers | None,
    event_receiver: EventReceiver | None,
) -> Session:
    """Return a session that is not open; raises `ConfigError` if its plugins cannot be used."""
    try:
        return Session(
            request.rm_id,
            callback,
            config,
            registry,
            core_context,
            failures,
            request,
            buffer_sinks,
            event_receiver,
        )
    except (UnknownPlugin, OptionError, PluginError) as error:
        # Plugins are opened here, not when a text is loaded.
        raise ConfigError([Problem("", str(error))]) from error
