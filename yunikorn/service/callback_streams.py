"""The streams of callbacks."""

from __future__ import annotations

from collections.abc import AsyncIterator

from yunikorn.service.refusals import Refusal
from yunikorn.service.registrations import Registrations
from yunikorn.service.streams import Context


class CallbackStreams:
    """Serves the streams on which an RM is asked and told what the interface has no fields for."""

    def __init__(self, registrations: Registrations) -> None:
        self._registrations = registrations

    async def serve(self, messages: AsyncIterator[bytes], context: Context) -> None:
        """One stream from its first message to its end."""

    def end(self, refusal: Refusal | None) -> None:
        """End all streams."""
