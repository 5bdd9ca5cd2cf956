"""A resource manager's session: its configuration, its partitions, its callback."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from yunikorn.api import Event
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
from yunikorn.interface.cache_changes import cache_changes
from yunikorn.interface.callback import Callback, CallbackAdapter
from yunikorn.interface.configurations import ConfigSource
from yunikorn.interface.constants import DEFAULT_PARTITION
from yunikorn.interface.delivery import collect
from yunikorn.interface.messages import (
    ContainerSchedulingState,
    RegisterResourceManagerRequest,
    ReSyncSchedulerCacheArgs,
    SchedulerAction,
    UpdateContainerSchedulingStateRequest,
    UpdateResponse,
)
from yunikorn.interface.paused_state import PausedState
from yunikorn.interface.reload_plan import ReloadPlan, discard
from yunikorn.interface.rm_facade import RMFacade
from yunikorn.interface.rm_plugins import add_plugin, with_rm
from yunikorn.interface.session_status import SessionStatus
from yunikorn.interface.sinks import Buffer, Sinks
from yunikorn.interface.update_handler import UpdateHandler
from yunikorn.objects.event_recorder import EventRecorder
from yunikorn.objects.outbox import Outbox
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.scheduling.reload import Reload
from yunikorn.states import SESSION, STOPPED

if TYPE_CHECKING:
    from yunikorn.config.schema import PartitionConfig, SchedulerConfig
    from yunikorn.interface.messages import UpdateRequest
    from yunikorn.objects.core_context import CoreContext
    from yunikorn.objects.node import Node
    from yunikorn.registry import Registry
    from yunikorn.scheduling.plugin_failures import PluginFailures


_log = logging.getLogger("yunikorn.sessions")


class Session:
    """One resource manager and everything of it."""

    def __init__(
        self,
        rm_id: str,
        callback: Callback,
        config: SchedulerConfig,
        registry: Registry,
        core_context: CoreContext,
        failures: PluginFailures,
        introduction: RegisterResourceManagerRequest | None = None,
        buffer_sinks: Buffer | None = None,
    ) -> None:
        self.rm_id = rm_id
        self.introduction = introduction or RegisterResourceManagerRequest(rm_id)
        """How it registered: its version, policy group, and what it says of itself."""
        self.when_over: Callable[[], None] = lambda: self.close("it has not registered again in time")
        """What is done when it was paused for too long."""
        self.number = 0
        """Its place in the order of registrations."""
        self.on_active: Callable[[Session], None] = lambda _: None
        """Called when it may have something to decide or to say: see `activate`."""
        self.config_source = ConfigSource(config.text)
        self.callback_adapter = CallbackAdapter(rm_id, callback, failures)
        self.config = config
        self.state = SESSION.initial
        self._syncing = self._again = False
        """Whether the RM is told of its cache, and whether it calls from within."""
        self._unsent: UpdateResponse | None = None
        """A response that an interrupt kept from being sent."""
        self.paused_state: PausedState | None = None
        """Set while it is paused."""
        self.registry = registry
        self._core_context, self.failures = core_context, failures
        self._faults_told = len(failures)
        """How many kinds of failure of plugins its sinks need not be told."""
        self.unrouted = Outbox()
        """What has to be said about things of no partition of this RM."""
        self._partitions: dict[str, PartitionScheduler] = {}
        self._rm_facade = RMFacade(self.callback_adapter, self._queue_of)
        enabled = registry.without(config.disabled)
        whole = with_rm(config, enabled, self.callback_adapter)
        self.sinks = Sinks(core_context.clock, failures, self._rm_facade, buffer_sinks)
        self._outlets = self.sinks.make(whole.sinks, enabled)
        """What `open` is going to use."""
        try:
            for partition in whole.partitions:
                self._partitions[partition.name] = self._make(partition, enabled)
        except BaseException:
            discard(self._partitions, "the configuration was refused")
            raise
        self._update_handler = UpdateHandler(self)
        version = self.introduction.version
        SESSION.fire(self, "register", f"version {version} of the interface" if version else "")

    def open(self) -> None:
        """Open its plugins and sinks: until then the session is only made, and can be discarded."""
        for partition in self._partitions.values():
            partition.open()
        self.sinks.use(self._outlets)
        self._listen()

    @property
    def label(self) -> str:
        """What a message calls it."""
        return f"resource manager {self.rm_id}"

    def on_state_change(self, before: str, reason: str) -> None:
        """Called by the state machine."""
        why = f": {reason}" if reason else ""
        _log.info("%s", printable(f"{self.label}: {before} -> {self.state}{why}"))

    def _make(self, config: PartitionConfig, registry: Registry) -> PartitionScheduler:
        # Partitions of different RMs may have one name: inside they carry their RM's (decision 39).
        name = f"[{self.rm_id}]{config.name}"
        own = self._core_context.branch(self.activate)
        try:
            made = PartitionScheduler(name, config, registry, own, self.failures, self._rm_facade)
        except BaseException:
            own.timers.close()
            raise
        if self.callback_adapter.hears_states:
            made.report_states()
        return made

    def _queue_of(self, app_id: str) -> str:
        """Where an application is, or was when it ended; empty when it is forgotten."""
        for at in self._partitions.values():
            app = at.partition.applications.get(app_id) or at.partition.ended.get(app_id)
            if app is not None:
                return app.queue.path if app.queue is not None else app.queue_name
        return ""

    def _listen(self) -> None:
        listening = bool(self.sinks)
        for partition in self._partitions.values():
            partition.partition.event_recorder.listen(wanted=listening)

    # -- finding ------------------------------------------------------------------------------------

    @property
    def partitions(self) -> Iterator[PartitionScheduler]:
        """Its partitions, in the order of the configuration."""
        return iter(self._partitions.values())

    def partition(self, name: str) -> PartitionScheduler | None:
        """The partition of this name, as the RM writes it; empty is `default` (facts §20.5)."""
        prefix = f"[{self.rm_id}]"
        return self._partitions.get(name.removeprefix(prefix) or DEFAULT_PARTITION)

    def node(self, node_id: str, partition_name: str) -> tuple[PartitionScheduler, Node] | None:
        """A node and its partition: the one named, or whichever has it."""
        wanted = self.partition(partition_name) if partition_name else None
        for partition in [wanted] if wanted is not None else self._partitions.values():
            node = partition.partition.nodes.get(node_id)
            if node is not None:
                return partition, node
        return None

    # -- working ------------------------------------------------------------------------------------

    def activate(self) -> None:
        """Have the scheduler look at this session: it may have something to decide, or to say."""
        self.on_active(self)

    @property
    def stays_active(self) -> bool:
        """True if it may have something to decide without a further call or timer of it.

        Keys that age change with time though no timer says when, and a bounded look of preemption goes on in
        the next call at the same instant.
        """
        if self.paused_state is None:
            for partition in self._partitions.values():
                if partition.cycle.ages or partition.preemption.is_due():
                    return True
        return False

    def take(self, request: UpdateRequest) -> None:
        """Take in an update; while the session is paused it is answered by RESYNC instead.

        What it says will be in the report that the RM makes when it registers again.
        """
        if self.paused_state is None:
            self._update_handler.take(request)
        elif not self.paused_state.telling:
            self.paused_state.owes_resync = True

    def flush(self) -> None:
        """Hand out what there is to say, events to the sinks and one response to the RM."""
        if self.state == STOPPED:  # by another that was called before
            return
        if self._syncing:
            self._again = True
            return
        for partition in self._partitions.values():
            self._send_events(partition.partition.event_recorder)
        self._send_faults()
        if self.paused_state is not None:
            self._hold_back(self.paused_state)
            return
        if self._unsent is not None:
            unsent, self._unsent = self._unsent, None
            self._deliver(unsent)
        changes = self._cache_changes()
        response = collect(self._outboxes())
        if changes is not None:
            try:
                self._sync_cache(changes)
            except BaseException:
                # An interrupt: what it kept from being sent is sent next time.
                self._unsent = response
                raise
        if response is not None:
            self._deliver(response)
        if self.callback_adapter.hears_states and self.paused_state is None:
            self._send_states()
        if self._again:
            self._again = False
            self.flush()

    def _cache_changes(self) -> ReSyncSchedulerCacheArgs | None:
        if "resync_scheduler_cache" not in self.callback_adapter.methods:
            return None
        return cache_changes(outbox for _, outbox in self._outboxes())

    def _sync_cache(self, changes: ReSyncSchedulerCacheArgs) -> None:
        """Tell of the cache before the response; what the RM does from within has its response after that."""
        self._syncing = True
        try:
            self.callback_adapter.sync_cache(changes)
        finally:
            self._syncing = False

    def _deliver(self, response: UpdateResponse) -> None:
        """Hand over a response; one that the callback failed to take leaves the RM out of step."""
        if self.state == STOPPED:
            return
        if not self.callback_adapter.deliver(response) and self.state != STOPPED:
            self.pause("its callback failed to take a response", reachable=True)

    # -- out of step --------------------------------------------------------------------------------

    def pause(self, reason: str, *, reachable: bool = False) -> None:
        """The RM is lost: no decisions, its books are kept, and what there is to say, within bounds.

        `reachable` if it is there but out of step: then it is told RESYNC with the next flush.
        """
        SESSION.fire(self, "resync" if reachable else "lose", reason)
        self.activate()
        if self.paused_state is None:
            self.paused_state = PausedState(reason, reachable)
            self._give_up_after_a_while(self.paused_state)
        elif reachable:
            self.paused_state.owes_resync = True
        else:
            self.paused_state.reachable = False

    def reconnect(self, callback: Callback) -> None:
        """The RM listens again, here: it is told RESYNC, and has its time to register anew."""
        reason = f"{self.label} has connected again: it has to register"
        self.pause(reason, reachable=True)
        assert self.paused_state is not None
        self.callback_adapter = self._rm_facade.callback_adapter = CallbackAdapter(
            self.rm_id, callback, self.failures
        )
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
        paused_state.keep(outbox for _, outbox in self._outboxes())
        for partition in self._partitions.values():
            if partition.state_reporter is not None:
                partition.state_reporter.drain()
        if paused_state.owes_resync and paused_state.reachable:
            response = collect(self._outboxes()) or UpdateResponse()
            response.action = SchedulerAction.RESYNC
            paused_state.owes_resync, paused_state.telling = False, True
            told = self.callback_adapter.deliver(response)
            paused_state.telling = False
            if not told:
                paused_state.owes_resync = True
                self.activate()

    def _send_states(self) -> None:
        for partition in self._partitions.values():
            for one in partition.state_reporter.drain() if partition.state_reporter is not None else ():
                state = ContainerSchedulingState[one.state]
                request = UpdateContainerSchedulingStateRequest(
                    one.application_id, one.key, state, one.reason
                )
                self.callback_adapter.tell_state(request)

    def _send_faults(self) -> None:
        """Tell the sinks of what plugins did wrong for the first time."""
        found = self.failures.since(self._faults_told)
        if found:
            self._faults_told += len(found)
            now = self._core_context.clock.now()
            self.sinks.send(
                [Event("PLUGIN", failure.plugin, message=failure.message, timestamp=now) for failure in found]
            )
            self._listen()

    def _send_events(self, event_recorder: EventRecorder) -> None:
        events = event_recorder.drain()
        if events:
            self.sinks.send(events)
            self._listen()

    def _outboxes(self) -> Iterator[tuple[str, Outbox]]:
        yield "", self.unrouted
        for name, partition in self._partitions.items():
            yield name, partition.partition.outbox

    # -- what the RM brings along -------------------------------------------------------------------

    def use_callback(self, callback: Callback) -> None:
        """Talk to the RM through another callback, or through one that offers other methods now.

        Raises `ConfigError` when the configuration cannot be used with it; then nothing has changed.
        """
        before, self.callback_adapter = (
            self.callback_adapter,
            CallbackAdapter(self.rm_id, callback, self.failures),
        )
        self._rm_facade.callback_adapter = self.callback_adapter
        if self.callback_adapter.methods == before.methods:
            return
        try:
            self.reload(self.config)
        except ConfigError:
            self.callback_adapter = self._rm_facade.callback_adapter = before
            raise
        for partition in self._partitions.values():
            partition.report_states(wanted=self.callback_adapter.hears_states)

    def add_plugin(self, plugin: object, name: str) -> bool:
        """Take in a plugin of the RM and use it; returns False for one that was left out, and reported.

        Raises `ConfigError` when it cannot be made; then it was left out, too.
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
        """Do without a plugin of the RM; raises `UsageError` if there is none, or it is needed."""
        plugin = self.registry.own_plugin(name)
        if plugin is None:
            raise UsageError(f"{self.label} has registered no plugin '{name}'")
        self.registry.unregister(name)
        try:
            self.reload(load_config(self.config.text, self.registry))
        except ConfigError as error:
            add_plugin(plugin, name, self.rm_id, self.registry, self.failures)
            raise UsageError(
                f"plugin {name} of {self.label} is needed by the configuration in use: {error}; "
                "load one that does not name it first"
            ) from error

    # -- configuration ------------------------------------------------------------------------------

    def check(self, config: SchedulerConfig) -> None:
        """Whether another configuration can be used now; raises `ConfigError` if not. Changes nothing."""
        self._prepare(config).discard("it was only checked")

    def reload(self, config: SchedulerConfig) -> None:
        """Use another configuration from now on; raises `ConfigError` and changes nothing (decision 11)."""
        reload_plan = self._prepare(config)
        gone = reload_plan.plan.gone
        reload_plan.plan.apply()
        for name, one in gone.items():
            one.close(f"partition {name} was removed from the configuration")
        self._partitions = {
            partition.name: self._partitions.get(partition.name) or reload_plan.made[partition.name]
            for partition in config.partitions
        }
        self.config = config
        for one in reload_plan.made.values():
            one.open()
        # Only now may anybody be called: who calls back finds everything in its place.
        for one in gone.values():
            self._send_events(one.partition.event_recorder)
        self.sinks.use(reload_plan.outlets)
        self._listen()
        last = collect((name, one.partition.outbox) for name, one in gone.items())
        if self.paused_state is None and last is not None:
            self._deliver(last)

    def _prepare(self, config: SchedulerConfig) -> ReloadPlan:
        enabled = self.registry.without(config.disabled)
        whole = with_rm(config, enabled, self.callback_adapter)
        made: dict[str, PartitionScheduler] = {}
        try:
            outlets = self.sinks.make(whole.sinks, enabled)
            plan = Reload(self._partitions, whole, enabled)
            for name, new in plan.new.items():
                made[name] = self._make(new, enabled)
        except (UnknownPlugin, OptionError, PluginError) as error:
            discard(made, "the configuration was refused")
            raise ConfigError([Problem("", str(error))]) from error
        return ReloadPlan(plan, made, outlets)

    def reload_text(self, text: str | bytes) -> bool:
        """Use this configuration; returns False if it is the one in use. Raises `ConfigError`, as above."""
        config = load_config(text, self.registry)
        if config.checksum == self.config.checksum:
            return False
        self.reload(config)
        return True

    def status(self) -> SessionStatus:
        """How it is doing."""
        said = self.introduction
        return SessionStatus(
            self.rm_id,
            self.state,
            self.paused_state.reason if self.paused_state is not None else "",
            said.version,
            self.config_source.group,
            dict(said.build_info),
            dict(said.extra_config),
            tuple(self._partitions),
            self.config.checksum,
        )

    def close(self, reason: str) -> None:
        """The RM is gone: its partitions are removed, without a word to it.

        It said itself that it goes, or comes anew and reports what it has: told that all of that was
        released, it would end it.
        """
        if self.state != STOPPED:
            SESSION.fire(self, "shutdown", reason)
        if self.paused_state is not None:
            self.paused_state.end()
        for partition in self._partitions.values():
            self._send_events(partition.partition.event_recorder)
            partition.close(reason)
            partition.partition.outbox.drain()
            partition.partition.event_recorder.drain()
        self._partitions = {}
        self.sinks.close()
