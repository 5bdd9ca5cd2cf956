"""Commands as a recording keeps them: without the objects that are no data."""

from __future__ import annotations

import contextlib
from typing import Any

import attrs

from yunikorn.errors import UsageError
from yunikorn.interface.callback import OPTIONAL, implements, predicates_in_force
from yunikorn.interface.commands import WITH_CALLBACK, Command, RegisterPlugin
from yunikorn.interface.messages import UpdateResponse


@attrs.frozen
class RecordedCallback:
    """Place of a callback in a recorded command, with what the callback offers."""

    methods: tuple[str, ...] = ()
    """Optional methods that the callback implements, in a fixed order."""
    predicates_in_force: tuple[str, ...] = ()
    """Installed predicates that the callback puts in force."""

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Refuse a response: a replay first puts a callback of its own in this place."""
        raise UsageError("a recorded callback cannot receive responses: give the command another callback")


def offered(callback: object) -> RecordedCallback:
    """Return what a callback offers; predicates that the core is about to refuse are left out."""
    if isinstance(callback, RecordedCallback):
        return callback
    named: tuple[str, ...] = ()
    with contextlib.suppress(UsageError):
        named = predicates_in_force("", callback)
    return RecordedCallback(tuple(name for name in OPTIONAL if implements(callback, name)), named)


def recorded(command: Command[Any]) -> Command[Any]:
    """Return a command as data, with a `RecordedCallback` and without the code of a plugin."""
    if isinstance(command, WITH_CALLBACK):
        return attrs.evolve(command, callback=offered(command.callback))
    if isinstance(command, RegisterPlugin):
        return attrs.evolve(command, plugin=None)
    return command
