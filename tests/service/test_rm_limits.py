"""Limits per RM: what is beyond them is refused entry by entry, with the limit and the option to set it."""

from __future__ import annotations

import logging
from typing import Any

import attrs
import pytest

from tests.core.kit import configuration
from tests.service.kit import work
from tests.service.stand import HERE, Stand, serve
from yunikorn.cli.main import main
from yunikorn.interface.configurations import Configurations
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.objects.partition import Partition
from yunikorn.registry import Registry
from yunikorn.resources import Resource
from yunikorn.service.settings import Limits, RMLimits, Settings

ONE = Resource(vcore=1)


def limited(**limits: int | None) -> Settings:
    """Settings with these limits per RM."""
    return Settings(HERE, limits=Limits(per_rm=RMLimits(**limits)))


def app(app_id: str, **fields: Any) -> AddApplicationRequest:
    """An application of the queue root.a."""
    return attrs.evolve(work(0, app=app_id).new_applications[0], **fields)


def ask(key: str, app_id: str = "app", **fields: Any) -> AllocationAsk:
    """An ask for one core."""
    return AllocationAsk(key, app_id, **{"resource_ask": ONE, **fields})


async def partition_of(stand: Stand) -> Partition:
    """The RM's partition in the core."""
    partition = await stand.core.call(lambda core: core.partition("rm"))
    assert partition is not None
    return partition.partition


async def told(stand: Stand, *requests: UpdateRequest) -> list[UpdateResponse]:
    """The responses to these updates, sent on a stream of their own in this order."""
    stream = stand.stream()
    heard: list[UpdateResponse] = []
    for request in requests:
        await stream.send(request)
    marker = UpdateRequest("rm", new_schedulable_nodes=[NewNodeInfo("end", schedulable_resource=Resource())])
    await stream.send(marker)
    while not any(node.node_id == "end" for response in heard for node in response.accepted_nodes):
        heard.append(await stream.read())
    return heard


def rejected(heard: list[UpdateResponse], kind: str = "allocations") -> list[tuple[str, str]]:
    """Identifier and reason of all that was rejected of a kind."""
    names = {"allocations": "allocation_key", "applications": "application_id", "nodes": "node_id"}
    return [
        (getattr(one, names[kind]), one.reason)
        for response in heard
        for one in getattr(response, f"rejected_{kind}")
    ]


def accepted(heard: list[UpdateResponse]) -> list[str]:
    """The applications that were accepted."""
    return [one.application_id for response in heard for one in response.accepted_applications]


def test_applications_are_limited_by_those_that_the_core_has(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(stand: Stand) -> None:
        await stand.register()
        heard = await told(
            stand,
            UpdateRequest(
                "rm", new_applications=[app("one"), app("two"), app("three")], asks=[ask("k", "one")]
            ),
            UpdateRequest("rm", new_applications=[app("four")]),
        )
        assert accepted(heard) == ["one", "two"]
        reason = (
            "the resource manager has 2 applications, which is as many as it may have (--limit applications)"
        )
        assert rejected(heard, "applications") == [("three", reason), ("four", reason)]
        assert rejected(heard) == [], "the asks of others are taken in"

    with caplog.at_level(logging.WARNING):
        serve(registry, story, limited(applications=2))
    lines = [record.getMessage() for record in caplog.records if "--limit" in record.getMessage()]
    assert len(lines) == 1, "logged once, however many are refused"
    assert "resource manager rm" in lines[0]


def test_an_application_that_is_gone_makes_room(registry: Registry) -> None:
    async def story(stand: Stand) -> None:
        await stand.register()
        stream = stand.stream()
        await stream.send(UpdateRequest("rm", new_applications=[app("one")]))
        assert accepted([await stream.read()]) == ["one"]
        await stand.core.carry_out(lambda core: core.fail_application("rm", "", "one", "over"))
        await stream.send(UpdateRequest("rm", new_applications=[app("two")]))
        heard: list[UpdateResponse] = []
        while not accepted(heard):
            heard.append(await stream.read())
        assert accepted(heard) == ["two"]

    serve(registry, story, limited(applications=1))


def test_limits_are_those_of_each_resource_manager(registry: Registry) -> None:
    async def story(stand: Stand) -> None:
        for rm_id in ("rm", "other"):
            await stand.register(rm_id)
            stream = stand.stream()
            await stream.send(UpdateRequest(rm_id, new_applications=[app("one")]))
            assert accepted([await stream.read()]) == ["one"]

    serve(registry, story, limited(applications=1))


def test_asks_are_limited_by_those_that_the_core_has(registry: Registry) -> None:
    async def story(stand: Stand) -> None:
        await stand.register()
        heard = await told(
            stand,
            UpdateRequest("rm", new_applications=[app("app")], asks=[ask(f"k{i}") for i in range(5)]),
            # One that is known may be asked for again, in another size.
            UpdateRequest("rm", asks=[ask("k1", resource_ask=Resource(vcore=2))]),
            UpdateRequest("rm", releases=AllocationReleasesRequest([], [AllocationAskRelease("app", "k0")])),
            UpdateRequest("rm", asks=[ask("k5"), ask("k6")]),
        )
        reason = "the resource manager has 3 asks, which is as many as it may have (--limit asks)"
        assert rejected(heard) == [("k3", reason), ("k4", reason), ("k6", reason)]
        assert sorted((await partition_of(stand)).applications["app"].asks) == ["k1", "k2", "k5"]

    serve(registry, story, limited(asks=3))


def test_allocations_that_end_make_room_for_asks(registry: Registry) -> None:
    async def story(stand: Stand) -> None:
        await stand.register()
        stream = stand.stream()
        await stream.send(work(3))
        placed: list[Allocation] = []
        while len(placed) < 3:
            placed += (await stream.read()).new_allocations
        more = UpdateRequest("rm", asks=[ask("more")])
        await stream.send(more)
        heard = [await stream.read()]
        while not rejected(heard):
            heard.append(await stream.read())
        ended = AllocationRelease("app", placed[0].uuid)
        await stream.send(UpdateRequest("rm", releases=AllocationReleasesRequest([ended], [])))
        await stream.send(more)
        assert list(await stream.allocations(1)) == ["more"]

    serve(registry, story, limited(asks=3))


def test_asks_of_the_newer_layout_count_and_allocations_do_not(registry: Registry) -> None:
    def allocation(key: str, node_id: str = "") -> Allocation:
        return Allocation(key, "app", key if node_id else "", node_id, ONE)

    async def story(stand: Stand) -> None:
        await stand.register()
        request = UpdateRequest("rm", new_applications=[app("app")])
        request.new_schedulable_nodes = [NewNodeInfo("n1", schedulable_resource=Resource(vcore=2))]
        existing = [allocation("a", "n1"), allocation("b", "n1")]
        request.allocations = [*existing, allocation("k1"), allocation("k2")]
        heard = await told(stand, request)
        assert [key for key, _ in rejected(heard)] == ["k2"]
        assert len((await partition_of(stand)).applications["app"].allocations) == 2

    serve(registry, story, limited(asks=1))


def test_tags_are_limited_in_each_entry(registry: Registry) -> None:
    few, many = {"a": "1", "b": "2"}, {"a": "1", "b": "2", "c": "3"}

    async def story(stand: Stand) -> None:
        await stand.register()
        request = UpdateRequest("rm", new_applications=[app("app", tags=few), app("full", tags=many)])
        request.asks = [ask("k1", tags=few), ask("k2", tags=many)]
        request.allocations = [Allocation("k3", "app", resource_per_alloc=ONE, allocation_tags=many)]
        heard = await told(stand, request)
        reason = "it has 3 tags, and may have 2 (--limit tags)"
        assert rejected(heard, "applications") == [("full", reason)]
        assert rejected(heard) == [("k2", reason), ("k3", reason)]

    serve(registry, story, limited(tags=2))


def test_resource_types_are_limited_over_all_that_an_rm_names(registry: Registry) -> None:
    async def story(stand: Stand) -> None:
        await stand.register()
        request = UpdateRequest(
            "rm", new_applications=[app("app"), app("gang", placeholder_ask=Resource(x1=1))]
        )
        request.new_schedulable_nodes = [
            NewNodeInfo("n1", schedulable_resource=Resource(vcore=9, memory=9)),
            NewNodeInfo("n2", schedulable_resource=Resource(x2=9)),
        ]
        request.asks = [ask("k1"), ask("k2", resource_ask=Resource(vcore=1, x3=1))]
        heard = await told(
            stand,
            UpdateRequest("rm", new_schedulable_nodes=request.new_schedulable_nodes[:1]),
            request,
            UpdateRequest("rm", updated_nodes=[UpdateNodeInfo("n1", schedulable_resource=Resource(x4=1))]),
        )
        reason = "it names another resource type, and 2 are in use, of 2 that may be (--limit resource-types)"
        assert rejected(heard, "applications") == [("gang", reason)]
        assert rejected(heard) == [("k2", reason)]
        assert ("n2", reason) in rejected(heard, "nodes")
        assert dict((await partition_of(stand)).nodes["n1"].capacity) == {"vcore": 9, "memory": 9}

    serve(registry, story, limited(resource_types=2))


def test_a_registration_begins_to_count_again(registry: Registry) -> None:
    async def story(stand: Stand) -> None:
        for types in (Resource(vcore=1, memory=1), Resource(gpu=1, disk=1)):
            await stand.register()
            node = NewNodeInfo("n1", schedulable_resource=types)
            heard = await told(stand, UpdateRequest("rm", new_schedulable_nodes=[node]))
            assert rejected(heard, "nodes") == []

    serve(registry, story, limited(resource_types=2))


def test_without_a_limit_everything_is_taken_in(registry: Registry) -> None:
    async def story(stand: Stand) -> None:
        await stand.register()
        tags = {str(number): "" for number in range(5000)}
        types = Resource(**{f"r{number}": 1 for number in range(2000)})
        request = UpdateRequest("rm", new_applications=[app("app", tags=tags)])
        request.asks = [ask("k", resource_ask=types, tags=tags)]
        heard = await told(stand, request)
        assert rejected(heard) == rejected(heard, "applications") == []

    serve(registry, story, limited(applications=None, asks=None, tags=None, resource_types=None))


def test_the_service_has_limits_by_default() -> None:
    assert attrs.asdict(Limits().per_rm) == {
        "applications": 100_000,
        "asks": 1_000_000,
        "tags": 1_000,
        "resource_types": 1_000,
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("asks", "give NAME=NUMBER"),
        ("asks=", "give NAME=NUMBER"),
        ("asks=-1", "give NAME=NUMBER"),
        ("asks=0", "give NAME=NUMBER"),
        (
            "ask=5",
            "no limit is called 'ask', did you mean 'asks'?; known: applications, asks, tags, resource-types",
        ),
    ],
)
def test_limits_are_set_by_name(text: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--demo", "--limit", text]) == 2
    assert told in capsys.readouterr().err


def test_the_texts_of_options_are_read() -> None:
    assert RMLimits.parse(["asks=5", "resource-types=none", "asks=7"]) == RMLimits(
        asks=7, resource_types=None
    )


def test_configurations_are_not_counted(registry: Registry) -> None:
    """Quotas of a configuration may name any type."""
    quotas = {"max": {f"r{number}": 1 for number in range(10)}}

    async def story(stand: Stand) -> None:
        await stand.register()
        await told(stand, UpdateRequest("rm", new_applications=[app("app")], asks=[ask("k")]))

    config = configuration({"name": "a", "resources": quotas})
    serve(registry, story, limited(resource_types=1), configurations=Configurations({"": config}))
