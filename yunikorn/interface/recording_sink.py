"""What a recording hears: everything that goes into the core, and what comes out, in its order.

The core is deterministic: the same calls at the same moments, with the same answers to what it asks, lead to
the same responses. So a tape needs to hear three things only: the calls, the answers, the responses.
`RecordingScheduler` (`recorded.py`) is a `Scheduler` that tells them; it is used in the place of one. Its
clock must
stand still during a call, as that of `ThreadedScheduler` does: otherwise nobody knows what the core saw.
"""

from __future__ import annotations

from typing import Protocol

from yunikorn.interface.callback import OPTIONAL, implements
from yunikorn.interface.configurations import Configurations
from yunikorn.interface.messages import UpdateResponse
from yunikorn.objects.timeouts import Timeouts

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
"""The methods of `Scheduler` that can change something, and so belong on a tape."""


class RecordingSink(Protocol):
    """Hears what happens in the core's thread, as it happens; must return soon and never raise."""

    def on_begin(self, at: int, timeouts: Timeouts, configurations: Configurations | None) -> None:
        """A core begins, with these periods and these configurations by policy group; told once, first."""
        ...

    def on_call(self, at: int, method: str, arguments: tuple[object, ...], *, within: bool = False) -> None:
        """A call (one of `CALLS`) is about to be carried out, at the moment `at` (ns of the core's clock).

        The arguments are those of the method; a callback among them is replaced by what `offered` says, and a
        plugin by nothing: it is code.
        `within` if a callback made the call, while the core called it.
        """
        ...

    def on_answer(self, at: int, rm_id: str, method: str, question: object, answer: object) -> None:
        """What the core asked while it carried out a call, and what it was told.

        `method` is that of the callback (`predicates`, `node_predicates`, `update_configuration`) with its
        argument, or `configuration` with the name of a policy group and no RM. The answer is what was
        returned, or the exception that was raised. A method that has no answer is told when it raised, with
        None as question.
        """
        ...

    def on_response(self, at: int, rm_id: str, response: UpdateResponse) -> None:
        """A response goes to a resource manager."""
        ...


def offered(callback: object) -> tuple[str, ...]:
    """The optional methods that a callback implements, in a fixed order."""
    return tuple(method for method in OPTIONAL if implements(callback, method))
