"""Answers of an API server, and requests without an answer."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from yunikorn.errors import YunikornError


class TransportError(YunikornError):
    """Request without an answer.

    `sent` is False if the server cannot have received the request, for example because the connection was
    refused. Otherwise the server may have executed the request.
    """

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


@attrs.frozen
class ServerAnswer:
    """Complete answer of the server; keys of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes | bytearray
