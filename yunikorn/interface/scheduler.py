"""The scheduler, in process: synchronous, steppable, on a clock that is passed in.

Nothing happens by itself. An update is taken in when it is made; decisions are taken when `schedule`
is called; timers fire when `fire_timers` is called. Each of the three ends with one response to the
resource manager, if there is anything to say.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from operator import attrgetter

import attrs

from yunikorn.clock import MICROSECOND, Clock
from yunikorn.config.load import DEFAULT_TEXT, load_config
from yunikorn.config.schema import SchedulerConfig
from yunikorn.errors import (
    ConfigError,
    OptionError,
    PluginError,
    Problem,
    UnknownPlugin,
    UsageError,
)
from yunikorn.interface.buffered_sinks import BufferedSinks
from yunikorn.interface.callback import Callback
from yunikorn.interface.checks import check_registration
from yunikorn.interface.configuration_change import change_configuration
from yunikorn.interface.configurations import ConfigSource, Configurations
from yunikorn.interface.core_activity import CoreActivity, core_activity
from yunikorn.interface.loaded_ahead import LoadedAhead
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    UpdateConfigurationRequest,
    UpdateConfigurationResponse,
    UpdateRequest,
)
from yunikorn.interface.refused_configuration import log_refusal, refused_registration_logged
from yunikorn.interface.rm_plugins import plugin_name, registry_for
from yunikorn.interface.session import Session
from yunikorn.interface.session_status import SessionStatus
from yunikorn.interface.sinks import Buffer
from yunikorn.objects.application import Application
from yunikorn.objects.core_context import CoreContext
from yunikorn.objects.partition import Partition
from yunikorn.objects.timeouts import Timeouts
from yunikorn.registry import Registry
from yunikorn.scheduling.explain import Explanation, Reason, explain, first_reasons
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.scheduling.plugin_failures import PluginFailures
from yunikorn.scheduling.queue_admin import start_partition, start_queue, stop_partition, stop_queue
from yunikorn.states import STOPPED
from yunikorn.suggestions import suggest

BEGINNING = (0, 0)
"""A place before all others."""
_number = attrgetter("number")
_place = attrgetter("place")


@attrs.frozen(slots=True)
class PartitionRotation:
    """A partition that takes turns with others."""

    place: tuple[int, int]
    """In the order of registrations, and of the configuration."""
    session: Session
    partition: PartitionScheduler


class Scheduler:
    """One scheduler core for any number of resource managers."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        timeouts: Timeouts | None = None,
        configurations: Configurations | None = None,
        buffer_sinks: Buffer | None = None,
    ) -> None:
        """`buffer_sinks` puts something before each event sink, such as `BufferedSinks` do."""
        self.registry = registry
        self.clock = clock
        self.configurations = configurations
        """What registrations run on, by policy group; None leaves it to each to bring one (decision 35)."""
        self.loaded = LoadedAhead(registry)
        """Configurations that were loaded before a call that uses them."""
        self.failures = PluginFailures()
        """What plugins did wrong while scheduling."""
        self._buffer_sinks = buffer_sinks
        self._numbered = False
        self._core_context = CoreContext.on(clock, timeouts)
        self._timers = self._core_context.timers
        self._sessions: dict[str, Session] = {}
        self._active: dict[Session, None] = {}
        """Sessions that may have something to decide or to say; no other is looked at."""
        self._registered = 0
        """Registrations so far."""
        self._faults_seen = 0
        """Kinds of failures of plugins that all sessions have sent to their sinks."""
        self._last = BEGINNING
        """The place of the partition that was served last, behind which `schedule` goes on."""
        self._registering = False
        self._operation = ""
        """Operation in progress; re-entrant calls are refused while it is set."""

    def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: Callback
    ) -> RegisterResourceManagerResponse:
        """A resource manager introduces itself, and says which configuration it wants.

        One that is known already starts anew: everything of it is forgotten, whether in flight or not, and
        it has to report all that it has (decision 31). It is not told of the end of what it had. Raises
        `ConfigError` with all problems of the configuration, `UsageError` without an id, with one that
        cannot be used, or where the policy group is unknown; then nothing has changed.

        Plugins that the callback has in `plugins` hold for this resource manager's partitions from the
        start, so its configuration may name them (see `register_plugin`).
        """
        self._stand_aside("register_resource_manager")
        if self._registering:
            raise UsageError("a plugin must not register a resource manager in `opened` or `closed`")
        check_registration(request)
        self._number_allocations()
        config_source = ConfigSource.of(request, self.configurations)
        registry = registry_for(request.rm_id, callback, self.registry, self.failures)
        with refused_registration_logged(request.rm_id, secret=config_source.group is None):
            config = self.loaded.load(config_source.text, registry)
            session = self._open(request, callback, config, registry)
        session.config_source = config_source
        self._replace(request.rm_id, session)
        return RegisterResourceManagerResponse()

    def _replace(self, rm_id: str, session: Session) -> None:
        """End the session that an RM had, and open this one; no plugin may register in between."""
        known = self._sessions.pop(rm_id, None)
        self._registering = True
        try:
            if known is not None:
                # Before anything of the new one is opened: both may write to the same file.
                self._end(known, f"resource manager {rm_id} registered again")
            self._sessions[rm_id] = session
            self._registered += 1
            session.number, session.on_active = self._registered, self._activate
            session.activate()
            session.when_over = lambda: self._end(session, "it has not registered again in time")
            try:
                session.open()
            except BaseException:
                self._end(session, "it was interrupted while it registered")
                raise
        finally:
            self._registering = False

    def update(self, request: UpdateRequest) -> None:
        """Take in what a resource manager reports; raises `UsageError` if it is not registered.

        A paused one has to register first: nothing is taken in, and it is told RESYNC.
        """
        self._stand_aside("update")
        session = self._session(request.rm_id)
        session.activate()
        self._operation = "takes in an update"
        try:
            session.take(request)
        finally:
            self._operation = ""
        session.flush()

    def _stand_aside(self, call: str) -> None:
        """Refuse a call that a plugin makes while the core acts: what it acts upon must not change."""
        if self._operation:
            raise UsageError(
                f"{call} was called while the core {self._operation}: a predicate or another plugin must"
                " not call the scheduler. Do it when the call that you are in has returned"
            )

    def _number_allocations(self) -> None:
        """Begin to count at the time of the first registration (microseconds).

        A core that is started again counts on behind all that it numbered before: an RM that recovers node
        by node may not yet have reported an allocation that has the next number.
        """
        if not self._numbered:
            start = 1 + max(0, self.clock.now()) // MICROSECOND
            self._core_context = attrs.evolve(self._core_context, serial=itertools.count(start))
            self._numbered = True

    # -- sessions -------------------------------------------------------------------------------------

    def pause(self, rm_id: str, reason: str = "the connection was lost") -> None:
        """A resource manager is out of reach: no decisions for it, its books are kept (decision 31).

        What there is to say to it is kept within bounds. After `Timeouts.session` it is stopped. Raises
        `UsageError` if it is not registered.
        """
        session = self._session_for("pause", rm_id)
        session.pause(reason)
        session.flush()

    def reconnect(self, rm_id: str, callback: Callback) -> None:
        """A resource manager is back, at this callback: it is told RESYNC, with what was kept for it.

        It stays paused until it registers again, for which it has `Timeouts.session` from now. Raises
        `UsageError` if it is not registered.
        """
        session = self._session_for("reconnect", rm_id)
        session.reconnect(callback)
        session.flush()

    def resync(self, rm_id: str, reason: str) -> None:
        """Have a resource manager register again: its books and those of the core may differ.

        It is paused and told RESYNC at its callback. Raises `UsageError` if it is not registered.
        """
        session = self._session_for("resync", rm_id)
        session.pause(reason, reachable=True)
        session.flush()

    def stop(self, rm_id: str) -> None:
        """A resource manager shuts down: everything of it is removed, and it is told nothing more.

        Raises `UsageError` if it is not registered.
        """
        self._end(self._session_for("stop", rm_id), f"resource manager {rm_id} shut down")

    def close(self) -> None:
        """Shut everything down."""
        for rm_id in list(self._sessions):
            self._end(self._session_for("close", rm_id), "the scheduler was shut down")
        if isinstance(self._buffer_sinks, BufferedSinks):
            self._buffer_sinks.finish()

    def session_state(self, rm_id: str) -> str:
        """`Running` or `Paused`; `Stopped` for one that is not registered, or not any more."""
        session = self._sessions.get(rm_id)
        return STOPPED if session is None else session.state

    def sessions(self) -> Iterator[SessionStatus]:
        """How all resource managers are doing, in the order in which they registered."""
        return (session.status() for session in self._sessions.values())

    def session(self, rm_id: str) -> SessionStatus:
        """How a resource manager is doing; raises `UsageError` if it is not registered."""
        return self._session(rm_id).status()

    def _end(self, session: Session, reason: str) -> None:
        if self._sessions.get(session.rm_id) is session:
            del self._sessions[session.rm_id]
        self._active.pop(session, None)
        session.close(reason)

    # -- what a resource manager brings along ---------------------------------------------------------

    def use_callback(self, rm_id: str, callback: Callback) -> None:
        """Talk to a resource manager through another callback from now on, without a new registration.

        Also for the same object, when it offers other methods than before. Raises `UsageError` if it is
        not registered, `ConfigError` if its configuration cannot be used then; then nothing has changed.
        """
        session = self._session_for("use_callback", rm_id)
        session.use_callback(callback)
        session.flush()

    def register_plugin(self, rm_id: str, plugin: object, name: str = "") -> bool:
        """Take in a plugin that holds for the partitions of one resource manager, until that goes.

        `plugin` is a module or an object with hookimpls. Its predicates and event sinks are in use at
        once, after those that the configuration names; configurations that are loaded from now on may
        name whatever it offers. Returns whether it was taken; if not, `failures` and `plugins` say why.
        Raises `UsageError` if the resource manager is not registered, `ConfigError` if an object of it
        cannot be made; then nothing has changed.
        """
        session = self._session_for("register_plugin", rm_id)
        taken = session.add_plugin(plugin, name or plugin_name(plugin))
        session.flush()
        return taken

    def unregister_plugin(self, rm_id: str, name: str) -> None:
        """Have a resource manager's plugin of this name go before it does.

        Raises `UsageError` if there is none, or if the configuration in use names what it offers.
        """
        session = self._session_for("unregister_plugin", rm_id)
        session.drop_plugin(name)
        session.flush()

    def plugins(self, rm_id: str) -> Registry:
        """All plugins that a resource manager's configuration may name, its own included; do not change."""
        return self._session(rm_id).registry

    # -- deciding -------------------------------------------------------------------------------------

    def schedule(self, max_decisions: int | None = None) -> int:
        """Take up to `max_decisions` decisions, or all that can be taken now; returns how many.

        All partitions of all resource managers take turns, also from one call to the next, so that the
        backlog of one does not delay the others.
        """
        self._stand_aside("schedule")
        sessions = self._in_order()
        self._operation = "decides"
        try:
            taken = self._decide(sessions, max_decisions)
        finally:
            self._operation = ""
        self._flush(sessions)
        return taken

    def _activate(self, session: Session) -> None:
        self._active[session] = None

    def _in_order(self) -> list[Session]:
        """The active sessions in the order in which they registered."""
        return sorted(self._active, key=_number)

    def _decide(self, sessions: list[Session], most: int | None) -> int:
        taken = 0
        last: PartitionRotation | None = None
        busy = self._in_turn(sessions)
        while busy and (most is None or taken < most):
            turn = busy.popleft()
            if not busy:
                # Nobody to take turns with.
                taken += turn.partition.decide_up_to(None if most is None else most - taken)
                if most is not None and taken >= most:
                    last = turn
                    busy.append(turn)
            elif turn.partition.decide() is not None:
                taken += 1
                last = turn
                busy.append(turn)
        if most != 0:
            self._last = last.place if last is not None and busy else BEGINNING
        unfinished = {turn.session for turn in busy} if busy else ()
        for session in sessions:
            if session not in unfinished and not session.stays_active:
                self._active.pop(session, None)
        return taken

    def _in_turn(self, sessions: list[Session]) -> deque[PartitionRotation]:
        """The partitions that may have something to decide, beginning behind the one that was served last."""
        rotation: list[PartitionRotation] = []
        for session in sessions:
            if session.paused_state is None:
                for index, partition in enumerate(session.partitions):
                    rotation.append(PartitionRotation((session.number, index), session, partition))
        if len(rotation) < 2:
            return deque(rotation)
        begin = bisect_right(rotation, self._last, key=_place)
        return deque(rotation[begin:] + rotation[:begin])

    def _flush(self, sessions: list[Session]) -> None:
        """Hand out what these sessions have to say, and all if sinks have to hear of a failure."""
        if len(self.failures) != self._faults_seen:
            self._faults_seen = len(self.failures)
            sessions = list(self._sessions.values())
        try:
            for session in sessions:
                session.flush()
        except BaseException:
            # An interrupt: those that were not reached are as they were.
            self._active.update((one, None) for one in sessions if self._sessions.get(one.rm_id) is one)
            raise

    def next_timer(self) -> int | None:
        """When the earliest timer is due (ns), or None."""
        return self._timers.next_due()

    def fire_timers(self) -> int:
        """Do what is due by now; returns how many timers fired."""
        self._stand_aside("fire_timers")
        fired = self._timers.fire_due()
        if fired:
            self._flush(self._in_order())
        return fired

    # -- configuration --------------------------------------------------------------------------------

    def reload_configuration(self, rm_id: str, text: str | bytes | None = None) -> bool:
        """Give a resource manager another configuration, or what its source says now; all or nothing.

        Without a text the configuration of its policy group is read again; one that brought its own keeps
        it. Returns False if it is the same text (facts §1.12). Raises `ConfigError` with all problems, or
        `UsageError` if the source cannot be read; then the old configuration stays in use as a whole.
        """
        session = self._session_for("reload_configuration", rm_id)
        new = session.config_source.again(self.configurations) if text is None else text or DEFAULT_TEXT
        if new is None:
            return False
        try:
            changed = session.reload_text(new)
        except ConfigError as error:
            log_refusal(session.label, error, secret=text is not None)
            raise
        session.flush()
        return changed

    def check_configuration(self, rm_id: str, text: str | bytes) -> None:
        """Whether a resource manager could be given this configuration now; changes nothing.

        Raises `ConfigError` with all problems, those that come from what is there at this moment included,
        and `UsageError` if the resource manager is not registered.
        """
        session = self._session(rm_id)
        session.check(load_config(text or DEFAULT_TEXT, session.registry))

    def load_ahead(self, text: str) -> None:
        """Load a configuration of an RM that the next call will use; may be called in any thread.

        That call raises what is wrong with it. Does nothing where RMs may not bring a configuration.
        """
        if self.configurations is None or self.configurations.allow_rm_config:
            self.loaded.prepare(text)

    def update_configuration(
        self, rm_id: str, request: UpdateConfigurationRequest
    ) -> UpdateConfigurationResponse:
        """Check a configuration, have the resource manager save it, and use it (decision 38).

        The answer says whether all three went well, else why not; then the old configuration stays in
        use. Raises `UsageError` if the resource manager is not registered.
        """
        session = self._session_for("update_configuration", rm_id)
        reason = session.config_source.refusal(self.configurations)
        if reason:
            return UpdateConfigurationResponse(False, session.config.text, reason)
        answer = change_configuration(session, request.configs, self.loaded)
        session.flush()
        return answer

    def configuration(self, rm_id: str) -> SchedulerConfig:
        """What a resource manager runs on, with its text and checksum; raises `UsageError` as above."""
        return self._session(rm_id).config

    def fail_application(self, rm_id: str, partition: str, app_id: str, reason: str) -> None:
        """Mark an application for failure: its requests go, its allocations are released (decision 38).

        It is `Failing`, then `Failed`. Raises `UsageError` if there is no such application, or it has ended.
        """
        self._stand_aside("fail_application")
        at, app = self._application(rm_id, partition, app_id)
        at.partition.fail_application(app, reason or f"application {app_id} was failed by its RM")
        self._session(rm_id).flush()

    def _open(
        self,
        request: RegisterResourceManagerRequest,
        callback: Callback,
        config: SchedulerConfig,
        registry: Registry,
    ) -> Session:
        try:
            return Session(
                request.rm_id,
                callback,
                config,
                registry,
                self._core_context,
                self.failures,
                request,
                self._buffer_sinks,
            )
        except (UnknownPlugin, OptionError, PluginError) as error:
            # What is only needed to run is not asked for when a text is checked, such as `ldap`.
            raise ConfigError([Problem("", str(error))]) from error

    # -- stopping and starting ------------------------------------------------------------------------

    def stop_queue(self, rm_id: str, partition: str, path: str) -> bool:
        """Place nothing new in a queue and below it until `start_queue`; returns whether it ran until now.

        It keeps its work and accepts applications. Raises `UsageError` where there is no such queue.
        """
        return self._switch("stop_queue", rm_id, partition, lambda at: stop_queue(at, path))

    def start_queue(self, rm_id: str, partition: str, path: str) -> bool:
        """Start a queue that `stop_queue` stopped; returns whether it was stopped.

        Raises `UsageError` where there is no such queue, or its own configuration stops it.
        """
        return self._switch("start_queue", rm_id, partition, lambda at: start_queue(at, path))

    def stop_partition(self, rm_id: str, partition: str) -> bool:
        """Take and place nothing new in a partition until `start_partition`; its work goes on.

        Returns whether it ran until now. Raises `UsageError` where there is no such partition.
        """
        return self._switch("stop_partition", rm_id, partition, stop_partition)

    def start_partition(self, rm_id: str, partition: str) -> bool:
        """Start a stopped partition; returns whether it was stopped. Raises `UsageError` as above."""
        return self._switch("start_partition", rm_id, partition, start_partition)

    def _switch(self, call: str, rm_id: str, name: str, switch: Callable[[Partition], bool]) -> bool:
        session = self._session_for(call, rm_id)
        changed = switch(self._at_work(rm_id, name).partition)
        session.flush()
        return changed

    def _at_work(self, rm_id: str, name: str) -> PartitionScheduler:
        found = self.partition(rm_id, name)
        if found is None:
            known = ", ".join(one.name for one in self.partitions(rm_id))
            raise UsageError(f"resource manager {rm_id} has no partition '{name}'; known: {known}")
        return found

    # -- why things wait ------------------------------------------------------------------------------

    def explain(
        self, rm_id: str, partition: str, app_id: str, allocation_key: str = ""
    ) -> dict[str, Explanation]:
        """Why each waiting request of an application waits at this moment, by allocation key, in their order.

        With a key only that one. What stops it, its place in the order, and what would have to change; a
        request that nothing stops has no reasons, one that waits no more is not among them. Changes
        nothing. Raises `UsageError` where there is no such application.
        """
        at, app = self._application(rm_id, partition, app_id)
        before, self._operation = self._operation, "explains why requests wait"
        try:
            return {one.key: one for one in explain(at, app, allocation_key)}
        finally:
            self._operation = before

    def _application(self, rm_id: str, partition: str, app_id: str) -> tuple[PartitionScheduler, Application]:
        at = self._at_work(rm_id, partition)
        applications = at.partition.applications
        app = applications.get(app_id)
        if app is None:
            raise UsageError(
                f"there is no application '{app_id}' in partition {at.name}, or it has ended"
                f"{suggest(app_id, applications)}"
            )
        return at, app

    def first_reasons(self, rm_id: str) -> Iterator[tuple[str, int, Reason]]:
        """What stops everything that waits: application, number of requests, and the first reason."""
        for at in self.partitions(rm_id):
            for ask, reason in first_reasons(at):
                yield ask.app.id, ask.pending, reason

    def core_activity(self, thread_id: int) -> CoreActivity | None:
        """What a thread, in which this scheduler works, is doing now; to be asked from another thread.

        For a watchdog that has to name a plugin that hangs (decision 45). None if there is no such thread.
        """
        return core_activity(thread_id, self._origin_of)

    def _origin_of(self, cls: type[object]) -> str:
        registries = (session.registry for session in list(self._sessions.values()))
        for registry in itertools.chain((self.registry,), registries):
            for offer in registry.offers():
                if offer.cls is cls:
                    return offer.origin
        return f"{cls.__module__}.{cls.__qualname__}"

    # -- looking in ---------------------------------------------------------------------------------

    def partition(self, rm_id: str, name: str = "default") -> PartitionScheduler | None:
        """A partition at work."""
        return self._session_to_change(rm_id).partition(name)

    def partitions(self, rm_id: str) -> Iterator[PartitionScheduler]:
        """All partitions of a resource manager, in the order of its configuration."""
        return self._session_to_change(rm_id).partitions

    def _session_for(self, call: str, rm_id: str) -> Session:
        """The session that a call is about to change."""
        self._stand_aside(call)
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
