"""Commands: the calls that can change a scheduler, as data (`docs/decisions/0177`).

There is one class per call. A method of `Scheduler` makes its command and applies it, a core in a thread
takes commands from its inbox, a recording has a line for each, and a replay applies what it has read:

    scheduler.pause("rm", "lost")               # makes this command, and applies it:
    scheduler.apply(Pause("rm", "lost"))
    threaded.call(Pause("rm", "lost"))          # a command is an operation on a scheduler

The commands of operators are in `yunikorn.interface.operator_commands`. The methods of `Scheduler` describe
effects and errors.
"""

from __future__ import annotations

import abc
import re
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import attrs

from yunikorn.config.load import DEFAULT_TEXT
from yunikorn.errors import ConfigError
from yunikorn.framework.plugin_code import CodeSource
from yunikorn.framework.policy_calls import PolicyAnswer
from yunikorn.interface.callback import Callback, plugin_name
from yunikorn.interface.configurations import log_refusal
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    UpdateConfigurationRequest,
    UpdateConfigurationResponse,
    UpdateRequest,
)
from yunikorn.interface.saved_configuration import change_configuration
from yunikorn.model.owner_usage import UsageCredit

if TYPE_CHECKING:
    from yunikorn.interface.session import Session
    from yunikorn.interface.sessions import Sessions

Answer = TypeVar("Answer")
_HUMP = re.compile(r"(?<!^)(?=[A-Z])")


class Applying(Protocol):
    """A scheduler, as a command that is called sees it."""

    def apply(self, command: Command[Answer]) -> Answer:
        """Apply a command, and return its answer."""
        ...


@attrs.frozen
class Command(abc.ABC, Generic[Answer]):
    """A call that can change a scheduler; its answer is what the method of `Scheduler` returns."""

    def __call__(self, scheduler: Applying) -> Answer:
        """Apply the command."""
        return scheduler.apply(self)

    @abc.abstractmethod
    def run(self, sessions: Sessions) -> Answer:
        """Carry the command out; only `Scheduler.apply` calls this."""

    @classmethod
    def method(cls) -> str:
        """Return the name of the method of `Scheduler` that makes this command."""
        return _HUMP.sub("_", cls.__name__).lower()


@attrs.frozen
class SessionCommand(Command[Answer]):
    """A command for one session, whose pending messages are sent at its end."""

    rm_id: str
    """Resource manager of the session."""

    def run(self, sessions: Sessions) -> Answer:
        """Carry the command out."""
        session = sessions.to_change(self.rm_id)
        unneeded = self._unneeded(session, sessions)
        if unneeded is not None:
            return unneeded
        answer = self._change(session, sessions)
        session.flush()
        return answer

    def _unneeded(self, session: Session, sessions: Sessions) -> Answer | None:
        """Return the answer of a command that has nothing to do here; it sends no pending messages either."""
        return None

    @abc.abstractmethod
    def _change(self, session: Session, sessions: Sessions) -> Answer:
        """Change the session, which has been activated."""


# -- sessions and updates ------------------------------------------------------------------------------------


@attrs.frozen
class RegisterResourceManager(Command[RegisterResourceManagerResponse]):
    """Registration of a resource manager."""

    request: RegisterResourceManagerRequest
    callback: Callback

    @property
    def rm_id(self) -> str:
        """Resource manager that registers."""
        return self.request.rm_id

    def run(self, sessions: Sessions) -> RegisterResourceManagerResponse:
        """Open the session."""
        sessions.register(self.request, self.callback)
        return RegisterResourceManagerResponse()


@attrs.frozen
class Update(Command[None]):
    """Update of a resource manager."""

    request: UpdateRequest

    @property
    def rm_id(self) -> str:
        """Resource manager that sent the update."""
        return self.request.rm_id

    def run(self, sessions: Sessions) -> None:
        """Apply the update."""
        request = self.request
        session = sessions.by_rm.get(request.rm_id) or sessions.find(request.rm_id)
        sessions.active.add(session)
        sessions.operation = "is applying an update"
        try:
            session.take(request)
        finally:
            sessions.operation = ""
        session.flush()


@attrs.frozen
class Pause(SessionCommand[None]):
    """Pause of a session whose resource manager cannot be reached."""

    reason: str

    def _change(self, session: Session, sessions: Sessions) -> None:
        session.pause(self.reason)


@attrs.frozen
class Reconnect(SessionCommand[None]):
    """New callback of a resource manager that has connected again, and RESYNC."""

    callback: Callback

    def _change(self, session: Session, sessions: Sessions) -> None:
        session.reconnect(self.callback)


@attrs.frozen
class Resync(SessionCommand[None]):
    """Request of a new registration."""

    reason: str

    def _change(self, session: Session, sessions: Sessions) -> None:
        session.pause(self.reason, reachable=True)


@attrs.frozen
class Stop(SessionCommand[None]):
    """End of a session whose resource manager shuts down."""

    def _change(self, session: Session, sessions: Sessions) -> None:
        sessions.end(session, f"resource manager {self.rm_id} shut down")


@attrs.frozen
class Close(Command[None]):
    """End of all sessions."""

    def run(self, sessions: Sessions) -> None:
        """End the sessions."""
        sessions.close()


# -- what a resource manager brings along --------------------------------------------------------------------


@attrs.frozen
class UseCallback(SessionCommand[None]):
    """New callback without a new registration."""

    callback: Callback

    def _change(self, session: Session, sessions: Sessions) -> None:
        session.use_callback(self.callback)


@attrs.frozen
class RegisterPlugin(SessionCommand[bool]):
    """Plugin for the partitions of one resource manager."""

    plugin: object
    """Module or object with hookimpls."""
    name: str = ""
    """Name of the plugin; empty for the name that the plugin has itself."""

    def _change(self, session: Session, sessions: Sessions) -> bool:
        return session.add_plugin(self.plugin, self.name or plugin_name(self.plugin))


@attrs.frozen
class UnregisterPlugin(SessionCommand[None]):
    """Removal of a plugin from one resource manager."""

    name: str

    def _change(self, session: Session, sessions: Sessions) -> None:
        session.drop_plugin(self.name)


WITH_CALLBACK = (RegisterResourceManager, Reconnect, UseCallback)
"""Commands with a callback."""


# -- configuration -------------------------------------------------------------------------------------------


@attrs.frozen
class ReloadConfiguration(SessionCommand[bool]):
    """Other configuration of a resource manager."""

    text: str | bytes | None = None
    """Configuration; None to read it from its source again."""
    # A recording does not have it: who replays it says what may be loaded.
    code: CodeSource | None = attrs.field(default=None, eq=False)
    """Plugins that the text may load; None for those that configurations of the RM may load."""

    def _unneeded(self, session: Session, sessions: Sessions) -> bool | None:
        return False if self.text is None and session.config_source.owner is None else None

    def _change(self, session: Session, sessions: Sessions) -> bool:
        from_source = self.text is None
        source = session.config_source
        new = source.again() if self.text is None else self.text or DEFAULT_TEXT
        code = source.code if from_source else self.code
        plan = sessions.take_prepared(self.rm_id, new, from_source=from_source)
        try:
            return session.reload_text(new, code=code, prepared=plan)
        except ConfigError as error:
            log_refusal(session.label, error, secret=not from_source)
            raise


@attrs.frozen
class UpdateConfiguration(SessionCommand[UpdateConfigurationResponse]):
    """Configuration that the resource manager saves before it is used."""

    request: UpdateConfigurationRequest

    def _unneeded(self, session: Session, sessions: Sessions) -> UpdateConfigurationResponse | None:
        reason = session.config_source.refusal
        return UpdateConfigurationResponse(False, session.config.text, reason) if reason else None

    def _change(self, session: Session, sessions: Sessions) -> UpdateConfigurationResponse:
        return change_configuration(session, self.request.configs, sessions.loaded)


@attrs.frozen
class CreditUsage(Command[None]):
    """Usage before the start, for sort policies that read usage by owner; without any, it comes later."""

    credits: tuple[UsageCredit, ...]
    known: int
    """Time until which all usage is known (ns)."""

    def run(self, sessions: Sessions) -> None:
        """Keep the usage for the sessions of its resource managers."""
        kept = sessions.core_context.owner_usage
        kept.start = 0 if self.credits else self.known
        for one in self.credits:
            kept.of(one.rm, one.partition).credit(one, self.known)


# -- deciding ------------------------------------------------------------------------------------------------


@attrs.frozen
class Schedule(Command[int]):
    """Decisions of all sessions."""

    max_decisions: int | None = None
    """Maximum number of decisions; None for all that are possible now."""

    def run(self, sessions: Sessions) -> int:
        """Make the decisions; return their number."""
        sessions.operation = "is making decisions"
        try:
            taken, visited = sessions.active.decide(self.max_decisions)
        finally:
            sessions.operation = ""
        sessions.flush(visited)
        return taken


@attrs.frozen
class FireTimers(Command[int]):
    """Timers that are due."""

    def run(self, sessions: Sessions) -> int:
        """Fire the timers; return their number."""
        fired = sessions.core_context.timers.fire_due()
        if fired:
            sessions.flush(sessions.active.in_order())
        return fired


@attrs.frozen
class Wake(SessionCommand[None]):
    """Wake-up of policies by a plugin, after a change outside the core."""

    partition: str
    kind: str
    """Kind of the policies."""

    def run(self, sessions: Sessions) -> None:
        """Carry the command out; no effect if the partition has been removed since."""
        if self.rm_id in sessions.by_rm:
            super().run(sessions)

    def _change(self, session: Session, sessions: Sessions) -> None:
        found = session.partitions.find(self.partition)
        if found is not None:
            sessions.operation = "is waking policies"
            try:
                found.wake_ups.wake(self.kind)
            finally:
                sessions.operation = ""


@attrs.frozen
class TakePolicyAnswer(Command[None]):
    """Answer of a policy that a worker has called."""

    number: int
    """Number of the call, from 1 in the order of the calls."""
    answer: PolicyAnswer

    def run(self, sessions: Sessions) -> None:
        """Apply the answer, unless the question has been withdrawn."""
        calls = sessions.core_context.policy_calls
        sessions.operation = "is applying the answer of a policy"
        try:
            known = calls is not None and calls.take(self.number, self.answer)
        finally:
            sessions.operation = ""
        if known:
            sessions.flush(sessions.active.in_order())
