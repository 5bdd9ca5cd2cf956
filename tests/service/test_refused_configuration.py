"""A refused RM configuration: the log has places and kinds of its problems, the RM receives the full text."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from tests.core.kit import configuration
from tests.service.kit import PATIENCE
from tests.service.process import Shim, Start
from yunikorn.errors import ConfigError, Problem
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn_service.call_endings import refusal_of
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.generated import callbacks_pb2 as wire
from yunikorn_service.wire.generated import si_v0_11_pb2 as si
from yunikorn_service.wire.protocol import CALLBACKS, CONNECT, REGISTER, SCHEDULER, path

UNIX = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
SECRETS = """\
partitions:
  - name: default
    hunter1: 1
    hunter1: 2
    queues:
      - name: hunter two
        resources: {max: {memory: hunter3}}
        properties: {application.sort.policy: hunter4}
        submitacl: 7
      - {hunter5: x}
"""
BROKEN = "partitions: [hunter6\n  : : hunter7"


def refused(shim: Shim, config: str) -> str:
    """Register with an invalid configuration, and return the refusal."""
    call = shim.channel.unary_unary(path(SCHEDULER, REGISTER))
    request = RegisterResourceManagerRequest("rm", "v9", config=config)
    with pytest.raises(grpc.RpcError) as error:
        call(v0_11.REGISTER_REQUEST.encode(request), timeout=PATIENCE)
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    return str(error.value.details())


@UNIX
def test_rejected_configuration_is_not_quoted_in_the_log(start: Start) -> None:
    service = start("--allow-rm-config", "--grpc", "127.0.0.1:0", "--log", "debug")
    shim = Shim(service.address)
    reported = refused(shim, SECRETS) + refused(shim, BROKEN)
    assert "hunter" in reported, "the RM receives the full message"
    shim.register()
    asyncio.run(update(service.address))
    shim.close()
    service.signal(signal.SIGTERM)
    assert service.end() == 0
    log = "".join(service.log)
    assert "hunter" not in log
    lines = [line for line in service.log if "was refused" in line]
    assert len(lines) == 2
    assert "resource manager rm" in lines[0]
    assert "line 4, column 5: a key is given twice" in lines[0]
    assert "not valid YAML" in lines[1]
    twice = [line for line in service.log if "line 4, column 5: a key is given twice" in line]
    assert len(twice) == 2, "once for the registration, once for the update"


async def update(address: str) -> None:
    """Send the same configuration for a registered RM, and assert that it is refused."""
    channel: Any
    async with grpc.aio.insecure_channel(address) as channel:
        call = channel.stream_stream(path(CALLBACKS, CONNECT))()
        await call.write(wire.FromResourceManager(open=wire.Open(rm_id="rm")).SerializeToString())
        await call.read()
        request = si.UpdateConfigurationRequest(configs=SECRETS)
        question = wire.FromResourceManager(call=1, update_configuration=request)
        await call.write(question.SerializeToString())
        answer = wire.FromScheduler.FromString(await call.read())
        assert not answer.configuration_updated.success
        assert "hunter" in answer.configuration_updated.reason


@UNIX
def test_a_file_of_the_service_is_quoted(start: Start, tmp_path: Path) -> None:
    config = tmp_path / "queues.yaml"
    config.write_text(configuration({"name": "a"}))
    service = start("--config", str(config), "--grpc", "127.0.0.1:0")
    config.write_text("partitions: [{name: default, queues: [{name: 'not a name'}]}]")
    service.signal(signal.SIGHUP)
    service.wait_for("the new configuration was rejected")
    service.wait_for("not a name")


@pytest.mark.parametrize(
    ("problem", "logged"),
    [
        (Problem("a", "unknown key; known: b", 3, 4), "line 3, column 4: an unknown key"),
        (
            Problem("a", "the key 'x' is given twice, first in line 1", 3, 4),
            "line 3, column 4: a key is given twice",
        ),
        (Problem("a", "required, but missing: x", 3, 4), "line 3, column 4: a key is missing"),
        (Problem("a", "expected a list, got 'x'", 3, 4), "line 3, column 4: a value of another type"),
        (Problem("", "this is not valid YAML: x", 3, 4), "line 3, column 4: not valid YAML"),
        (Problem("a.x", "x cannot be", 3, 4), "line 3, column 4: a value that cannot be used"),
        (Problem("a.x", "x cannot be"), "a value that cannot be used"),
    ],
)
def test_problem_is_logged_by_position_and_kind(problem: Problem, logged: str) -> None:
    refusal = refusal_of(ConfigError([problem]))
    assert refusal.logged == f"the configuration cannot be used: {logged}"
    assert problem.message in refusal.details


def test_log_contains_some_of_many_problems_and_their_number() -> None:
    refusal = refusal_of(ConfigError([Problem("a", "unknown key", line) for line in range(1, 1001)]))
    assert refusal.logged.count("unknown key") == 20
    assert refusal.logged.endswith("; and 980 more")
