"""Limits per RM: each entry beyond a limit is refused, with the limit and the option that sets it."""

from __future__ import annotations

import logging
from typing import Any

import attrs
import pytest

from tests.core.kit import configuration
from tests.service.harness import HERE, ServiceHarness, serve
from tests.service.kit import work
from yunikorn.accounting.partition import Partition
from yunikorn.cli.main import main
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    RemoveApplicationRequest,
    TerminationType,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.resources import Resource
from yunikorn_service.policy_groups import Configurations
from yunikorn_service.service_settings import RMLimits, ServerSettings, ServiceLimits

ONE = Resource(vcore=1)


def limited(**limits: int | None) -> ServerSettings:
    """Return settings with these limits per RM."""
    return ServerSettings(HERE, limits=ServiceLimits(per_rm=RMLimits(**limits)))


def app(app_id: str, **fields: Any) -> AddApplicationRequest:
    """Return an application of the queue root.a."""
    return attrs.evolve(work(0, app=app_id).new_applications[0], **fields)


def ask(key: str, app_id: str = "app", **fields: Any) -> AllocationAsk:
    """Return an ask for one vcore."""
    return AllocationAsk(key, app_id, **{"resource_ask": ONE, **fields})


async def partition_of(harness: ServiceHarness) -> Partition:
    """Return the RM's partition in the core."""
    partition = await harness.core.call(lambda core: core.partition("rm"))
    assert partition is not None
    return partition.partition


async def reported(harness: ServiceHarness, *requests: UpdateRequest, on: Any = None) -> list[UpdateResponse]:
    """Return the responses to these updates, sent in this order on a stream, by default a new one."""
    stream = on or harness.stream()
    received: list[UpdateResponse] = []
    for request in requests:
        await stream.send(request)
    marker = UpdateRequest("rm", new_schedulable_nodes=[NewNodeInfo("end", schedulable_resource=Resource())])
    await stream.send(marker)
    while not any(one.node_id == "end" for answer in received for one in answer.accepted_nodes) and not any(
        one.node_id == "end" for answer in received for one in answer.rejected_nodes
    ):
        received.append(await stream.read())
    return received


def rejected(received: list[UpdateResponse], kind: str = "allocations") -> list[tuple[str, str]]:
    """Return identifier and reason of all rejections of a kind."""
    names = {"allocations": "allocation_key", "applications": "application_id", "nodes": "node_id"}
    return [
        (getattr(one, names[kind]), one.reason)
        for response in received
        for one in getattr(response, f"rejected_{kind}")
    ]


def accepted(received: list[UpdateResponse]) -> list[str]:
    """Return the accepted applications."""
    return [one.application_id for response in received for one in response.accepted_applications]


def test_application_limit_counts_applications_of_the_core(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        received = await reported(
            harness,
            UpdateRequest(
                "rm", new_applications=[app("one"), app("two"), app("three")], asks=[ask("k", "one")]
            ),
            UpdateRequest("rm", new_applications=[app("four")]),
        )
        assert accepted(received) == ["one", "two"]
        reason = "the resource manager has 2 applications, which is the limit (--limit applications)"
        assert rejected(received, "applications") == [("three", reason), ("four", reason)]
        assert rejected(received) == [], "the asks of others are taken in"

    with caplog.at_level(logging.WARNING):
        serve(registry, scenario, limited(applications=2))
    lines = [record.getMessage() for record in caplog.records if "--limit" in record.getMessage()]
    assert len(lines) == 1, "logged once, however many are refused"
    assert "resource manager rm" in lines[0]


def test_removed_application_does_not_count(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(UpdateRequest("rm", new_applications=[app("one")]))
        assert accepted([await stream.read()]) == ["one"]
        await harness.core.carry_out(lambda core: core.fail_application("rm", "", "one", "over"))
        await stream.send(UpdateRequest("rm", new_applications=[app("two")]))
        received: list[UpdateResponse] = []
        while not accepted(received):
            received.append(await stream.read())
        assert accepted(received) == ["two"]

    serve(registry, scenario, limited(applications=1))


def test_limits_apply_to_each_resource_manager(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        for rm_id in ("rm", "other"):
            await harness.register(rm_id)
            stream = harness.stream()
            await stream.send(UpdateRequest(rm_id, new_applications=[app("one")]))
            assert accepted([await stream.read()]) == ["one"]

    serve(registry, scenario, limited(applications=1))


def test_ask_limit_counts_asks_of_the_core(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        received = await reported(
            harness,
            UpdateRequest("rm", new_applications=[app("app")], asks=[ask(f"k{i}") for i in range(5)]),
            # A known ask may be updated to another size.
            UpdateRequest("rm", asks=[ask("k1", resource_ask=Resource(vcore=2))]),
            UpdateRequest("rm", releases=AllocationReleasesRequest([], [AllocationAskRelease("app", "k0")])),
            UpdateRequest("rm", asks=[ask("k5"), ask("k6")]),
        )
        reason = "the resource manager has 3 asks, which is the limit (--limit asks)"
        assert rejected(received) == [("k3", reason), ("k4", reason), ("k6", reason)]
        assert sorted((await partition_of(harness)).applications["app"].asks) == ["k1", "k2", "k5"]

    serve(registry, scenario, limited(asks=3))


def test_ended_allocations_do_not_count(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(3))
        placed: list[Allocation] = []
        while len(placed) < 3:
            placed += (await stream.read()).new_allocations
        more = UpdateRequest("rm", asks=[ask("more")])
        await stream.send(more)
        received = [await stream.read()]
        while not rejected(received):
            received.append(await stream.read())
        ended = AllocationRelease("app", placed[0].uuid)
        await stream.send(UpdateRequest("rm", releases=AllocationReleasesRequest([ended], [])))
        await stream.send(more)
        assert list(await stream.allocations(1)) == ["more"]

    serve(registry, scenario, limited(asks=3))


def test_a_request_that_could_not_be_started_still_counts(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(3))
        begun: list[Allocation] = []
        while len(begun) < 3:
            begun += (await stream.read()).new_allocations
        failed = AllocationRelease(
            "app", begun[0].uuid, termination_type=TerminationType.SCHEDULING_FAILED_ON_RM
        )
        releases = AllocationReleasesRequest([failed], [])
        await stream.send(UpdateRequest("rm", asks=[ask("more")], releases=releases))
        received = [await stream.read()]
        while not rejected(received):
            received.append(await stream.read())
        assert keys(received) == ["more"]

    serve(registry, scenario, limited(asks=3))


def placed(key: str, node_id: str = "n1", **fields: Any) -> Allocation:
    """Return an allocation of one vcore on a node."""
    return Allocation(key, "app", **{"uuid": key, "node_id": node_id, "resource_per_alloc": ONE, **fields})


def joining(*existing: Allocation) -> NewNodeInfo:
    """Return a large node with these allocations."""
    return NewNodeInfo("n1", schedulable_resource=Resource(vcore=100), existing_allocations=list(existing))


def keys(received: list[UpdateResponse]) -> list[str]:
    """Return the keys of all rejections."""
    return [key for key, _ in rejected(received)]


def update(**fields: Any) -> UpdateRequest:
    """Return an update of the resource manager rm."""
    return UpdateRequest("rm", **fields)


def released(*ends: AllocationRelease | AllocationAskRelease) -> AllocationReleasesRequest:
    """Return the release of these allocations and asks."""
    return AllocationReleasesRequest(
        [one for one in ends if isinstance(one, AllocationRelease)],
        [one for one in ends if isinstance(one, AllocationAskRelease)],
    )


@pytest.mark.parametrize("together", [False, True])
def test_recovered_allocations_count_as_asks(registry: Registry, together: bool) -> None:
    existing = [placed(f"r{number}") for number in range(7)]

    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        recovery = update(new_applications=[app("app")], new_schedulable_nodes=[joining(*existing)])
        more = update(asks=[ask("more")])
        if together:
            recovery.asks, more.asks = more.asks, []
        received = await reported(harness, recovery, more, on=stream)
        reason = "the resource manager has 5 asks, which is the limit (--limit asks)"
        assert rejected(received) == [("more", reason)]
        assert len((await partition_of(harness)).applications["app"].allocations) == 7, "what runs is kept"
        ends = [AllocationRelease("app", one.uuid) for one in existing[:3]]
        received = await reported(
            harness, update(releases=released(*ends)), update(asks=[ask("k1"), ask("k2")]), on=stream
        )
        assert keys(received) == ["k2"]

    serve(registry, scenario, limited(asks=5))


def test_recovered_allocations_that_await_their_application_count(registry: Registry) -> None:
    tags = {"application.create.force": "true"}
    existing = [placed(f"r{number}", allocation_tags=tags) for number in range(3)]

    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        received = await reported(
            harness,
            update(new_schedulable_nodes=[joining(*existing)], new_applications=[app("other")]),
            update(asks=[ask("k1", "other")]),
            update(new_applications=[app("app", tags=tags)]),
            update(asks=[ask("k2")]),
        )
        assert keys(received) == ["k1", "k2"]
        assert len((await partition_of(harness)).applications["app"].allocations) == 3

    serve(registry, scenario, limited(asks=3))


def test_allocations_placed_by_the_rm_are_limited(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        received = await reported(
            harness,
            update(new_applications=[app("app")], new_schedulable_nodes=[joining()]),
            update(allocations=[placed(f"p{number}") for number in range(5)]),
            update(allocations=[placed("p5")], asks=[ask("k")]),
            on=stream,
        )
        assert sorted(keys(received)) == ["k", "p3", "p4", "p5"]
        foreign = [placed(f"f{number}", allocation_tags={"foreign": "static"}) for number in range(5)]
        resized = placed("p1", resource_per_alloc=Resource(vcore=2))
        by_key = placed("p2", uuid="", node_id="", resource_per_alloc=Resource(vcore=3))
        assert keys(await reported(harness, update(allocations=[*foreign, resized, by_key]), on=stream)) == []
        held = (await partition_of(harness)).applications["app"].allocations
        assert {key: one.resource["vcore"] for key, one in held.items()} == {"p0": 1, "p1": 2, "p2": 3}
        end = released(AllocationRelease("app", "p0"))
        assert keys(
            await reported(harness, update(releases=end, allocations=[placed("p6"), placed("p7")]), on=stream)
        ) == ["p7"]

    serve(registry, scenario, limited(asks=3))


def test_pending_ask_placed_by_the_rm_counts_once(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        received = await reported(
            harness,
            update(new_applications=[app("app")], asks=[ask("k0"), ask("k1")]),
            update(new_schedulable_nodes=[joining()], allocations=[placed("k0"), placed("u", uuid="u")]),
            update(allocations=[placed("k0", uuid="another")]),
        )
        assert keys(received) == ["u", "k0"]

    serve(registry, scenario, limited(asks=2))


def test_allocations_whose_ask_was_released_count(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(3))
        assert len(await stream.allocations(3)) == 3
        ends = [AllocationAskRelease("app", f"app-{number}") for number in range(3)]
        received = await reported(
            harness, update(releases=released(*ends)), update(asks=[ask("more")]), on=stream
        )
        assert keys(received) == ["more"]

    serve(registry, scenario, limited(asks=3))


@pytest.mark.parametrize("next_id", ["one", "two"])
def test_application_removed_in_the_same_update_does_not_count(registry: Registry, next_id: str) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        asks = [ask("k1", next_id), ask("k2", next_id), ask("k3", next_id)]
        change = update(new_applications=[app(next_id)], asks=asks)
        change.remove_applications = [RemoveApplicationRequest("one")] * 2
        change.remove_applications.append(RemoveApplicationRequest("unknown"))
        first = update(new_applications=[app("one")], asks=[ask("k1", "one"), ask("k2", "one")])
        received = await reported(harness, first, change, update(new_applications=[app("three")]))
        assert accepted(received) == ["one", next_id]
        assert [name for name, _ in rejected(received, "applications")] == ["three"]
        assert keys(received) == ["k3"]

    serve(registry, scenario, limited(applications=1, asks=2))


def test_asks_released_in_the_same_update_do_not_count(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(3))
        held: list[Allocation] = []
        while len(held) < 3:
            held += (await stream.read()).new_allocations
        ends = released(*(AllocationRelease("app", one.uuid) for one in held[:2]))
        received = await reported(
            harness, update(releases=ends, asks=[ask("k1"), ask("k2"), ask("k3")]), on=stream
        )
        assert keys(received) == ["k3"]
        # By key.
        ends = released(AllocationRelease("app", allocation_key="app-2"))
        received = await reported(harness, update(releases=ends, asks=[ask("k4"), ask("k5")]), on=stream)
        assert len(keys(received)) == 1
        assert len((await partition_of(harness)).applications["app"].asks) == 3

    serve(registry, scenario, limited(asks=3))


@pytest.mark.parametrize(
    ("removed", "freed", "room"),
    [((), 1, 1), (("a",), 1, 2), ((), 2, 2), (("b",), 2, 3), ((), 5, 3)],
)
def test_asks_released_by_key_alone_do_not_count(
    registry: Registry, removed: tuple[str, ...], freed: int, room: int
) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        apps = [app(name) for name in ("a", "b", "c", "other")]
        asks = [ask("k", name) for name in ("a", "b", "c")]
        await reported(harness, update(new_applications=apps, asks=asks), on=stream)
        change = update(
            remove_applications=[RemoveApplicationRequest(name) for name in removed],
            releases=released(*(AllocationAskRelease("", "k") for _ in range(freed))),
            asks=[ask(f"n{number}", "other") for number in range(5)],
        )
        received = await reported(harness, change, on=stream)
        refused = [key for key, reason in rejected(received) if "--limit asks" in reason]
        assert refused == [f"n{number}" for number in range(room, 5)]
        known = (await partition_of(harness)).applications.values()
        assert sum(len(one.asks) for one in known) == 3

    serve(registry, scenario, limited(asks=3))


def test_ask_updated_while_its_allocation_ends_counts_once(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(1))
        held: list[Allocation] = []
        while not held:
            held += (await stream.read()).new_allocations
        again = AllocationAsk("app-0", "app", resource_ask=ONE, max_allocations=2)
        end = released(AllocationRelease("app", held[0].uuid))
        received = await reported(harness, update(releases=end, asks=[again, ask("more")]), on=stream)
        assert keys(received) == ["more"]

    serve(registry, scenario, limited(asks=1))


def test_asks_of_the_newer_layout_count(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        request = update(new_applications=[app("app")])
        request.allocations = [placed(key, uuid="", node_id="") for key in ("k1", "k2")]
        assert keys(await reported(harness, request)) == ["k2"]

    serve(registry, scenario, limited(asks=1))


def test_tags_are_limited_in_each_entry(registry: Registry) -> None:
    few, many = {"a": "1", "b": "2"}, {"a": "1", "b": "2", "c": "3"}

    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        request = UpdateRequest("rm", new_applications=[app("app", tags=few), app("full", tags=many)])
        request.asks = [ask("k1", tags=few), ask("k2", tags=many)]
        request.allocations = [Allocation("k3", "app", resource_per_alloc=ONE, allocation_tags=many)]
        received = await reported(harness, request)
        reason = "it has 3 tags, the limit is 2 (--limit tags)"
        assert rejected(received, "applications") == [("full", reason)]
        assert rejected(received) == [("k2", reason), ("k3", reason)]

    serve(registry, scenario, limited(tags=2))


def test_resource_types_of_all_entries_of_an_rm_are_limited(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        request = UpdateRequest(
            "rm", new_applications=[app("app"), app("gang", placeholder_ask=Resource(x1=1))]
        )
        request.new_schedulable_nodes = [
            NewNodeInfo("n1", schedulable_resource=Resource(vcore=9, memory=9)),
            NewNodeInfo("n2", schedulable_resource=Resource(x2=9)),
        ]
        request.asks = [ask("k1"), ask("k2", resource_ask=Resource(vcore=1, x3=1))]
        received = await reported(
            harness,
            UpdateRequest("rm", new_schedulable_nodes=request.new_schedulable_nodes[:1]),
            request,
            UpdateRequest("rm", updated_nodes=[UpdateNodeInfo("n1", schedulable_resource=Resource(x4=1))]),
        )
        reason = "it names another resource type, and 2 are in use: the limit is 2 (--limit resource-types)"
        assert rejected(received, "applications") == [("gang", reason)]
        assert rejected(received) == [("k2", reason)]
        assert ("n2", reason) in rejected(received, "nodes")
        assert dict((await partition_of(harness)).nodes["n1"].capacity) == {"vcore": 9, "memory": 9}

    serve(registry, scenario, limited(resource_types=2))


def test_registration_resets_the_counts(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        for types in (Resource(vcore=1, memory=1), Resource(gpu=1, disk=1)):
            await harness.register()
            node = NewNodeInfo("n1", schedulable_resource=types)
            received = await reported(harness, UpdateRequest("rm", new_schedulable_nodes=[node]))
            assert rejected(received, "nodes") == []

    serve(registry, scenario, limited(resource_types=2))


def test_everything_is_accepted_without_limits(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        tags = {str(number): "" for number in range(5000)}
        types = Resource(**{f"r{number}": 1 for number in range(2000)})
        request = UpdateRequest("rm", new_applications=[app("app", tags=tags)])
        request.asks = [ask("k", resource_ask=types, tags=tags)]
        received = await reported(harness, request)
        assert rejected(received) == rejected(received, "applications") == []

    serve(registry, scenario, limited(applications=None, asks=None, tags=None, resource_types=None))


def test_the_service_has_limits_by_default() -> None:
    assert attrs.asdict(ServiceLimits().per_rm) == {
        "applications": 100_000,
        "asks": 1_000_000,
        "tags": 1_000,
        "resource_types": 1_000,
    }


@pytest.mark.parametrize(
    ("text", "reported"),
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
def test_limits_are_set_by_name(text: str, reported: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--demo", "--limit", text]) == 2
    assert reported in capsys.readouterr().err


def test_option_texts_are_parsed() -> None:
    assert RMLimits.parse(["asks=5", "resource-types=none", "asks=7"]) == RMLimits(
        asks=7, resource_types=None
    )


def test_configurations_do_not_count(registry: Registry) -> None:
    """Quotas of a configuration may name any type."""
    quotas = {"max": {f"r{number}": 1 for number in range(10)}}

    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        await reported(harness, UpdateRequest("rm", new_applications=[app("app")], asks=[ask("k")]))

    config = configuration({"name": "a", "resources": quotas})
    serve(registry, scenario, limited(resource_types=1), configurations=Configurations({"": config}))
