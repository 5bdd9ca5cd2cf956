"""The scheduler, in process: synchronous, steppable, on a clock that is passed in.

Nothing happens without a call. `update` applies an update, `schedule` makes decisions, and `fire_timers`
fires the timers that are due. Each of the three ends with one response to the resource manager, unless the
response would be empty.

Each method that can change a scheduler makes a command and applies it (`yunikorn.interface.commands`); the
other methods only read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from yunikorn.clock import Clock, steady
from yunikorn.config.load import DEFAULT_TEXT, load_config
from yunikorn.config.queues_yaml import SchedulerConfig
from yunikorn.errors import UsageError
from yunikorn.explain.explanations import Explanation, Reason, explain, first_reasons
from yunikorn.framework.plugin_code import CodeSource
from yunikorn.framework.policy_calls import PolicyAnswer, Workers
from yunikorn.framework.registry import Registry
from yunikorn.framework.wake_requests import WakeRequests
from yunikorn.interface import commands, operator_commands
from yunikorn.interface.administration import application_named, partition_named
from yunikorn.interface.callback import Callback
from yunikorn.interface.commands import Answer, Command
from yunikorn.interface.configurations import PolicyGroups
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    UpdateConfigurationRequest,
    UpdateConfigurationResponse,
    UpdateRequest,
)
from yunikorn.interface.session_state import SessionStatus
from yunikorn.interface.sessions import Sessions
from yunikorn.interface.sinks import EventReceiver, SinkBuffers
from yunikorn.model.application import Application
from yunikorn.model.context import CoreContext, Timeouts
from yunikorn.model.core_meter import CoreMeter
from yunikorn.model.owner_usage import UsageCredit
from yunikorn.scheduling.admission.wake_ups import SPACING
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.states import STOPPED


class Scheduler:
    """One scheduler core for any number of resource managers."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        timeouts: Timeouts | None = None,
        configurations: PolicyGroups | None = None,
        buffer_sinks: SinkBuffers | None = None,
        measurements: CoreMeter | None = None,
        event_receiver: EventReceiver | None = None,
        workers: Workers | None = None,
        wake_requests: WakeRequests | None = None,
    ) -> None:
        """Create a scheduler; `buffer_sinks` wraps each event sink, for example `BufferedSinks`.

        `measurements` counts changes and measures decisions, for metrics. `event_receiver` receives the
        events of all resource managers, for example an `EventStore`. With `workers`, such as `PolicyWorkers`,
        policies that may block are called in other threads. `wake_requests` are those of the plugins; a
        replay passes `NoWakeRequests`.
        """
        self.registry = registry
        # Use and waits would be negative, or count twice, after a system clock was set back.
        self.clock = clock = steady(clock)
        self.started = clock.now()
        """Time at which the scheduler was created (ns)."""
        self.configurations = configurations
        """Configurations by policy group; if None, each RM brings its own (`docs/decisions/archive/0035`)."""
        self.measurements = measurements
        core_context = CoreContext.on(clock, timeouts, measurements, workers, wake_requests)
        self._timers = core_context.timers
        self.wake_requests = core_context.wake_requests
        """Wake-ups by plugins, which the next call of `fire_timers` or `schedule` applies."""
        self._woken_at = -1
        """Time at which wake-ups were applied last (ns)."""
        self._sessions = Sessions(registry, core_context, configurations, buffer_sinks, event_receiver)
        self.loaded = self._sessions.loaded
        """Configurations that were loaded ahead of the call that uses them."""
        self.failures = self._sessions.failures
        """Failures of plugins and callbacks."""

    @property
    def operation(self) -> str:
        """Operation in progress, during which commands are refused; empty between operations."""
        return self._sessions.operation

    @operation.setter
    def operation(self, operation: str) -> None:
        self._sessions.operation = operation

    def apply(self, command: Command[Answer]) -> Answer:
        """Apply a command, and return its answer: the only way in which a scheduler changes.

        Raises what the method that makes the command raises. A plugin must not call this during an operation,
        whose objects must not change meanwhile.
        """
        sessions = self._sessions
        try:
            run = command.run
        except AttributeError:
            raise UsageError(f"{command!r} is not a command: see yunikorn.interface.commands") from None
        if sessions.operation:
            self._refuse_reentry(command.method())
        return run(sessions)

    def _refuse_reentry(self, call: str) -> None:
        if self.operation:
            raise UsageError(
                f"{call} was called while the core {self.operation}: a predicate or another plugin must"
                " not call the scheduler. Call it after the current call has returned"
            )

    def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: Callback
    ) -> RegisterResourceManagerResponse:
        """Register a resource manager with its configuration.

        A repeated registration replaces the earlier one: the core removes everything of that RM, including
        pending messages, and the RM has to report its whole state again (`docs/decisions/0031`). The RM gets
        no releases for the removed allocations. Raises `ConfigError` with all problems of the configuration,
        and `UsageError` for a missing or invalid id or an unknown policy group; then nothing has changed.

        The `plugins` of the callback apply to this resource manager's partitions from the start, so its
        configuration may name them (see `register_plugin`).
        """
        return self.apply(commands.RegisterResourceManager(request, callback))

    def update(self, request: UpdateRequest) -> None:
        """Apply an update of a resource manager; raise `UsageError` if the RM is not registered.

        A paused RM has to register first: the update is not applied, and the response is RESYNC.
        """
        self.apply(commands.Update(request))

    # -- sessions -------------------------------------------------------------------------------------

    def pause(self, rm_id: str, reason: str = "the connection was lost") -> None:
        """Pause a resource manager that cannot be reached: no decisions are made, its accounting is kept.

        Its pending messages are kept within bounds. After `Timeouts.session` the RM is stopped. Raises
        `UsageError` if the RM is not registered. See `docs/decisions/0031`.
        """
        self.apply(commands.Pause(rm_id, reason))

    def reconnect(self, rm_id: str, callback: Callback) -> None:
        """Replace the callback of a resource manager that has connected again, and send RESYNC.

        RESYNC comes with all kept messages. The RM stays paused until it registers again, within
        `Timeouts.session` from now. Raises `UsageError` if the RM is not registered.
        """
        self.apply(commands.Reconnect(rm_id, callback))

    def resync(self, rm_id: str, reason: str) -> None:
        """Request a new registration of a resource manager whose state may differ from the core's.

        The RM is paused and gets RESYNC at its callback. Raises `UsageError` if the RM is not registered.
        """
        self.apply(commands.Resync(rm_id, reason))

    def stop(self, rm_id: str) -> None:
        """Remove a resource manager that shuts down, with all its objects; no further message is sent.

        Raises `UsageError` if the RM is not registered.
        """
        self.apply(commands.Stop(rm_id))

    def close(self) -> None:
        """Shut all resource managers down, and wait for buffered sinks to end."""
        self.apply(commands.Close())

    def session_state(self, rm_id: str) -> str:
        """Return `Running` or `Paused`, or `Stopped` for a resource manager that is not registered."""
        session = self._sessions.by_rm.get(rm_id)
        return STOPPED if session is None else session.state

    def sessions(self) -> Iterator[SessionStatus]:
        """Return the status of all resource managers, in the order of their registrations."""
        return (session.status() for session in self._sessions.by_rm.values())

    def session(self, rm_id: str) -> SessionStatus:
        """Return the status of a resource manager; raise `UsageError` if it is not registered."""
        return self._sessions.find(rm_id).status()

    # -- what a resource manager brings along ---------------------------------------------------------

    def change_settings(self, rm_id: str, extra_config: Mapping[str, str]) -> None:
        """Replace the further settings of a registration; those of events apply at once.

        No decision depends on them. Raises `UsageError` if the resource manager is not registered.
        """
        self._refuse_reentry("change_settings")
        self._sessions.to_change(rm_id).change_settings(extra_config)

    def use_callback(self, rm_id: str, callback: Callback) -> None:
        """Replace the callback of a resource manager without a new registration.

        Also required for the same object if it implements other methods than before. Raises `UsageError` if
        the RM is not registered, and `ConfigError` if its configuration cannot be used with the callback;
        then nothing has changed.
        """
        self.apply(commands.UseCallback(rm_id, callback))

    def register_plugin(self, rm_id: str, plugin: object, name: str = "") -> bool:
        """Add a plugin for the partitions of one resource manager, until its session ends.

        `plugin` is a module or an object with hookimpls. Its predicates and event sinks are in use at once,
        after those that the configuration names; configurations that are loaded later may name any of its
        offers. Returns True if the plugin was added; if not, `failures` and `plugins` have the reason. Raises
        `UsageError` if the resource manager is not registered, and `ConfigError` if an object of the plugin
        cannot be made; then nothing has changed.
        """
        return self.apply(commands.RegisterPlugin(rm_id, plugin, name))

    def unregister_plugin(self, rm_id: str, name: str) -> None:
        """Remove the plugin of this name from a resource manager.

        Raises `UsageError` if there is none, or if the configuration in use names an offer of the plugin.
        """
        self.apply(commands.UnregisterPlugin(rm_id, name))

    def plugins(self, rm_id: str, *, in_force: bool = False) -> Registry:
        """Return what an RM's configuration may name, or what it enables and loads; do not change it."""
        session = self._sessions.find(rm_id)
        return session.enabled if in_force else session.registry

    # -- deciding -------------------------------------------------------------------------------------

    def schedule(self, max_decisions: int | None = None) -> int:
        """Make up to `max_decisions` decisions, or all that are possible now; return their number.

        All partitions of all resource managers take turns, also from one call to the next, so the pending
        asks of one do not delay the others.
        """
        if self.wake_requests.pending:
            self._apply_wake_requests()
        return self.apply(commands.Schedule(max_decisions))

    def next_timer(self) -> int | None:
        """Return the time of the earliest timer (ns), or None; the present if plugins wake policies."""
        due = self._timers.next_due()
        if not self.wake_requests.pending:
            return due
        now = self.clock.now()
        # A thread that wakes without end must not keep a simulation at one moment.
        soon = now if now > self._woken_at else now + SPACING
        return soon if due is None else min(due, soon)

    def fire_timers(self) -> int:
        """Fire all timers that are due, and apply wake-ups; return their number."""
        woken = self._apply_wake_requests() if self.wake_requests.pending else 0
        return woken + self.apply(commands.FireTimers())

    def wake(self, rm_id: str, partition: str, kind: str) -> None:
        """Ask the policies of a kind in a partition again, as a plugin does by `context.wake(kind)`.

        Comes into effect at once, or a second after the last time. Has no effect if there is no such
        partition any more.
        """
        self.apply(commands.Wake(rm_id, partition, kind))

    def _apply_wake_requests(self) -> int:
        if self.operation:
            return 0  # the call that follows is refused
        wanted = self.wake_requests.take()
        self._woken_at = self.clock.now()
        for rm_id, partition, kind in wanted:
            self.wake(rm_id, partition, kind)
        return len(wanted)

    def take_policy_answer(self, number: int, answer: PolicyAnswer) -> None:
        """Apply the answer of a policy that a worker has called; the number is that of `Workers.start`.

        The answer to a question that has been withdrawn has no effect.
        """
        self.apply(commands.TakePolicyAnswer(number, answer))

    # -- configuration --------------------------------------------------------------------------------

    def reload_configuration(
        self, rm_id: str, text: str | bytes | None = None, code: CodeSource | None = None
    ) -> bool:
        """Replace the configuration of a resource manager by a text, or read it from its source again.

        Without a text the configuration of the RM's policy group is read again; an RM with its own
        configuration keeps it. Returns False if the text is the one in use. Raises `ConfigError` with all
        problems, or `UsageError` if the source cannot be read; then the old configuration stays in use as a
        whole. With a text, `code` is what the configuration may load, if not what those of the RM may load.
        """
        return self.apply(commands.ReloadConfiguration(rm_id, text, code))

    def check_configuration(self, rm_id: str, text: str | bytes, code: CodeSource | None = None) -> None:
        """Check that a resource manager could use this configuration now; change nothing.

        Raises `ConfigError` with all problems, including those that come from the current state, and
        `UsageError` if the resource manager is not registered. `code` is as for `reload_configuration`.
        """
        session = self._sessions.find(rm_id)
        registry = session.registry if code is None else session.registry.permitting(code)
        session.check(load_config(text or DEFAULT_TEXT, registry))

    def prepare_reload(self, rm_id: str, text: str | bytes, code: CodeSource | None = None) -> None:
        """Prepare `reload_configuration` for a text that the RM's source will return.

        Checks as `check_configuration`, and opens the new plugins, so that nothing can prevent the reload:
        several resource managers get new configurations, or none does. `discard_reloads` must follow.
        """
        session = self._sessions.find(rm_id)
        registry = session.registry if code is None else session.registry.permitting(code)
        config = load_config(text, registry)
        if session.differs(config):
            self._sessions.keep_prepared(rm_id, text, session.prepare(config))

    def discard_reloads(self) -> None:
        """Close the plugins of prepared reloads that were not used."""
        self._sessions.discard_prepared()

    def load_ahead(self, text: str) -> None:
        """Load a configuration of an RM for the next call that uses it; may be called in any thread.

        That call raises the problems of the configuration. Has no effect if RMs may not bring a
        configuration.
        """
        if self.configurations is None or self.configurations.allow_rm_config:
            self.loaded.prepare(text)

    def update_configuration(
        self, rm_id: str, request: UpdateConfigurationRequest
    ) -> UpdateConfigurationResponse:
        """Check a configuration, let the resource manager save it, and use it.

        See `docs/decisions/archive/0038`.

        The response reports success of all three steps, or the reason of the failure, in which case the old
        configuration stays in use. Raises `UsageError` if the resource manager is not registered.
        """
        return self.apply(commands.UpdateConfiguration(rm_id, request))

    def configuration(self, rm_id: str) -> SchedulerConfig:
        """Return the configuration in use by a resource manager, with text and checksum.

        Raises `UsageError` if the resource manager is not registered.
        """
        return self._sessions.find(rm_id).config

    def credit_usage(self, credits: tuple[UsageCredit, ...], known: int) -> None:
        """Count usage before the start for sort policies with `usage_by`, as a history has kept it.

        All usage until the time `known` (ns) is in `credits`; what still runs then counts from that time on.
        Before the first registration, a call without `credits` has what is recovered count from `known` on,
        the time of the start, until the usage before it is credited.
        """
        self.apply(commands.CreditUsage(credits, known))

    # -- operators ------------------------------------------------------------------------------------

    def fail_application(self, rm_id: str, partition: str, app_id: str, reason: str) -> None:
        """Fail an application: its asks are removed, its allocations released.

        See `docs/decisions/archive/0038`.

        The application is `Failing`, then `Failed`. Raises `UsageError` if there is no such application, or
        it has ended.
        """
        self.apply(operator_commands.FailApplication(rm_id, app_id, partition=partition, reason=reason))

    def stop_queue(self, rm_id: str, partition: str, path: str, *, lasting: bool = False) -> bool:
        """Stop new allocations in a queue and its children until `start_queue`.

        The queue keeps its allocations and accepts applications. A `lasting` stop also holds when the RM has
        registered again. Returns True if the queue was running. Raises `UsageError` if there is none.
        """
        return self.apply(operator_commands.StopQueue(rm_id, path, partition=partition, lasting=lasting))

    def start_queue(self, rm_id: str, partition: str, path: str) -> bool:
        """Start a queue that `stop_queue` stopped; return True if the queue was stopped.

        Raises `UsageError` if there is no such queue, or its own configuration stops the queue.
        """
        return self.apply(operator_commands.StartQueue(rm_id, path, partition=partition))

    def stop_partition(self, rm_id: str, partition: str) -> bool:
        """Stop new applications and allocations in a partition until `start_partition`.

        Existing allocations continue. Returns True if the partition was running. Raises `UsageError` if there
        is no such partition.
        """
        return self.apply(operator_commands.StopPartition(rm_id, partition=partition))

    def start_partition(self, rm_id: str, partition: str) -> bool:
        """Start a stopped partition; return True if it was stopped. Raises `UsageError` if there is none."""
        return self.apply(operator_commands.StartPartition(rm_id, partition=partition))

    def drain_node(self, rm_id: str, partition: str, node_id: str) -> bool:
        """Keep new allocations off a node until `undrain_node`, whatever the RM reports about the node.

        Running allocations continue. The node stays drained when it is removed and added again, and when the
        RM registers again. Returns True if the operator did not drain the node before. Raises `UsageError` if
        there is no such node.
        """
        return self.apply(operator_commands.DrainNode(rm_id, node_id, partition=partition))

    def undrain_node(self, rm_id: str, partition: str, node_id: str) -> bool:
        """Undo `drain_node`; a node that its RM drains stays drained.

        Returns True if the operator drained the node. Raises `UsageError` if there is no such node.
        """
        return self.apply(operator_commands.UndrainNode(rm_id, node_id, partition=partition))

    # -- why things wait ------------------------------------------------------------------------------

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Refuse calls of the scheduler by plugins meanwhile."""
        before, self.operation = self.operation, "is explaining pending requests"
        try:
            yield
        finally:
            self.operation = before

    def explain(
        self, rm_id: str, partition: str, app_id: str, allocation_key: str = ""
    ) -> dict[str, Explanation]:
        """Return why each pending ask of an application waits, by allocation key, in their order.

        With an allocation key, only that ask. An explanation has the reasons, the position in the order, and
        the changes that would help. An ask that could be allocated has no reasons; an allocated ask is left
        out. Changes nothing. Raises `UsageError` if there is no such application.
        """
        at, app = self._application(rm_id, partition, app_id)
        with self.explaining():
            return {one.key: one for one in explain(at, app, allocation_key)}

    def _application(self, rm_id: str, partition: str, app_id: str) -> tuple[PartitionScheduler, Application]:
        found = self.partition(rm_id, partition)
        at = partition_named(rm_id, partition, found, self.partitions(rm_id))
        return at, application_named(at, app_id)

    def first_reasons(self, rm_id: str) -> Iterator[tuple[str, int, Reason]]:
        """Yield application, number of replicas and first reason of what is pending or held."""
        for at in self.partitions(rm_id):
            for ask, count, reason in first_reasons(at):
                yield ask.app.id, count, reason

    def origin_of(self, cls: type[object]) -> str:
        """Return the origin of a plugin's class, or its name if no resource manager has the plugin.

        Called from another thread, by a watchdog that names a hanging plugin (`docs/decisions/archive/0045`).
        """
        for session in list(self._sessions.by_rm.values()):
            for offer in session.enabled.offers():
                if offer.cls in (cls, cls.__base__):  # statistics derive a class of their own
                    return offer.origin
        return f"{cls.__module__}.{cls.__qualname__}"

    # -- looking in ---------------------------------------------------------------------------------

    def partition(self, rm_id: str, name: str = "default") -> PartitionScheduler | None:
        """Return a partition of a resource manager, or None if there is none of this name."""
        return self._sessions.to_change(rm_id).partitions.find(name)

    def partitions(self, rm_id: str) -> Iterator[PartitionScheduler]:
        """Return all partitions of a resource manager, in the order of its configuration."""
        return iter(self._sessions.to_change(rm_id).partitions)

    def all_partitions(self) -> list[tuple[str, PartitionScheduler]]:
        """Return the partitions of all resource managers, each with the id of its RM, for reading only.

        Unlike `partitions`, this has no effect on the next decisions.
        """
        sessions = self._sessions.by_rm.values()
        return [(one.rm_id, partition) for one in sessions for partition in one.partitions]
