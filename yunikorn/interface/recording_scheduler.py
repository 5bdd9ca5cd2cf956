"""A scheduler that tells a tape of all that goes in and comes out.

    scheduler = TapedScheduler(tape, registry, clock)    # and go on as with any Scheduler

Nothing else has to know of the tape: callbacks that are registered, and the configurations of policy
groups, are wrapped on their way in.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from yunikorn.interface.callback import OPTIONAL, Callback, implements
from yunikorn.interface.configurations import Configurations
from yunikorn.interface.messages import RegisterResourceManagerRequest, UpdateResponse
from yunikorn.interface.recording_sink import CALLS, RecordingSink, offered
from yunikorn.interface.scheduler import Scheduler
from yunikorn.objects.timeouts import Timeouts

PREDICATES = ("predicates", "node_predicates")
ASKING = (*PREDICATES, "update_configuration")
"""The optional methods of a callback whose answers the core acts upon."""


_SPOKEN: dict[str, Callable[[Any], object]] = {"callback": offered, "plugin": lambda _: None}
"""What is told of arguments that are no data."""


class RecordingScheduler(Scheduler):
    """A `Scheduler` that tells a tape of every call that can change something, and of its consequences."""

    def __init__(self, recording_sink: RecordingSink, *arguments: Any, **options: Any) -> None:
        """`arguments` and `options` are those of `Scheduler`."""
        bound = inspect.signature(Scheduler).bind(*arguments, **options)
        configurations: Configurations | None = bound.arguments.get("configurations")
        if configurations is not None:
            bound.arguments["configurations"] = RecordingConfigurations(configurations, recording_sink, self)
        super().__init__(*bound.args, **bound.kwargs)
        self._recording_sink = recording_sink
        self._busy = False
        """Whether a call is being carried out: what it calls itself is not told."""
        self._within = False
        """Whether a callback is being called: what it calls is told."""
        recording_sink.on_begin(
            self.clock.now(), bound.arguments.get("timeouts") or Timeouts(), configurations
        )

    def _tell(self, method: str, arguments: dict[str, Any]) -> None:
        now = self.clock.now()
        if method == "fire_timers":
            due = self.next_timer()
            if due is None or due > now:
                return  # whoever drives the core asks all the time
        told = tuple(
            _SPOKEN[name](value) if name in _SPOKEN else value
            for name, value in arguments.items()
            if name != "self"
        )
        self._recording_sink.on_call(now, method, told, within=self._within)

    def _wrapped(self, arguments: dict[str, Any]) -> None:
        if "callback" in arguments:
            first: RegisterResourceManagerRequest | str = next(
                value for name, value in arguments.items() if name in ("request", "rm_id")
            )
            rm_id = first if isinstance(first, str) else first.rm_id
            arguments["callback"] = _RecordingCallback(arguments["callback"], rm_id, self)

    @contextlib.contextmanager
    def _outside(self) -> Iterator[None]:
        """While a callback is called: it may call back, and that is told."""
        before, self._busy, self._within = (self._busy, self._within), False, True
        try:
            yield
        finally:
            self._busy, self._within = before


def _told(method: str) -> Callable[..., Any]:
    """A method of `Scheduler` that tells the tape before it does what it does."""
    original = getattr(Scheduler, method)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def told(self: RecordingScheduler, *arguments: Any, **named: Any) -> Any:
        if self._busy:
            return original(self, *arguments, **named)
        bound = signature.bind(self, *arguments, **named)
        bound.apply_defaults()
        self._tell(method, bound.arguments)
        self._wrapped(bound.arguments)
        self._busy = True
        try:
            return original(*bound.args, **bound.kwargs)
        finally:
            self._busy = False

    return told


for _method in CALLS:
    if hasattr(Scheduler, _method):
        setattr(RecordingScheduler, _method, _told(_method))


class _RecordingCallback:
    """Passes everything on, and tells the tape; what the callback does not implement is not there."""

    def __init__(self, callback: Callback, rm_id: str, scheduler: RecordingScheduler) -> None:
        self._callback, self._rm_id, self._scheduler = callback, rm_id, scheduler
        self._recording_sink, self._clock = scheduler._recording_sink, scheduler.clock
        for method in OPTIONAL:
            passing = functools.partial(self._pass, method) if implements(callback, method) else None
            setattr(self, method, passing)

    def __getattr__(self, name: str) -> Any:
        # What else the callback has, such as plugins that it brings along, is there as before.
        return getattr(self._callback, name)

    def recv_update_response(self, response: UpdateResponse) -> None:
        self._recording_sink.on_response(self._clock.now(), self._rm_id, response)
        self._pass("recv_update_response", response)

    def _pass(self, method: str, message: Any) -> Any:
        at = self._clock.now()
        # While it decides the core refuses calls, and is not changed by them: nothing to tell.
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


class RecordingConfigurations(Configurations):
    """Configurations that tell the tape what was read: files change while the core runs."""

    def __init__(
        self, configurations: Configurations, recording_sink: RecordingSink, scheduler: Scheduler
    ) -> None:
        super().__init__({}, allow_rm_config=configurations.allow_rm_config)
        self._read_by, self._recording_sink, self._scheduler = configurations, recording_sink, scheduler

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that have a configuration, in the order they were given."""
        return self._read_by.groups

    def find(self, group: str) -> str:
        """As the configurations themselves."""
        return self._read_by.find(group)

    def read(self, group: str) -> str | bytes:
        """As the configurations themselves; the tape hears the text, or the error that was raised."""
        at = self._scheduler.clock.now()
        try:
            text = self._read_by.read(group)
        except Exception as error:
            self._recording_sink.on_answer(at, "", "configuration", group, error)
            raise
        self._recording_sink.on_answer(at, "", "configuration", group, text)
        return text
