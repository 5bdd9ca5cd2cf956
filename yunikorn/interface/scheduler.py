"""The scheduler, in process: synchronous, steppable, on a clock that is passed in.

Nothing happens without a call. `update` applies an update, `schedule` makes decisions, and `fire_timers`
fires the timers that are due. Each of the three ends with one response to the resource manager, unless the
response would be empty.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from yunikorn.clock import MICROSECOND, Clock
from yunikorn.config.load import DEFAULT_TEXT, load_config
from yunikorn.config.queues_yaml import SchedulerConfig
from yunikorn.errors import ConfigError, UsageError
from yunikorn.explain.explain import Explanation, Reason, explain, first_reasons
from yunikorn.framework.plugin_failures import PluginFailures
from yunikorn.framework.policy_calls import PolicyAnswer, Workers
from yunikorn.framework.registry import Registry
from yunikorn.interface.active_sessions import ActiveSessions
from yunikorn.interface.administration import (
    OperatorActions,
    OperatorCalls,
    application_named,
    partition_named,
)
from yunikorn.interface.buffered_sinks import BufferedSinks
from yunikorn.interface.callback import Callback, plugin_name, registry_for
from yunikorn.interface.checks import check_registration
from yunikorn.interface.configuration_change import change_configuration
from yunikorn.interface.configurations import (
    ConfigSource,
    Configurations,
    LoadedAhead,
    ReloadPlan,
    log_refusal,
    refused_registration_logged,
)
from yunikorn.interface.core_activity import CoreActivity, core_activity, origin_of
from yunikorn.interface.explaining import explaining
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    UpdateConfigurationRequest,
    UpdateConfigurationResponse,
    UpdateRequest,
)
from yunikorn.interface.session import Session, make_session
from yunikorn.interface.session_state import SessionStatus
from yunikorn.interface.sinks import Buffer, EventReceiver
from yunikorn.model.application import Application
from yunikorn.model.context import CoreContext, Timeouts
from yunikorn.model.measurements import Measurements
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.states import STOPPED


class Scheduler(OperatorCalls):
    """One scheduler core for any number of resource managers."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        timeouts: Timeouts | None = None,
        configurations: Configurations | None = None,
        buffer_sinks: Buffer | None = None,
        measurements: Measurements | None = None,
        event_receiver: EventReceiver | None = None,
        workers: Workers | None = None,
    ) -> None:
        """Create a scheduler; `buffer_sinks` wraps each event sink, for example `BufferedSinks`.

        `measurements` counts changes and measures decisions, for metrics. `event_receiver` receives the
        events of all resource managers, for example an `EventStore`. With `workers`, such as `PolicyWorkers`,
        policies that may block are called in other threads.
        """
        self.registry = registry
        self.clock = clock
        self.started = clock.now()
        """Time at which the scheduler was created (ns)."""
        self.configurations = configurations
        """Configurations by policy group; if None, each RM brings its own (`docs/decisions/0035`)."""
        self.loaded = LoadedAhead(registry)
        """Configurations that were loaded ahead of the call that uses them."""
        self.failures = PluginFailures()
        """Failures of plugins and callbacks."""
        self._buffer_sinks, self._event_receiver = buffer_sinks, event_receiver
        self._numbered = False
        self._core_context = CoreContext.on(clock, timeouts, measurements, workers)
        self.measurements = measurements
        self._timers = self._core_context.timers
        self._sessions: dict[str, Session] = {}
        self._prepared: dict[str, tuple[str | bytes, ReloadPlan]] = {}
        """Text and plan of each reload that was prepared, by RM."""
        self._active = ActiveSessions()
        self._actions = OperatorActions()
        self._registered = 0
        """Number of registrations so far."""
        self._failures_seen = 0
        """Number of distinct plugin failures that all sessions have sent to their sinks."""
        self._registering = False
        self.operation = ""
        """Operation in progress; re-entrant calls are refused while it is set."""

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
        self._refuse_reentry("register_resource_manager")
        if self._registering:
            raise UsageError("a plugin must not register a resource manager in `opened` or `closed`")
        check_registration(request)
        self._number_allocations()
        config_source = ConfigSource.of(request, self.configurations)
        registry = registry_for(request.rm_id, callback, self.registry, self.failures)
        with refused_registration_logged(request.rm_id, secret=config_source.group is None):
            config = self.loaded.load(config_source.text, config_source.registry(registry))
            self._registering = True
            try:
                session = make_session(
                    request,
                    callback,
                    config,
                    registry,
                    self._core_context,
                    self.failures,
                    self._buffer_sinks,
                    self._event_receiver,
                )
            finally:
                self._registering = False
        session.config_source = config_source
        self._replace(request.rm_id, session)
        return RegisterResourceManagerResponse()

    def _replace(self, rm_id: str, session: Session) -> None:
        """End the earlier session of an RM and open the new one; plugins cannot register in between."""
        known = self._sessions.pop(rm_id, None)
        self._registering = True
        try:
            if known is not None:
                # Close the earlier session before the new one opens: both may write to the same file.
                self._end(known, f"resource manager {rm_id} registered again")
            self._sessions[rm_id] = session
            self._registered += 1
            self._actions.repeat(rm_id, session.partitions)
            session.number, session.on_active = self._registered, self._active.add
            session.activate()
            session.when_over = lambda: self._end(session, "it has not registered again in time")
            try:
                session.open()
            except BaseException:
                self._end(session, "it was interrupted during its registration")
                raise
        finally:
            self._registering = False

    def update(self, request: UpdateRequest) -> None:
        """Apply an update of a resource manager; raise `UsageError` if the RM is not registered.

        A paused RM has to register first: the update is not applied, and the response is RESYNC.
        """
        if self.operation:
            self._refuse_reentry("update")
        session = self._sessions.get(request.rm_id) or self._session(request.rm_id)
        self._active.add(session)
        self.operation = "is applying an update"
        try:
            session.take(request)
        finally:
            self.operation = ""
        session.flush()

    def _refuse_reentry(self, call: str) -> None:
        """Refuse a call that a plugin makes during an operation, whose objects must not change meanwhile."""
        if self.operation:
            raise UsageError(
                f"{call} was called while the core {self.operation}: a predicate or another plugin must"
                " not call the scheduler. Call it after the current call has returned"
            )

    def _number_allocations(self) -> None:
        """Start the numbers of allocations at the time of the first registration (microseconds).

        A restarted core thus continues above all numbers that it used before. An RM that recovers node by
        node may not yet have reported the allocation that has the next number.
        """
        if not self._numbered:
            start = 1 + max(0, self.clock.now()) // MICROSECOND
            self._core_context = attrs.evolve(self._core_context, serial=itertools.count(start))
            self._numbered = True

    # -- sessions -------------------------------------------------------------------------------------

    def pause(self, rm_id: str, reason: str = "the connection was lost") -> None:
        """Pause a resource manager that cannot be reached: no decisions are made, its accounting is kept.

        Its pending messages are kept within bounds. After `Timeouts.session` the RM is stopped. Raises
        `UsageError` if the RM is not registered. See `docs/decisions/0031`.
        """
        session = self._session_for("pause", rm_id)
        session.pause(reason)
        session.flush()

    def reconnect(self, rm_id: str, callback: Callback) -> None:
        """Replace the callback of a resource manager that has connected again, and send RESYNC.

        RESYNC comes with all kept messages. The RM stays paused until it registers again, within
        `Timeouts.session` from now. Raises `UsageError` if the RM is not registered.
        """
        session = self._session_for("reconnect", rm_id)
        session.reconnect(callback)
        session.flush()

    def resync(self, rm_id: str, reason: str) -> None:
        """Request a new registration of a resource manager whose state may differ from the core's.

        The RM is paused and gets RESYNC at its callback. Raises `UsageError` if the RM is not registered.
        """
        session = self._session_for("resync", rm_id)
        session.pause(reason, reachable=True)
        session.flush()

    def stop(self, rm_id: str) -> None:
        """Remove a resource manager that shuts down, with all its objects; no further message is sent.

        Raises `UsageError` if the RM is not registered.
        """
        self._end(self._session_for("stop", rm_id), f"resource manager {rm_id} shut down")

    def close(self) -> None:
        """Shut all resource managers down, and wait for buffered sinks to end."""
        for rm_id in list(self._sessions):
            self._end(self._session_for("close", rm_id), "the scheduler was shut down")
        if isinstance(self._buffer_sinks, BufferedSinks):
            self._buffer_sinks.finish()

    def session_state(self, rm_id: str) -> str:
        """Return `Running` or `Paused`, or `Stopped` for a resource manager that is not registered."""
        session = self._sessions.get(rm_id)
        return STOPPED if session is None else session.state

    def sessions(self) -> Iterator[SessionStatus]:
        """Return the status of all resource managers, in the order of their registrations."""
        return (session.status() for session in self._sessions.values())

    def session(self, rm_id: str) -> SessionStatus:
        """Return the status of a resource manager; raise `UsageError` if it is not registered."""
        return self._session(rm_id).status()

    def _end(self, session: Session, reason: str) -> None:
        if self._sessions.get(session.rm_id) is session:
            del self._sessions[session.rm_id]
        self._active.remove(session)
        self._actions.note(session.rm_id, session.partitions)
        session.close(reason)

    # -- what a resource manager brings along ---------------------------------------------------------

    def change_settings(self, rm_id: str, extra_config: Mapping[str, str]) -> None:
        """Replace the further settings of a registration; those of events apply at once.

        No decision depends on them. Raises `UsageError` if the resource manager is not registered.
        """
        self._session_for("change_settings", rm_id).change_settings(extra_config)

    def use_callback(self, rm_id: str, callback: Callback) -> None:
        """Replace the callback of a resource manager without a new registration.

        Also required for the same object if it implements other methods than before. Raises `UsageError` if
        the RM is not registered, and `ConfigError` if its configuration cannot be used with the callback;
        then nothing has changed.
        """
        session = self._session_for("use_callback", rm_id)
        session.use_callback(callback)
        session.flush()

    def register_plugin(self, rm_id: str, plugin: object, name: str = "") -> bool:
        """Add a plugin for the partitions of one resource manager, until its session ends.

        `plugin` is a module or an object with hookimpls. Its predicates and event sinks are in use at once,
        after those that the configuration names; configurations that are loaded later may name any of its
        offers. Returns True if the plugin was added; if not, `failures` and `plugins` have the reason. Raises
        `UsageError` if the resource manager is not registered, and `ConfigError` if an object of the plugin
        cannot be made; then nothing has changed.
        """
        session = self._session_for("register_plugin", rm_id)
        taken = session.add_plugin(plugin, name or plugin_name(plugin))
        session.flush()
        return taken

    def unregister_plugin(self, rm_id: str, name: str) -> None:
        """Remove the plugin of this name from a resource manager.

        Raises `UsageError` if there is none, or if the configuration in use names an offer of the plugin.
        """
        session = self._session_for("unregister_plugin", rm_id)
        session.drop_plugin(name)
        session.flush()

    def plugins(self, rm_id: str, *, in_force: bool = False) -> Registry:
        """Return what an RM's configuration may name, or what it enables and loads; do not change it."""
        session = self._session(rm_id)
        return session.enabled if in_force else session.registry

    # -- deciding -------------------------------------------------------------------------------------

    def schedule(self, max_decisions: int | None = None) -> int:
        """Make up to `max_decisions` decisions, or all that are possible now; return their number.

        All partitions of all resource managers take turns, also from one call to the next, so the pending
        asks of one do not delay the others.
        """
        if self.operation:
            self._refuse_reentry("schedule")
        sessions = self._active.in_order()
        self.operation = "is making decisions"
        try:
            taken = self._active.decide(sessions, max_decisions)
        finally:
            self.operation = ""
        self._flush(sessions)
        return taken

    def _flush(self, sessions: list[Session]) -> None:
        """Send the pending messages of these sessions, or of all after a new plugin failure."""
        failures = self.failures
        if failures.count != self._failures_seen or failures.reports.pending:
            self._failures_seen = len(failures)
            sessions = list(self._sessions.values())
        try:
            for session in sessions:
                session.flush()
        except BaseException:
            # After an interrupt, sessions that were not flushed must stay active.
            for one in sessions:
                if self._sessions.get(one.rm_id) is one:
                    self._active.add(one)
            raise

    def next_timer(self) -> int | None:
        """Return the time of the earliest timer (ns), or None."""
        return self._timers.next_due()

    def fire_timers(self) -> int:
        """Fire all timers that are due; return their number."""
        self._refuse_reentry("fire_timers")
        fired = self._timers.fire_due()
        if fired:
            self._flush(self._active.in_order())
        return fired

    def take_policy_answer(self, number: int, answer: PolicyAnswer) -> None:
        """Apply the answer of a policy that a worker has called; the number is that of `Workers.start`.

        The answer to a question that has been withdrawn has no effect.
        """
        self._refuse_reentry("take_policy_answer")
        calls = self._core_context.policy_calls
        self.operation = "is applying the answer of a policy"
        try:
            known = calls is not None and calls.take(number, answer)
        finally:
            self.operation = ""
        if known:
            self._flush(self._active.in_order())

    # -- configuration --------------------------------------------------------------------------------

    def reload_configuration(self, rm_id: str, text: str | bytes | None = None) -> bool:
        """Replace the configuration of a resource manager by a text, or read it from its source again.

        Without a text the configuration of the RM's policy group is read again; an RM with its own
        configuration keeps it. Returns False if the text is the one in use. Raises `ConfigError` with all
        problems, or `UsageError` if the source cannot be read; then the old configuration stays in use as a
        whole.
        """
        session = self._session_for("reload_configuration", rm_id)
        new = session.config_source.again(self.configurations) if text is None else text or DEFAULT_TEXT
        if new is None:
            return False
        text_prepared, plan = self._prepared.pop(rm_id, (None, None))
        if plan is not None and (text is not None or text_prepared != new):
            plan.discard("another configuration is used")
            plan = None
        try:
            changed = session.reload_text(new, from_source=text is None, prepared=plan)
        except ConfigError as error:
            log_refusal(session.label, error, secret=text is not None)
            raise
        session.flush()
        return changed

    def check_configuration(self, rm_id: str, text: str | bytes, folder: Path | None = None) -> None:
        """Check that a resource manager could use this configuration now; change nothing.

        Raises `ConfigError` with all problems, including those that come from the current state, and
        `UsageError` if the resource manager is not registered. A configuration of the operator in a `folder`
        may load plugins.
        """
        session = self._session(rm_id)
        registry = session.registry if folder is None else session.registry.trusting(folder)
        session.check(load_config(text or DEFAULT_TEXT, registry))

    def prepare_reload(self, rm_id: str, text: str | bytes, folder: Path | None = None) -> None:
        """Prepare `reload_configuration` for a text that the RM's source will return.

        Checks as `check_configuration`, and opens the new plugins, so that nothing can prevent the reload:
        several resource managers get new configurations, or none does. `discard_reloads` must follow.
        """
        session = self._session(rm_id)
        registry = session.registry if folder is None else session.registry.trusting(folder)
        config = load_config(text, registry)
        if session.differs(config):
            self._prepared[rm_id] = text, session.prepare(config)

    def discard_reloads(self) -> None:
        """Close the plugins of prepared reloads that were not used."""
        while self._prepared:
            _, (_, plan) = self._prepared.popitem()
            plan.discard("the configuration was not used")

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
        """Check a configuration, let the resource manager save it, and use it (`docs/decisions/0038`).

        The response reports success of all three steps, or the reason of the failure, in which case the old
        configuration stays in use. Raises `UsageError` if the resource manager is not registered.
        """
        session = self._session_for("update_configuration", rm_id)
        reason = session.config_source.refusal(self.configurations)
        if reason:
            return UpdateConfigurationResponse(False, session.config.text, reason)
        answer = change_configuration(session, request.configs, self.loaded)
        session.flush()
        return answer

    def configuration(self, rm_id: str) -> SchedulerConfig:
        """Return the configuration in use by a resource manager, with text and checksum.

        Raises `UsageError` if the resource manager is not registered.
        """
        return self._session(rm_id).config

    def _at_work(self, rm_id: str, name: str) -> PartitionScheduler:
        return partition_named(rm_id, name, self.partition(rm_id, name), self.partitions(rm_id))

    # -- why things wait ------------------------------------------------------------------------------

    def explain(
        self, rm_id: str, partition: str, app_id: str, allocation_key: str = ""
    ) -> dict[str, Explanation]:
        """Return why each pending ask of an application waits, by allocation key, in their order.

        With an allocation key, only that ask. An explanation has the reasons, the position in the order, and
        the changes that would help. An ask that could be allocated has no reasons; an allocated ask is left
        out. Changes nothing. Raises `UsageError` if there is no such application.
        """
        at, app = self._application(rm_id, partition, app_id)
        with explaining(self):
            return {one.key: one for one in explain(at, app, allocation_key)}

    def _application(self, rm_id: str, partition: str, app_id: str) -> tuple[PartitionScheduler, Application]:
        at = self._at_work(rm_id, partition)
        return at, application_named(at, app_id)

    def first_reasons(self, rm_id: str) -> Iterator[tuple[str, int, Reason]]:
        """Yield application, number of replicas and first reason of what is pending or held."""
        for at in self.partitions(rm_id):
            for ask, count, reason in first_reasons(at):
                yield ask.app.id, count, reason

    def core_activity(self, thread_id: int) -> CoreActivity | None:
        """Return the current activity of a thread in which this scheduler works, or None for no such thread.

        Called from another thread, by a watchdog that names a hanging plugin (`docs/decisions/0045`).
        """
        return core_activity(thread_id, lambda cls: origin_of(cls, list(self._sessions.values())))

    # -- looking in ---------------------------------------------------------------------------------

    def partition(self, rm_id: str, name: str = "default") -> PartitionScheduler | None:
        """Return a partition of a resource manager, or None if there is none of this name."""
        return self._session_to_change(rm_id).partitions.find(name)

    def partitions(self, rm_id: str) -> Iterator[PartitionScheduler]:
        """Return all partitions of a resource manager, in the order of its configuration."""
        return iter(self._session_to_change(rm_id).partitions)

    def all_partitions(self) -> list[tuple[str, PartitionScheduler]]:
        """Return the partitions of all resource managers, each with the id of its RM, for reading only.

        Unlike `partitions`, this has no effect on the next decisions.
        """
        return [(one.rm_id, partition) for one in self._sessions.values() for partition in one.partitions]

    def _session_for(self, call: str, rm_id: str) -> Session:
        """Return the session that a call is about to change."""
        self._refuse_reentry(call)
        return self._session_to_change(rm_id)

    def _session_to_change(self, rm_id: str) -> Session:
        session = self._session(rm_id)
        session.activate()
        return session

    def _session(self, rm_id: str) -> Session:
        session = self._sessions.get(rm_id)
        if session is None:
            known = ", ".join(self._sessions) or "none"
            raise UsageError(f"no resource manager '{rm_id}' is registered; registered: {known}")
        return session
