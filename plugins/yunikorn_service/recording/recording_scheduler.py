"""Scheduler that reports every call, answer and response to a recording sink.

The core is deterministic: the same calls at the same times, with the same answers to its queries, lead to the
same responses. A recording therefore consists of the calls, the answers and the responses, in their order.
`RecordingScheduler` is a `Scheduler` that reports them to a `RecordingSink`, and replaces a plain one. Its
clock must not advance during a call, as is the case with `ThreadedScheduler`; otherwise the recorded time of
a call need not be the time that the core read.

    scheduler = RecordingScheduler(recording_sink, registry, clock)    # and continue as with any Scheduler

Nothing else depends on the sink: registered callbacks, and the configurations of policy groups, are wrapped
when they are passed in.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, Protocol

import attrs

from yunikorn.framework.plugin_code import CodeSource
from yunikorn.interface.callback import OPTIONAL, Callback, implements
from yunikorn.interface.commands import WITH_CALLBACK, Answer, Command, FireTimers
from yunikorn.interface.configurations import PolicyGroups
from yunikorn.interface.messages import UpdateResponse
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.context import Timeouts
from yunikorn_service.recording.recorded_callback import recorded


class RecordingSink(Protocol):
    """Receiver of recorded calls, in the core's thread; its methods must return soon and never raise."""

    def on_begin(
        self,
        at: int,
        timeouts: Timeouts,
        configurations: PolicyGroups | None,
        *,
        workers: bool = False,
    ) -> None:
        """Record the start of a core, with timeouts and configurations by policy group.

        With `workers`, answers of policies that may block are calls of `take_policy_answer`. Called once,
        before all other methods.
        """
        ...

    def on_call(self, at: int, command: Command[Any], *, within: bool = False) -> None:
        """Record a command before it is applied, with the time `at` (ns of the core's clock).

        The command is data only: a callback in it is replaced by a `RecordedCallback`, and a plugin, which is
        code, by None. `within` is True if a callback made the call, while the core was calling the callback.
        """
        ...

    def on_answer(self, at: int, rm_id: str, method: str, question: object, answer: object) -> None:
        """Record a query of the core during a call, and its answer.

        `method` is the method of the callback (`predicates`, `node_predicates`, `update_configuration`),
        whose argument is the question, or `configuration` with the name of a policy group and no RM. The
        answer is the returned value or the raised exception. A method without an answer is recorded only if
        it raised, with None as question.
        """
        ...

    def on_response(self, at: int, rm_id: str, response: UpdateResponse) -> None:
        """Record a response to a resource manager."""
        ...


PREDICATES = ("predicates", "node_predicates")
ASKING = (*PREDICATES, "update_configuration")
"""Optional methods of a callback whose answers affect the core."""


class RecordingScheduler(Scheduler):
    """A `Scheduler` that records every command, and the consequences."""

    def __init__(self, recording_sink: RecordingSink, *arguments: Any, **options: Any) -> None:
        """Pass `arguments` and `options` on to `Scheduler`."""
        super().__init__(*arguments, **options)
        configurations, core_context = self.configurations, self._sessions.core_context
        if configurations is not None:
            recording = RecordingConfigurations(configurations, recording_sink, self)
            self.configurations = self._sessions.configurations = recording
        self._recording_sink = recording_sink
        self._busy = False
        """True during a call: the calls that the scheduler makes to itself are not recorded."""
        self._within = False
        """True during a callback: the calls that the callback makes are recorded."""
        recording_sink.on_begin(
            self.clock.now(),
            core_context.timeouts,
            configurations,
            workers=core_context.policy_calls is not None,
        )

    def apply(self, command: Command[Answer]) -> Answer:
        """Record a command, and apply it."""
        if self._busy:
            return super().apply(command)
        now = self.clock.now()
        if not isinstance(command, FireTimers) or self._is_due(now):
            self._recording_sink.on_call(now, recorded(command), within=self._within)
        self._busy = True
        try:
            answer: Answer = super().apply(self._listening(command))
            return answer
        finally:
            self._busy = False

    def _is_due(self, now: int) -> bool:
        """Return True if a timer is due; most calls of `fire_timers` have no effect."""
        due = self.next_timer()
        return due is not None and due <= now

    def _listening(self, command: Command[Any]) -> Command[Any]:
        """Return a command whose callback records the calls of the core."""
        if isinstance(command, WITH_CALLBACK):
            callback = _RecordingCallback(command.callback, command.rm_id, self)
            return attrs.evolve(command, callback=callback)
        return command

    @contextlib.contextmanager
    def _outside(self) -> Iterator[None]:
        """Record the calls that a callback makes within this context."""
        before, self._busy, self._within = (self._busy, self._within), False, True
        try:
            yield
        finally:
            self._busy, self._within = before


class _RecordingCallback:
    """Callback that records and forwards the core's calls; unimplemented optional methods are None."""

    def __init__(self, callback: Callback, rm_id: str, scheduler: RecordingScheduler) -> None:
        self._callback, self._rm_id, self._scheduler = callback, rm_id, scheduler
        self._recording_sink, self._clock = scheduler._recording_sink, scheduler.clock
        for method in OPTIONAL:
            passing = functools.partial(self._pass, method) if implements(callback, method) else None
            setattr(self, method, passing)

    def __getattr__(self, name: str) -> Any:
        # Further attributes of the callback, such as `plugins`, must stay accessible.
        return getattr(self._callback, name)

    def recv_update_response(self, response: UpdateResponse) -> None:
        self._recording_sink.on_response(self._clock.now(), self._rm_id, response)
        self._pass("recv_update_response", response)

    def _pass(self, method: str, message: Any) -> Any:
        at = self._clock.now()
        # The core refuses calls from predicates, and refused calls need no recording.
        outside = contextlib.nullcontext() if method in PREDICATES else self._scheduler._outside()
        try:
            with outside:
                answer = getattr(self._callback, method)(message)
        except BaseException as error:
            question = message if method in ASKING else None
            self._recording_sink.on_answer(at, self._rm_id, method, question, error)
            raise
        if method in ASKING:
            self._recording_sink.on_answer(at, self._rm_id, method, message, answer)
        return answer


class RecordingConfigurations:
    """Configurations that record every text that is read, since files change while the core runs."""

    def __init__(
        self, configurations: PolicyGroups, recording_sink: RecordingSink, scheduler: Scheduler
    ) -> None:
        self.allow_rm_config = configurations.allow_rm_config
        self._read_by, self._recording_sink, self._scheduler = configurations, recording_sink, scheduler

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups with a configuration, in the given order."""
        return self._read_by.groups

    def find(self, group: str) -> str:
        """Return the group whose source serves `group`. See `PolicyGroups.find`."""
        return self._read_by.find(group)

    def code(self, group: str) -> CodeSource | None:
        """Return what a group's configuration may load. See `PolicyGroups.code`."""
        return self._read_by.code(group)

    def read(self, group: str) -> str | bytes:
        """Read the configuration of a group, and record the text or the error. See `PolicyGroups.read`."""
        at = self._scheduler.clock.now()
        try:
            text = self._read_by.read(group)
        except Exception as error:
            self._recording_sink.on_answer(at, "", "configuration", group, error)
            raise
        self._recording_sink.on_answer(at, "", "configuration", group, text)
        return text
