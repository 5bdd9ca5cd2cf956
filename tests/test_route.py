"""The way of one ask, from `update` to the callback of the resource manager: calls and files.

`pytest -s tests/test_route.py` prints every call, in order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from tests.core.kit import RM
from yunikorn.interface.messages import AllocationAsk, UpdateRequest, UpdateResponse
from yunikorn.resources import Resource
from yunikorn_commands.build import PURE, kind_of_build

pytestmark = pytest.mark.skipif(kind_of_build() != PURE, reason="calls of compiled code cannot be counted")

CHECKOUT = Path(__file__).parent.parent
PACKAGES = tuple(str(CHECKOUT / name) for name in ("yunikorn", "plugins", "policies"))
MOST_CALLS, MOST_FILES = 112, 32


def calls_of(action: Callable[[], object], until: Callable[[], bool]) -> list[tuple[str, str]]:
    """Return file and name of each function of the project that is called before `until` returns True."""
    calls: list[tuple[str, str]] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGES) and not until():
            calls.append((str(Path(code.co_filename).relative_to(CHECKOUT)), code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls


def test_an_ask_takes_few_calls_through_few_files() -> None:
    rm = RM()
    for name in ("n1", "n2", "n3"):
        rm.node(name, vcore=10)
    rm.app("app")
    rm.ask("app", "first", vcore=1)
    rm.schedule()
    responses: list[UpdateResponse] = []
    receive = rm.recv_update_response

    def note(response: UpdateResponse) -> None:
        responses.append(response)
        receive(response)

    rm.recv_update_response = note  # type: ignore[method-assign]
    ask = AllocationAsk("ask", "app", resource_ask=Resource(vcore=1))

    def place() -> None:
        rm.scheduler.update(UpdateRequest("rm", asks=[ask]))
        rm.scheduler.schedule()

    calls = calls_of(place, lambda: bool(responses))
    for file, function in calls:
        print(f"{file}: {function}")
    files = {file for file, _ in calls}
    print(f"{len(calls)} calls, {len(files)} files")
    assert [one.allocation_key for response in responses for one in response.new_allocations] == ["ask"]
    assert len(calls) <= MOST_CALLS
    assert len(files) <= MOST_FILES
