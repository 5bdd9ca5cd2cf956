"""The rmID in refusals and in the log: escaped, in one line, and short."""

from __future__ import annotations

import io

import grpc
import pytest

from tests.service.harness import Ended, ServiceHarness, serve
from tests.service.test_callbacks import connect
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import UpdateRequest
from yunikorn_service.logs import logging_to

HOSTILE = "rm\n2026-01-01T00:00:00Z CRITICAL core: forged\x1b[2J\r\u2028\u202e"
ESCAPED = "rm\\n2026-01-01T00:00:00Z CRITICAL core: forged\\x1b[2J\\r\\u2028\\u202e"
ODD = "rm\u2028\u202ex"
"""A name that may be registered: it has no control characters."""
ODD_ESCAPED = "rm\\u2028\\u202ex"


def is_clean(text: str) -> bool:
    """Return True if a text is one line of printable characters."""
    return text.isprintable()


def test_unregistered_rm_id_is_escaped(registry: Registry) -> None:
    log = io.StringIO()

    async def scenario(harness: ServiceHarness) -> None:
        stream = harness.stream()
        await stream.send(UpdateRequest(HOSTILE))
        ended = await stream.end()
        assert ended.code is grpc.StatusCode.FAILED_PRECONDITION
        assert f"'{ESCAPED}' is not registered" in ended.text
        assert is_clean(ended.text)

    with logging_to(log, {"": "debug"}):
        serve(registry, scenario)
    lines = log.getvalue().splitlines()
    assert [line for line in lines if ESCAPED in line]
    assert all(is_clean(line) for line in lines)
    assert not [line for line in lines if line.lstrip().startswith("2026-01-01")]


def test_long_name_is_truncated(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        stream = harness.stream()
        await stream.send(UpdateRequest("x" * 1_000_000))
        ended = await stream.end()
        assert len(ended.text) < 1000
        assert "is not registered: call RegisterResourceManager" in ended.text
        with pytest.raises(Ended) as refused:
            await harness.register("y" * 1_000_000)
        assert len(refused.value.text) < 1000

    log = io.StringIO()
    with logging_to(log, {"": "debug"}):
        serve(registry, scenario)
    assert max(map(len, log.getvalue().splitlines())) < 1500


def test_id_of_another_rm_in_a_stream_is_escaped(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register(ODD)
        stream = harness.stream()
        await stream.send(UpdateRequest(ODD))
        await stream.send(UpdateRequest(HOSTILE))
        ended = await stream.end()
        assert f"rmID: '{ESCAPED}' on a stream of resource manager '{ODD_ESCAPED}'" in ended.text
        assert is_clean(ended.text)

    serve(registry, scenario)


def test_rm_id_of_replaced_streams_is_escaped(registry: Registry) -> None:
    log = io.StringIO()

    async def scenario(harness: ServiceHarness) -> None:
        await harness.register(ODD)
        first, second = harness.stream(), harness.stream()
        await first.send(UpdateRequest(ODD))
        await connect(harness, rm_id=ODD)
        await second.send(UpdateRequest(ODD))
        for ended in (await first.end(), await again(harness, second)):
            assert ended.code is grpc.StatusCode.ABORTED
            assert ODD_ESCAPED in ended.text
            assert is_clean(ended.text)

    async def again(harness: ServiceHarness, stream: object) -> Ended:
        await harness.register(ODD)
        return await stream.end()  # type: ignore[attr-defined,no-any-return]

    with logging_to(log, {"": "debug"}):
        serve(registry, scenario)
    assert all(is_clean(line) for line in log.getvalue().splitlines())


def test_refused_registration_is_logged_in_one_line(registry: Registry) -> None:
    log = io.StringIO()

    async def scenario(harness: ServiceHarness) -> None:
        with pytest.raises(Ended) as refused:
            await harness.register(HOSTILE)
        assert refused.value.code is grpc.StatusCode.INVALID_ARGUMENT
        assert is_clean(refused.value.text)

    with logging_to(log, {"": "debug"}):
        serve(registry, scenario)
    assert all(is_clean(line) for line in log.getvalue().splitlines())
    assert ESCAPED[:40] in log.getvalue()
