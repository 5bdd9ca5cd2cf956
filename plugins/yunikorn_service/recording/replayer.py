"""Replay of a recording in new cores on a virtual clock.

A recorded file contains the times at which timers fired and decisions were taken. Under its own
configuration, the core repeats the recorded behaviour exactly. Under another configuration (a what-if), and
in a file written by hand, timers fire when they are due. In a file without any `schedule` line, the core
schedules as much as possible after each line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import attrs

from yunikorn.clock import ManualClock
from yunikorn.config.durations import parse_duration
from yunikorn.errors import YunikornError
from yunikorn.framework.policy_calls import NoWorkers
from yunikorn.framework.registry import Registry
from yunikorn.framework.wake_requests import NoWakeRequests
from yunikorn.interface import commands
from yunikorn.interface.callback import OPTIONAL
from yunikorn.interface.commands import WITH_CALLBACK, Command
from yunikorn.interface.messages import (
    NodePredicatesArgs,
    PredicatesArgs,
    UpdateConfigurationRequest,
    UpdateResponse,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.context import Timeouts
from yunikorn_service.policy_groups import Configurations
from yunikorn_service.recording.recorded_callback import RecordedCallback, offered
from yunikorn_service.recording.recorded_entry import Beginning, RecordedAnswer, RecordedEntry
from yunikorn_service.recording.recorded_values import read_date
from yunikorn_service.recording.replay_comparison import ReplayComparison
from yunikorn_service.recording.replayed_rm import (
    OneConfiguration,
    RaisedThen,
    RecordedAnswers,
    RecordedConfigurations,
    ReplayedRM,
    recreated,
)

OWN = commands.UpdateConfiguration, commands.ReloadConfiguration
"""Commands that bring a configuration, which a what-if ignores."""


class Listener(Protocol):
    """Observer of a replay; times are in ns since the start of the core."""

    def on_begin(self, at: int, entry: RecordedEntry | None) -> None:
        """Process the start of a core; `entry` is its line in the recording, if there is one."""
        ...

    def on_response(self, at: int, rm_id: str, response: UpdateResponse) -> None:
        """Process a response of the core."""
        ...

    def on_refused(self, at: int, entry: RecordedEntry, reason: str) -> None:
        """Process a line that the core refused."""
        ...

    def on_note(self, at: int, entry: RecordedEntry, remark: str) -> None:
        """Process a remark about something that a replay cannot do."""
        ...


class Replay:
    """One run of a recording in new cores."""

    def __init__(
        self,
        entries: list[RecordedEntry],
        registry: Registry,
        listener: Listener,
        config: str | bytes | None = None,
    ) -> None:
        """Prepare the run; with `config`, the run is a what-if in which all RMs use this configuration."""
        self._lines, self._registry, self._listener, self._config = entries, registry, listener, config
        self.comparison = ReplayComparison(wanted=config is None)
        self.answers = RecordedAnswers(entries)
        self._next = 0
        """Index of the next line."""
        self._news: list[Callable[[], None]] = []
        """Calls of the listener that are still to be made."""
        self._failure: BaseException | None = None
        self._clock = ManualClock()
        self._start = 0
        self._configurations: Configurations | None = None
        self._core: Scheduler | None = None
        self._recorded = False
        """True if the core was recorded, so that the times of its timers and decisions are in the file."""
        self._freely = not any(entry.kind == "schedule" for entry in entries)
        self.replayed_rm = ReplayedRM() if config is not None else None

    def run(self) -> None:
        """Play all lines; raises the errors of bugs in the core."""
        while self._next < len(self._lines):
            entry = self._lines[self._next]
            self._next += 1
            try:
                self._play(entry)
                self._hand_out()
            except BaseException as error:
                error.add_note(f"while replaying {entry.place} of the recording")
                raise
        self.comparison.ended()

    def _hand_out(self) -> None:
        """Call the listener outside the core's calls, where its failures would count as those of an RM."""
        if self._failure is not None:
            raise self._failure
        news, self._news = self._news, []
        for notify in news:
            notify()

    def failed(self, error: BaseException) -> None:
        """Store an error of the replay in a callback, which the core contains, so that `run` raises it."""
        self._failure = self._failure or error

    @property
    def _now(self) -> int:
        return self._clock.now() - self._start

    # -- cores ------------------------------------------------------------------------------------------

    def _begin(self, entry: RecordedEntry | None) -> Scheduler:
        begins: Beginning = entry.content if entry is not None else Beginning()
        self._recorded = entry is not None
        self._start = read_date(begins.start)
        self._clock = ManualClock(self._start)
        self._configurations = self._make_configurations(begins, entry)
        given: dict[str, Any] = {
            name: None if text is None else parse_duration(text) for name, text in begins.periods.items()
        }
        timeouts = Timeouts(**{**attrs.asdict(Timeouts()), **given})
        # In a what-if, in which other applications may be asked about, the policies are called.
        workers = NoWorkers() if begins.workers and self._config is None else None
        self._core = Scheduler(
            self._registry,
            self._clock,
            timeouts,
            self._configurations,
            workers=workers,
            wake_requests=NoWakeRequests(),
        )
        self._listener.on_begin(0, entry)
        return self._core

    def _make_configurations(self, begins: Beginning, entry: RecordedEntry | None) -> Configurations | None:
        if self._config is not None:
            return OneConfiguration(self._config)
        groups: Iterable[str] | None = begins.groups
        if groups is None:
            written = {one.content.group: None for one in self._lines if one.kind == "configuration"}
            groups = written if written and entry is None else None
        if groups is None:
            return None
        return RecordedConfigurations(groups, allow_rm_config=begins.allow_rm_config)

    # -- lines ------------------------------------------------------------------------------------------

    def _play(self, entry: RecordedEntry) -> None:
        if entry.kind == "recording":
            self._begin(entry)
            return
        if self._core is None:
            self._begin(None)
        self._pass_to(entry.at, firing=not self._exactly)
        if entry.kind == "configuration":
            if isinstance(self._configurations, RecordedConfigurations):
                self._configurations.learn(entry.content)
        elif entry.kind == "response":
            self.comparison.missed(entry)
            if self.replayed_rm is not None:
                self.replayed_rm.note_recorded(entry.rm_id, entry.content)
        elif entry.kind != "answer":
            self._call(entry)
            if entry.kind != "gap":
                self._follow()

    def _call(self, entry: RecordedEntry) -> None:
        if entry.kind == "gap":
            self.note(entry, f"the recording has a gap here: {entry.content}")
        elif entry.kind == "advance":
            self._pass_to(self._now + entry.content)
        try:
            for command in entry.commands:
                self._apply(command, entry)
        except YunikornError as error:
            now, reason = self._now, str(error)
            self._news.append(lambda: self._listener.on_refused(now, entry, reason))

    def _apply(self, command: Command[Any], entry: RecordedEntry) -> None:
        if isinstance(command, (commands.RegisterPlugin, commands.UnregisterPlugin)):
            what = f"plugin '{command.name}' of {entry.rm_id} is ignored"
            self.note(entry, f"{what}: recordings contain no code")
        elif self._config is not None and isinstance(command, OWN):
            self.note(entry, f"{entry.kind} is ignored: --config replaces all configurations")
        elif isinstance(command, commands.Schedule):
            self._schedule(command)
        else:
            if isinstance(command, WITH_CALLBACK):
                callback = _ReplayedCallback(self, command.rm_id, offered(command.callback))
                command = attrs.evolve(command, callback=callback)
            self.core.apply(command if self.replayed_rm is None else self.replayed_rm.translate(command))

    def _schedule(self, command: commands.Schedule) -> None:
        """Take decisions; a what-if repeats this while their number is reached, as a live core does."""
        most = command.max_decisions
        again = self._recorded and not self._exactly and most
        while self.core.apply(command) == most and again:
            pass

    @property
    def core(self) -> Scheduler:
        """Core that plays the current line."""
        assert self._core is not None
        return self._core

    def note(self, entry: RecordedEntry, remark: str) -> None:
        """Report something that cannot be played to the listener."""
        now = self._now
        self._news.append(lambda: self._listener.on_note(now, entry, remark))

    # -- time -------------------------------------------------------------------------------------------

    @property
    def _exactly(self) -> bool:
        """True if the replay repeats the recording exactly, including the times of timers."""
        return self._recorded and self._config is None

    def _pass_to(self, at: int, *, firing: bool = True) -> None:
        """Advance the clock; timers that become due on the way fire if `firing` is True."""
        moment = max(self._clock.now(), self._start + at)
        while firing and (due := self.core.next_timer()) is not None and due <= moment:
            self._clock.set(max(due, self._clock.now()))
            self.core.fire_timers()
            self._follow(decide=self._recorded and not self._exactly)
            self._hand_out()
        self._clock.set(moment)

    def _follow(self, *, decide: bool = False) -> None:
        """Decide if the file does not say when, and confirm releases in a what-if."""
        while True:
            if decide or (self._freely and not self._recorded):
                self.core.schedule()
            confirmations = self.replayed_rm.confirmations() if self.replayed_rm is not None else []
            if not confirmations:
                return
            for request in confirmations:
                self.core.update(request)
            decide = decide or self._recorded

    # -- callbacks of the RMs ---------------------------------------------------------------------------

    def received(self, rm_id: str, response: UpdateResponse) -> None:
        """Compare a response with the recorded one, and play the calls that were made within the callback."""
        now = self._now
        self._news.append(lambda: self._listener.on_response(now, rm_id, response))
        if self.replayed_rm is not None:
            self.replayed_rm.note_replayed(rm_id, response)
            return
        while self._is_here("answer"):
            self._next += 1
        recorded = self._lines[self._next] if self._is_here("response") else None
        self.comparison.on_response(rm_id, response, recorded, self._now, cut_off=self._ends_here())
        if recorded is None:
            return
        self._next += 1
        while self._next < len(self._lines) and self._lines[self._next].within:
            self._next += 1
            self._call(self._lines[self._next - 1])
        self._raise_as_then(rm_id)

    def _is_here(self, kind: str) -> bool:
        return self._next < len(self._lines) and self._lines[self._next].kind == kind

    def _ends_here(self) -> bool:
        """Return True if the recording of this core ends with the line that is being played."""
        played = self._lines[self._next - 1]
        is_last = self._next == len(self._lines) or self._is_here("recording")
        # `advance` is never recorded. A file that ends with it was written by hand, and is not truncated.
        return self._recorded and is_last and played.kind != "advance"

    def _raise_as_then(self, rm_id: str) -> None:
        if self._is_here("answer"):
            entry = self._lines[self._next]
            answer: RecordedAnswer = entry.content
            if answer.method == "recv_update_response" and entry.rm_id == rm_id and answer.raised is not None:
                self._next += 1
                raise recreated(answer.raised)


class _ReplayedCallback:
    """Callback that gives the recorded answers, and has only the recorded optional methods."""

    def __init__(self, replay: Replay, rm_id: str, recorded: RecordedCallback) -> None:
        self._replay, self._rm_id = replay, rm_id
        self.predicates_in_force = recorded.predicates_in_force
        methods: dict[str, Callable[[Any], Any]] = {
            "predicates": self._predicates,
            "node_predicates": self._node_predicates,
            "update_configuration": self._update_configuration,
        }
        for method in OPTIONAL:
            setattr(self, method, methods.get(method, _ignore) if method in recorded.methods else None)

    def recv_update_response(self, response: UpdateResponse) -> None:
        try:
            self._replay.received(self._rm_id, response)
        except RaisedThen:
            raise
        except BaseException as error:
            self._replay.failed(error)
            raise

    def _predicates(self, args: PredicatesArgs) -> Any:
        found = self._refusals(args.application_id, args.allocation_key, [args.node_id], args.allocate)
        return found.get(args.node_id) if isinstance(found, dict) else found

    def _node_predicates(self, args: NodePredicatesArgs) -> Any:
        return self._refusals(args.application_id, args.allocation_key, args.node_ids, args.allocate)

    def _refusals(self, application: str, key: str, nodes: list[str], allocate: bool) -> Any:
        return self._replay.answers.refusals(self._rm_id, application, key, nodes, allocate)

    def _update_configuration(self, _: UpdateConfigurationRequest) -> Any:
        return self._replay.answers.save(self._rm_id)


def _ignore(_: object) -> None:
    """Ignore a notice that needs no answer."""
