"""Sessions of all resource managers of one scheduler: what commands change, and whose partition decides next.

Only sessions with something to do are visited (`ActiveSessions`).
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING

import attrs

from yunikorn.clock import MICROSECOND
from yunikorn.errors import UsageError
from yunikorn.framework.plugin_failures import PluginFailures
from yunikorn.interface.administration import OperatorActions
from yunikorn.interface.callback import Callback, registry_for
from yunikorn.interface.checks import check_registration
from yunikorn.interface.configurations import (
    ConfigSource,
    LoadedAhead,
    PolicyGroups,
    ReloadPlan,
    refused_registration_logged,
)
from yunikorn.interface.session import Session, make_session

if TYPE_CHECKING:
    from yunikorn.framework.registry import Registry
    from yunikorn.interface.messages import RegisterResourceManagerRequest
    from yunikorn.interface.sinks import EventReceiver, SinkBuffers
    from yunikorn.model.context import CoreContext
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

BEGINNING = (0, 0)
"""A position before all others."""
_number = attrgetter("number")
_place = attrgetter("place")


@attrs.define(slots=True)
class PartitionRotation:
    """A partition in the round-robin order of all partitions."""

    place: tuple[int, int]
    """Number of the session, and index of the partition in its configuration."""
    session: Session
    partition: PartitionScheduler


class ActiveSessions:
    """Sessions that may have a decision to make or a message to send; no other session is visited."""

    def __init__(self) -> None:
        self._sessions: dict[Session, None] = {}
        self._last = BEGINNING
        """Position of the partition that was served last, after which `decide` continues."""

    def add(self, session: Session) -> None:
        """Visit a session from now on."""
        self._sessions[session] = None

    def remove(self, session: Session) -> None:
        """Stop visiting a session."""
        self._sessions.pop(session, None)

    def in_order(self) -> list[Session]:
        """Return the sessions in the order of their registrations."""
        return sorted(self._sessions, key=_number)

    def decide(self, most: int | None) -> tuple[int, list[Session]]:
        """Let the partitions take turns for up to `most` decisions; return their number and the sessions.

        Sessions that cannot decide anything more are removed.
        """
        sessions = list(self._sessions)
        if len(sessions) == 1:
            session = sessions[0]
            if session.paused_state is None and len(session.partitions.by_name) == 1:
                return self._decide_alone(session, most), sessions
        sessions.sort(key=_number)
        return self._decide_in_turns(sessions, most), sessions

    def _decide_in_turns(self, sessions: list[Session], most: int | None) -> int:
        taken = 0
        last: PartitionRotation | None = None
        busy = self._rotation(sessions)
        while busy and (most is None or taken < most):
            turn = busy.popleft()
            if not busy:
                # The only partition left need not take turns.
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
            if session not in unfinished and not session.may_decide_again:
                self.remove(session)
        return taken

    def _decide_alone(self, session: Session, most: int | None) -> int:
        """Let the only partition of the only session decide, which need not take turns."""
        (partition,) = session.partitions.by_name.values()
        if partition.quotas.watching:
            partition.quotas.review()
        if most == 0:
            return 0
        taken = partition.decide_up_to(most)
        if taken == most:
            self._last = (session.number, 0)
        else:
            self._last = BEGINNING
            if not session.may_decide_again:
                self._sessions.pop(session, None)
        return taken

    def _rotation(self, sessions: list[Session]) -> deque[PartitionRotation]:
        """Return the partitions that may have a decision to make, starting after the last one served.

        This begins a round of decisions, for which quota policies that watch others are asked.
        """
        rotation: list[PartitionRotation] = []
        for session in sessions:
            if session.paused_state is None:
                for index, partition in enumerate(session.partitions):
                    if partition.quotas.watching:
                        partition.quotas.review()
                    rotation.append(PartitionRotation((session.number, index), session, partition))
        if len(rotation) < 2:
            return deque(rotation)
        begin = bisect_right(rotation, self._last, key=_place)
        return deque(rotation[begin:] + rotation[:begin])


class Sessions:
    """Registered resource managers, and those with something to do."""

    def __init__(
        self,
        registry: Registry,
        core_context: CoreContext,
        configurations: PolicyGroups | None,
        buffer_sinks: SinkBuffers | None,
        event_receiver: EventReceiver | None,
    ) -> None:
        self.registry, self.core_context, self.configurations = registry, core_context, configurations
        self.loaded = LoadedAhead(registry)
        """Configurations that were loaded ahead of the call that uses them."""
        self.failures = PluginFailures()
        """Failures of plugins and callbacks."""
        self.by_rm: dict[str, Session] = {}
        """Sessions by RM, in the order of their registrations."""
        self.active = ActiveSessions()
        self.operation = ""
        """Operation in progress; re-entrant calls are refused while it is set."""
        self._buffer_sinks, self._event_receiver = buffer_sinks, event_receiver
        self._prepared: dict[str, tuple[str | bytes, ReloadPlan]] = {}
        """Text and plan of each reload that was prepared, by RM."""
        self._actions = OperatorActions()
        self._numbered = False
        self._registered = 0
        """Number of registrations so far."""
        self._failures_seen = 0
        """Number of distinct plugin failures that all sessions have sent to their sinks."""
        self._registering = False

    # -- one session ----------------------------------------------------------------------------------

    def find(self, rm_id: str) -> Session:
        """Return the session of a resource manager; raise `UsageError` if it is not registered."""
        session = self.by_rm.get(rm_id)
        if session is None:
            known = ", ".join(self.by_rm) or "none"
            raise UsageError(f"no resource manager '{rm_id}' is registered; registered: {known}")
        return session

    def to_change(self, rm_id: str) -> Session:
        """Return a session that is about to change, and is therefore visited; raise `UsageError`."""
        session = self.find(rm_id)
        session.activate()
        return session

    def register(self, request: RegisterResourceManagerRequest, callback: Callback) -> None:
        """Open a session, which replaces the earlier one of the same resource manager."""
        if self._registering:
            raise UsageError("a plugin must not register a resource manager in `opened` or `closed`")
        check_registration(request)
        self._number_allocations()
        config_source = ConfigSource.of(request, self.configurations)
        registry = registry_for(request.rm_id, callback, self.registry, self.failures)
        with refused_registration_logged(request.rm_id, secret=config_source.group is None):
            code = config_source.code
            own = registry if code is None else registry.permitting(code)
            config = self.loaded.load(config_source.text, own)
            self._registering = True
            try:
                session = make_session(
                    request,
                    callback,
                    config,
                    registry,
                    self.core_context,
                    self.failures,
                    self._buffer_sinks,
                    self._event_receiver,
                )
            finally:
                self._registering = False
        session.config_source = config_source
        self._replace(request.rm_id, session)

    def _number_allocations(self) -> None:
        """Start the numbers of allocations at the time of the first registration (microseconds).

        A restarted core thus continues above all numbers that it used before. An RM that recovers node by
        node may not yet have reported the allocation that has the next number.
        """
        if not self._numbered:
            start = 1 + max(0, self.core_context.clock.now()) // MICROSECOND
            self.core_context = attrs.evolve(self.core_context, serial=itertools.count(start))
            self._numbered = True

    def _replace(self, rm_id: str, session: Session) -> None:
        """End the earlier session of an RM and open the new one; plugins cannot register in between."""
        known = self.by_rm.pop(rm_id, None)
        self._registering = True
        try:
            if known is not None:
                # Close the earlier session before the new one opens: both may write to the same file.
                self.end(known, f"resource manager {rm_id} registered again")
            self.by_rm[rm_id] = session
            self._registered += 1
            self._actions.repeat(rm_id, session.partitions)
            session.number, session.on_active = self._registered, self.active.add
            session.activate()
            session.when_over = lambda: self.end(session, "it has not registered again in time")
            try:
                session.open()
            except BaseException:
                self.end(session, "it was interrupted during its registration")
                raise
        finally:
            self._registering = False

    def end(self, session: Session, reason: str) -> None:
        """Close a session; keep what an operator did in it for the next session of the same RM."""
        if self.by_rm.get(session.rm_id) is session:
            del self.by_rm[session.rm_id]
        self.active.remove(session)
        self._actions.note(session.rm_id, session.partitions)
        session.close(reason)

    # -- all sessions ---------------------------------------------------------------------------------

    def close(self) -> None:
        """End all sessions, and wait for buffered sinks to end."""
        for rm_id in list(self.by_rm):
            self.end(self.to_change(rm_id), "the scheduler was shut down")
        if self._buffer_sinks is not None:
            self._buffer_sinks.finish()

    def flush(self, sessions: Iterable[Session]) -> None:
        """Send the pending messages of these sessions, or of all after a new plugin failure."""
        failures = self.failures
        if failures.count != self._failures_seen or failures.reports.pending:
            self._failures_seen = len(failures)
            sessions = list(self.by_rm.values())
        try:
            for session in sessions:
                session.flush()
        except BaseException:
            # After an interrupt, sessions that were not flushed must stay active.
            for one in sessions:
                if self.by_rm.get(one.rm_id) is one:
                    self.active.add(one)
            raise

    # -- prepared reloads -----------------------------------------------------------------------------

    def keep_prepared(self, rm_id: str, text: str | bytes, plan: ReloadPlan) -> None:
        """Keep the plan of a reload for `take_prepared`."""
        self._prepared[rm_id] = text, plan

    def take_prepared(self, rm_id: str, text: str | bytes, *, from_source: bool) -> ReloadPlan | None:
        """Return the plan that was prepared for a text of the RM's source; discard the plan of any other."""
        prepared, plan = self._prepared.pop(rm_id, (None, None))
        if plan is not None and not (from_source and prepared == text):
            plan.discard("another configuration is used")
            return None
        return plan

    def discard_prepared(self) -> None:
        """Close the plugins of prepared reloads that were not used."""
        while self._prepared:
            _, (_, plan) = self._prepared.popitem()
            plan.discard("the configuration was not used")
