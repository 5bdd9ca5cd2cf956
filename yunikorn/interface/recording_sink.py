"""Interface of a recording: all input of the core and its responses, in their order.

The core is deterministic: the same calls at the same times, with the same answers to its queries, lead to the
same responses. A recording therefore consists of the calls, the answers and the responses.
`RecordingScheduler` (`recording_scheduler.py`) is a `Scheduler` that reports them and replaces a plain one.
Its clock must not advance during a call, as is the case with `ThreadedScheduler`; otherwise the recorded time
of a call need not be the time that the core read.
"""

from __future__ import annotations

from typing import Protocol

from yunikorn.interface.callback import OPTIONAL, implements
from yunikorn.interface.configurations import Configurations
from yunikorn.interface.messages import UpdateResponse
from yunikorn.model.context import Timeouts

CALLS = (
    "register_resource_manager",
    "update",
    "reload_configuration",
    "update_configuration",
    "fail_application",
    "pause",
    "reconnect",
    "use_callback",
    "resync",
    "stop",
    "register_plugin",
    "unregister_plugin",
    "stop_queue",
    "start_queue",
    "stop_partition",
    "start_partition",
    "schedule",
    "fire_timers",
    "close",
)
"""Methods of `Scheduler` that can change its state, and therefore belong into a recording."""


class RecordingSink(Protocol):
    """Receiver of recorded calls, in the core's thread; its methods must return soon and never raise."""

    def on_begin(self, at: int, timeouts: Timeouts, configurations: Configurations | None) -> None:
        """Record the start of a core, with timeouts and configurations by policy group.

        Called once, before all other methods.
        """
        ...

    def on_call(self, at: int, method: str, arguments: tuple[object, ...], *, within: bool = False) -> None:
        """Record a call (one of `CALLS`) before its execution, with the time `at` (ns of the core's clock).

        The arguments are those of the method, except that a callback is replaced by the result of `offered`,
        and a plugin, which is code, by None. `within` is True if a callback made the call, while the core was
        calling the callback.
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


def offered(callback: object) -> tuple[str, ...]:
    """Return the optional methods that a callback implements, in a fixed order."""
    return tuple(method for method in OPTIONAL if implements(callback, method))
