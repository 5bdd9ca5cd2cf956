"""Large messages are decoded beside the event loop: health and other streams are served meanwhile."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import attrs
import grpc
import pytest

from tests.service.kit import PATIENCE, work
from tests.service.stand import Ended, Stand, serve
from tests.service.test_server import health_of
from yunikorn.interface.messages import AllocationAsk, UpdateRequest
from yunikorn.interface.wire.methods import UPDATE
from yunikorn.registry import Registry
from yunikorn.service import decoding, forms, server
from yunikorn.service.forms import ONE_STREAM


class SlowDecoding:
    """A layout whose decoding of large messages waits until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        slow = attrs.evolve(ONE_STREAM, decode={UPDATE: self._decode})
        monkeypatch.setattr(server, "FORMS", (slow, forms.BY_SUBJECT))

    def _decode(self, data: bytes) -> list[UpdateRequest]:
        if len(data) >= decoding.LARGE:
            self.begun.set()
            assert self.go.wait(PATIENCE)
        return ONE_STREAM.decode[UPDATE](data)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowDecoding:
    return SlowDecoding(monkeypatch)


def large(app: str = "app", text: str = "x") -> UpdateRequest:
    """Work for one, in a large message."""
    request = work(1, app=app)
    request.new_applications[0].tags["comment"] = text * decoding.LARGE
    return request


async def begun(slow: SlowDecoding) -> None:
    """Return when a message is being decoded."""
    assert await asyncio.to_thread(slow.begun.wait, PATIENCE)


@pytest.mark.parametrize("is_first", [True, False])
def test_health_and_other_streams_are_served_while_a_message_is_decoded(
    registry: Registry, slow: SlowDecoding, is_first: bool
) -> None:
    async def story(stand: Stand) -> None:
        await stand.register()
        await stand.register("other")
        stream = stand.stream()
        if not is_first:
            await stream.send(work(1, app="before"))
            await stream.allocations(1)
        await stream.send(large())
        await begun(slow)
        assert await health_of(stand) == 1
        other = stand.stream()
        await other.send(work(1, rm_id="other"))
        await other.allocations(1)
        slow.go.set()
        await stream.allocations(1)

    serve(registry, story)


def test_messages_are_taken_in_the_order_in_which_they_came(registry: Registry, slow: SlowDecoding) -> None:
    async def story(stand: Stand) -> None:
        await stand.register()
        stream = stand.stream()
        await stream.send(large())
        await stream.send(UpdateRequest("rm", asks=[AllocationAsk("late", "app", max_allocations=0)]))
        await begun(slow)
        slow.go.set()
        rejected: list[Any] = []
        while not rejected:
            rejected = (await stream.read()).rejected_allocations
        # The application was there when the ask came: only its count is wrong.
        assert "failed to find application" not in rejected[0].reason

    serve(registry, story)


def test_a_large_message_that_is_malformed_ends_the_stream(registry: Registry) -> None:
    async def story(stand: Stand) -> None:
        await stand.register()
        stream = stand.stream()
        await stream.call.write(b"\xff" * (2 * decoding.LARGE))
        ended = await stream.end()
        assert ended.code is grpc.StatusCode.INVALID_ARGUMENT

    serve(registry, story)


def test_the_service_ends_while_a_message_is_decoded(registry: Registry, slow: SlowDecoding) -> None:
    async def story(stand: Stand) -> None:
        await stand.register()
        stream = stand.stream()
        await stream.send(work(1, app="before"))
        await stream.allocations(1)
        await stream.send(large())
        await begun(slow)
        await stand.server.stop()
        with pytest.raises(Ended, match="UNAVAILABLE"):
            await stream.collect([])
        slow.go.set()

    serve(registry, story)
