"""Applications with many requests and allocations, which are passed on one by one."""

from __future__ import annotations

import asyncio

import pytest

from tests.core.kit import RM, document, partition, queue
from tests.rest.kit import Rest
from yunikorn_rest import application_reader, encoding, shapes
from yunikorn_rest.encoding import AnswerLists, LoopTurns
from yunikorn_service.runtime.sliced_reads import STALLED

PATHS = (
    "partition/default/application/big",
    "partition/default/queue/root.a/application/big",
    "partition/default/queue/root.a/applications",
    "partition/default/applications/active",
    "partition/default/applications/active?limit=1",
)


def cluster() -> RM:
    rm = RM(document(partition(queue("a"))))
    rm.node("n1", vcore=12)
    rm.app("big")
    rm.app("small")
    rm.ask("big", "running", 10, vcore=1)
    rm.ask("small", "running", 2, vcore=1)
    rm.schedule()
    for number in range(20):
        rm.ask("big", f"waiting-{number}", vcore=1)
    return rm


@pytest.mark.parametrize("path", PATHS)
def test_answer_is_the_same(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rest = Rest(cluster())
    whole = rest.get(path)
    monkeypatch.setattr(application_reader, "LARGE", 5)
    monkeypatch.setattr(encoding, "MOST", 3)
    apart = rest.get(path)
    assert apart.content == whole.content
    assert apart.headers["etag"] == whole.headers["etag"]
    assert apart.text.count("waiting-") >= 20


def test_dump_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rest = Rest(cluster())
    whole = rest.json("/debug/fullstatedump")["applications"]
    monkeypatch.setattr(application_reader, "LARGE", 5)
    assert rest.json("/debug/fullstatedump")["applications"] == whole


def test_requests_and_allocations_that_end_meanwhile_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application_reader, "LARGE", 5)
    rm = cluster()

    async def scenario() -> shapes.Application:
        parts = AnswerLists(LoopTurns(lambda: 0))
        at = rm.at_work()

        async def read() -> shapes.Application:
            slices = application_reader.read_application(at.partition.applications["big"], at, parts)
            for step in range(1000):
                try:
                    if next(slices) is STALLED:
                        await asyncio.sleep(0)
                except StopIteration as end:
                    found: shapes.Application = end.value
                    return found
                if step == 5:
                    rm.release_ask("big", "waiting-19")
                    rm.release("big", uuid=next(reversed(rm.running)), key="")
                    for uuid, one in list(rm.running.items()):
                        if one.application_id == "big":
                            rm.release("big", uuid=uuid)
                            break
            raise AssertionError("the reading does not end")

        return await parts.encode(asyncio.ensure_future(read()))

    found = asyncio.run(scenario())
    assert len(found.requests) < 20
    assert len(found.allocations) == 9
    assert found.used_resource == {"vcore": 10}


def test_heavy_parts_wait_for_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "HEAVIEST", 10)

    async def scenario() -> None:
        parts = AnswerLists(LoopTurns(lambda: 0))
        assert [next(parts.put(shapes.Bucket(), weight=4)) for _ in range(2)] == [None, None]
        third = parts.put(shapes.Bucket(), weight=4)
        assert [next(third), next(third)] == [STALLED, STALLED]
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        done.set_result(7)
        assert await parts.encode(done) == 7
        assert list(third) == [None]

    asyncio.run(scenario())
