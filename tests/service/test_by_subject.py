"""The newer layout: three streams that belong to one resource manager."""

from __future__ import annotations

import grpc

from tests.service.harness import ServiceHarness, Stream, serve
from tests.service.kit import work
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import UpdateRequest, UpdateResponse
from yunikorn_service.wire import current
from yunikorn_service.wire.protocol import (
    SCHEDULER,
    UPDATE_ALLOCATION,
    UPDATE_APPLICATION,
    UPDATE_NODE,
    path,
)

Code = grpc.StatusCode


def open_stream(harness: ServiceHarness, kind: str) -> Stream:
    """Open one of the three streams."""
    encode, decode = {
        UPDATE_ALLOCATION: (current.to_allocation_request, current.ALLOCATION_RESPONSE.decode),
        UPDATE_APPLICATION: (current.to_application_request, current.APPLICATION_RESPONSE.decode),
        UPDATE_NODE: (current.to_node_request, current.NODE_RESPONSE.decode),
    }[kind]

    def to_bytes(request: UpdateRequest) -> bytes:
        message = encode(request)
        assert message is not None
        data: bytes = message.SerializeToString()
        return data

    return Stream(harness.channel.stream_stream(path(SCHEDULER, kind))(), to_bytes, decode)


class Trio:
    """A resource manager with all three streams."""

    def __init__(self, harness: ServiceHarness) -> None:
        self.nodes = open_stream(harness, UPDATE_NODE)
        self.applications = open_stream(harness, UPDATE_APPLICATION)
        self.allocations = open_stream(harness, UPDATE_ALLOCATION)

    async def report(self, request: UpdateRequest) -> None:
        """Send the parts of an update, each on its stream and after the parts it depends on."""
        await self.nodes.send(request)
        assert (await reported(self.nodes)).accepted_nodes
        await self.applications.send(request)
        assert (await reported(self.applications)).accepted_applications
        await self.allocations.send(request)


async def reported(stream: Stream) -> UpdateResponse:
    """Return the next response that is not empty."""
    while (response := await stream.read()) == UpdateResponse():
        pass
    return response


def test_each_subject_is_sent_on_its_stream(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        trio = Trio(harness)
        await trio.report(work(3))
        assert await trio.allocations.allocations(3) == {f"app-{i}": "node-app" for i in range(3)}
        states = []
        while "Running" not in states:
            states += [update.state for update in (await reported(trio.applications)).updated_applications]
        assert states == ["Accepted", "Starting", "Running"]

    serve(registry, scenario)


def test_responses_wait_for_their_stream(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        nodes = open_stream(harness, UPDATE_NODE)
        await nodes.send(work(2))
        await nodes.read()
        request = work(2)
        request.rm_id = "rm"
        request.new_schedulable_nodes = []
        await harness.core.update(request)
        applications = open_stream(harness, UPDATE_APPLICATION)
        request.remove_applications = []
        await applications.send(work(0, app="other"))
        names: list[str] = []
        while len(names) < 2:
            names += [one.application_id for one in (await reported(applications)).accepted_applications]
        assert names == ["app", "other"]

    serve(registry, scenario)


def test_broken_stream_ends_the_others_with_resync(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        trio = Trio(harness)
        await trio.report(work(1))
        await trio.allocations.allocations(1)
        trio.nodes.cut()
        for stream in (trio.applications, trio.allocations):
            ended = await stream.end()
            assert ended.code is Code.ABORTED
            assert ended.text.startswith("RESYNC: ")
        await harness.becomes("Paused")

        late = open_stream(harness, UPDATE_NODE)
        await late.send(work(1))
        ended = await late.end()
        assert (ended.code, ended.text.partition(":")[0]) == (Code.ABORTED, "RESYNC")

        await harness.register()
        again = Trio(harness)
        await again.report(work(1))
        assert await again.allocations.allocations(1) == {"app-0": "node-app"}

    serve(registry, scenario)


def test_resync_ends_all_streams(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        trio = Trio(harness)
        await trio.report(work(1))
        await harness.core.call(lambda core: core.resync("rm", "to see what happens"))
        for stream in (trio.nodes, trio.applications, trio.allocations):
            assert (await stream.end()).text.startswith("RESYNC: ")

    serve(registry, scenario)


def test_the_last_half_close_is_the_shutdown(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        trio = Trio(harness)
        await trio.report(work(2))
        await trio.nodes.half_close()
        await trio.applications.half_close()
        assert len(await trio.allocations.allocations(2)) == 2
        assert await harness.state() == "Running"
        await trio.allocations.half_close()
        for stream in (trio.nodes, trio.applications, trio.allocations):
            assert (await stream.end()).code is Code.OK
        assert await harness.state() == "Stopped"

    serve(registry, scenario)


def test_the_layouts_are_not_mixed(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        nodes = open_stream(harness, UPDATE_NODE)
        await nodes.send(work(1))
        await nodes.read()
        update = harness.stream()
        await update.send(work(1))
        ended = await update.end()
        assert ended.code is Code.FAILED_PRECONDITION
        assert "uses a stream per subject" in ended.text
        assert await harness.state() == "Running"
        await harness.register()
        again = harness.stream()
        await again.send(work(1))
        assert len(await again.allocations(1)) == 1

    serve(registry, scenario)


def test_second_stream_of_a_subject_counts_as_returning(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        trio = Trio(harness)
        await trio.report(work(1))
        second = open_stream(harness, UPDATE_NODE)
        await second.send(work(1, app="more"))
        assert (await trio.nodes.end()).code is Code.ABORTED
        assert (await second.end()).text.startswith("RESYNC: ")

    serve(registry, scenario)
