"""The soak test in a few seconds; `python -m benchmarks.soak` runs it for as long as requested."""

from __future__ import annotations

import asyncio
import random

import pytest

from benchmarks.failure import BenchmarkFailure
from benchmarks.soak.manager import Manager
from benchmarks.soak.run import Soak
from yunikorn.interface.messages import Allocation, RejectedNode, UpdatedApplication, UpdateResponse
from yunikorn.resources import Resource
from yunikorn.states import COMPLETED
from yunikorn_service.client import ONE_STREAM


@pytest.mark.slow
def test_short_soak_loses_and_duplicates_no_allocations() -> None:
    lines: list[str] = []
    found = asyncio.run(Soak(3.0, 2, lines.append).run())
    assert found.placed > 0
    assert found.audits >= 2
    assert len(lines) == len(found.service_megabytes)


def reported(**fields: list[Allocation] | list[RejectedNode]) -> Manager:
    """Return a resource manager that runs `x` and has received this response."""
    manager = Manager("rm", ONE_STREAM, random.Random(1))
    manager.running["x"] = Allocation("x", "app", "x#1", "n00", Resource(vcore=30))
    manager.recv_update_response(UpdateResponse(**fields))  # type: ignore[arg-type]
    return manager


def test_soak_detects_wrong_responses() -> None:
    with pytest.raises(BenchmarkFailure, match="x runs on n00 and was placed on n01 as well"):
        reported(new_allocations=[Allocation("x", "app", "x#2", "n01")]).check()
    with pytest.raises(BenchmarkFailure, match="1 refused, the first: n00: no"):
        reported(rejected_nodes=[RejectedNode("n00", "no")]).check()
    reported().check()


def test_soak_expects_no_answer_to_asks_of_an_application_that_completed() -> None:
    manager = Manager("rm", ONE_STREAM, random.Random(1))
    manager.recv_update_response(
        UpdateResponse(updated_applications=[UpdatedApplication("app", COMPLETED, 0)])
    )
    manager.check()
    (report,) = manager.report()
    assert report.new_applications == []
