"""The scheduler, in process: synchronous, steppable, on a clock that is passed in.

Nothing happens by itself. An update is taken in when it is made; decisions are taken when `schedule`
is called; timers fire when `fire_timers` is called. Each of the three ends with one response to the
resource manager, if there is anything to say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from yunikorn.clock import Clock
from yunikorn.config.load import DEFAULT_TEXT, load_config
from yunikorn.config.schema import SchedulerConfig
from yunikorn.errors import ConfigError, OptionError, PluginError, Problem, UnknownPlugin, UsageError
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    UpdateRequest,
)
from yunikorn.interface.session import Callback, Session
from yunikorn.objects.environment import Environment
from yunikorn.objects.periods import Periods
from yunikorn.registry import Registry
from yunikorn.scheduling.explain import Explanation, Reason, explain, first_reasons
from yunikorn.scheduling.faults import FaultLog
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.scheduling.switches import start_partition, start_queue, stop_partition, stop_queue
from yunikorn.suggestions import suggest


class Scheduler:
    """One scheduler core for any number of resource managers."""

    def __init__(self, registry: Registry, clock: Clock, periods: Periods | None = None) -> None:
        self.registry = registry
        self.clock = clock
        self.faults = FaultLog()
        """What plugins did wrong while scheduling."""
        self._environment = Environment.on(clock, periods)
        self._timers = self._environment.timers
        self._sessions: dict[str, Session] = {}
        self._next: PartitionScheduler | None = None
        """Whose turn it is when `schedule` is called again."""

    def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: Callback
    ) -> RegisterResourceManagerResponse:
        """A resource manager introduces itself with its configuration.

        One that is known already starts anew: everything of it is cleaned up first. Raises
        `ConfigError` with all problems of the configuration, `UsageError` without an id; then nothing
        has changed.
        """
        if not request.rm_id:
            raise UsageError("a resource manager needs an id: set rm_id")
        config = load_config(request.config or DEFAULT_TEXT, self.registry)
        session = self._open(request.rm_id, callback, config)
        known = self._sessions.pop(request.rm_id, None)
        if known is not None:
            known.close(f"resource manager {request.rm_id} registered again")
        self._sessions[request.rm_id] = session
        return RegisterResourceManagerResponse()

    def update(self, request: UpdateRequest) -> None:
        """Take in what a resource manager reports; raises `UsageError` if it is not registered."""
        session = self._session(request.rm_id)
        session.take(request)
        session.flush()

    def schedule(self, max_decisions: int | None = None) -> int:
        """Take up to `max_decisions` decisions, or all that can be taken now; returns how many.

        All partitions of all resource managers take turns, also from one call to the next, so that the
        backlog of one does not delay the others.
        """
        taken = 0
        busy = self._in_turn()
        while busy and (max_decisions is None or taken < max_decisions):
            partition = busy.popleft()
            if partition.decide() is not None:
                taken += 1
                busy.append(partition)
        self._next = busy[0] if busy else None
        for session in list(self._sessions.values()):
            session.flush()
        return taken

    def _in_turn(self) -> deque[PartitionScheduler]:
        partitions = deque(
            partition for session in self._sessions.values() for partition in session.partitions
        )
        if self._next in partitions:
            while partitions[0] is not self._next:
                partitions.rotate(-1)
        return partitions

    def next_timer(self) -> int | None:
        """When the earliest timer is due (ns), or None."""
        return self._timers.next_due()

    def fire_timers(self) -> int:
        """Do what is due by now; returns how many timers fired."""
        fired = self._timers.fire_due()
        if fired:
            for session in list(self._sessions.values()):
                session.flush()
        return fired

    def reload_configuration(self, rm_id: str, text: str) -> bool:
        """Give a resource manager another configuration; returns False if it is the same text.

        Raises `ConfigError` with all problems; then the old configuration stays in use as a whole.
        """
        session = self._session(rm_id)
        config = load_config(text or DEFAULT_TEXT, self.registry)
        if config.checksum == session.config.checksum:
            return False
        session.reload(config)
        session.flush()
        return True

    def _open(self, rm_id: str, callback: Callback, config: SchedulerConfig) -> Session:
        try:
            return Session(rm_id, callback, config, self.registry, self._environment, self.faults)
        except (UnknownPlugin, OptionError, PluginError) as error:
            # What is only needed to run is not asked for when a text is checked, such as `ldap`.
            raise ConfigError([Problem("", str(error))]) from error

    # -- stopping and starting ------------------------------------------------------------------------

    def stop_queue(self, rm_id: str, partition: str, path: str) -> bool:
        """Place nothing new in a queue and below it until `start_queue`; returns whether it ran until now.

        It keeps its work and accepts applications. Raises `UsageError` where there is no such queue.
        """
        return stop_queue(self._at_work(rm_id, partition).partition, path)

    def start_queue(self, rm_id: str, partition: str, path: str) -> bool:
        """Start a queue that `stop_queue` stopped; returns whether it was stopped.

        Raises `UsageError` where there is no such queue, or its own configuration stops it.
        """
        return start_queue(self._at_work(rm_id, partition).partition, path)

    def stop_partition(self, rm_id: str, partition: str) -> bool:
        """Take and place nothing new in a partition until `start_partition`; its work goes on.

        Returns whether it ran until now. Raises `UsageError` where there is no such partition.
        """
        return stop_partition(self._at_work(rm_id, partition).partition)

    def start_partition(self, rm_id: str, partition: str) -> bool:
        """Start a stopped partition; returns whether it was stopped. Raises `UsageError` as above."""
        return start_partition(self._at_work(rm_id, partition).partition)

    def _at_work(self, rm_id: str, name: str) -> PartitionScheduler:
        found = self.partition(rm_id, name)
        if found is None:
            known = ", ".join(one.name for one in self.partitions(rm_id))
            raise UsageError(f"resource manager {rm_id} has no partition '{name}'; known: {known}")
        return found

    def stop(self, rm_id: str) -> None:
        """The resource manager shuts down: everything of it is removed."""
        self._session(rm_id).close(f"resource manager {rm_id} shut down")
        del self._sessions[rm_id]

    def close(self) -> None:
        """Shut everything down."""
        for rm_id in list(self._sessions):
            self.stop(rm_id)

    # -- why things wait ------------------------------------------------------------------------------

    def explain(
        self, rm_id: str, partition: str, app_id: str, allocation_key: str = ""
    ) -> dict[str, Explanation]:
        """Why each waiting request of an application waits at this moment, by allocation key, in their order.

        With a key only that one. What stops it, its place in the order, and what would have to change; a
        request that nothing stops has no reasons, one that waits no more is not among them. Changes
        nothing. Raises `UsageError` where there is no such application.
        """
        at = self._at_work(rm_id, partition)
        applications = at.partition.applications
        app = applications.get(app_id)
        if app is None:
            raise UsageError(
                f"there is no application '{app_id}' in partition {at.name}, or it has ended"
                f"{suggest(app_id, applications)}"
            )
        return {one.key: one for one in explain(at, app, allocation_key)}

    def first_reasons(self, rm_id: str) -> Iterator[tuple[str, int, Reason]]:
        """What stops everything that waits: application, number of requests, and the first reason."""
        for at in self.partitions(rm_id):
            for ask, reason in first_reasons(at):
                yield ask.app.id, ask.pending, reason

    # -- looking in ---------------------------------------------------------------------------------

    def partition(self, rm_id: str, name: str = "default") -> PartitionScheduler | None:
        """A partition at work."""
        return self._session(rm_id).partition(name)

    def partitions(self, rm_id: str) -> Iterator[PartitionScheduler]:
        """All partitions of a resource manager, in the order of its configuration."""
        return self._session(rm_id).partitions

    def _session(self, rm_id: str) -> Session:
        session = self._sessions.get(rm_id)
        if session is None:
            known = ", ".join(self._sessions) or "none"
            raise UsageError(f"no resource manager '{rm_id}' is registered; registered: {known}")
        return session
