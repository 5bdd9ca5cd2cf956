"""Permit policies with drawn answers, and checks of held placements for random histories."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any

import attrs
from hypothesis import strategies as st

from yunikorn import api
from yunikorn.model.allocation import Allocation, PlacementHold
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.states import FAILING

PERMIT, REFUSE = 0, -1
"""Answers of a gatekeeper; any other number is a wait in seconds."""
ANSWERS = st.tuples(
    st.lists(st.sampled_from([1, 5, 20, 0.05, 100, PERMIT, REFUSE]), max_size=3),
    st.sampled_from([PERMIT, PERMIT, PERMIT, REFUSE, 5]),
).map(lambda drawn: [*drawn[0], drawn[1]])


@attrs.define(eq=False)
class Gatekeeper(api.PermitPolicy):
    """Answers in the drawn order, from a position that depends on the request."""

    name = "gatekeeper"
    answers: list[float] = attrs.field(factory=lambda: [PERMIT])
    timeout: float = 30.0
    grouped: bool = False
    asked: Counter[tuple[str, str]] = attrs.field(factory=Counter, init=False)
    last: dict[str, float] = attrs.field(factory=dict, init=False)
    """Last answer by uuid."""

    def group(self, allocation: Any) -> str | None:
        return allocation.app.id if self.grouped else None

    def permit(self, allocation: Any) -> str | api.Wait | None:
        app = allocation.app
        assert app.queue is not None
        assert app.state != FAILING, f"{app} fails, and was asked about"
        assert allocation.uuid in app.allocations, allocation
        assert allocation.uuid in allocation.node.allocations, allocation
        assert allocation.hold is not None, f"{allocation} is permitted, and was asked about again"
        assert self.last.get(allocation.uuid) != REFUSE, allocation
        at = zlib.crc32(f"{app.id} {allocation.key}".encode()) + self.asked[app.id, allocation.key]
        self.asked[app.id, allocation.key] += 1
        answer = self.last[allocation.uuid] = self.answers[at % len(self.answers)]
        if answer == REFUSE:
            return "drawn to be refused"
        return None if answer == PERMIT else api.Wait(answer, "drawn to wait")


@attrs.define(eq=False)
class Turnstile(Gatekeeper):
    """Lets a placement pass when as many of its application are placed as drawn."""

    name = "turnstile"
    needed: int = 2
    placed_of: Counter[str] = attrs.field(factory=Counter, init=False)

    def placed(self, task: api.Task, node: api.Node) -> None:
        self.placed_of[task.app.id] += 1

    def released(self, task: api.Task, node: api.Node) -> None:
        self.placed_of[task.app.id] -= 1
        assert self.placed_of[task.app.id] >= 0

    def group(self, allocation: Any) -> str | None:
        return str(allocation.app.id)

    def permit(self, allocation: Any) -> str | api.Wait | None:
        if self.placed_of[allocation.app.id] >= self.needed:
            return None
        return api.Wait(50, "alone")


GATEKEEPERS = [Gatekeeper, Turnstile]


@st.composite
def permits(draw: Any, without: int = 3) -> list[dict[str, Any]]:
    """Draw the permit policies of a configuration: none in `without` of five cases, else one or two."""
    if draw(st.integers(0, 4)) < without:
        return []
    found: list[dict[str, Any]] = []
    for name in draw(st.sampled_from([["gatekeeper"], ["turnstile"], ["gatekeeper", "turnstile"]])):
        if name == "turnstile":
            found.append({"name": name, "needed": draw(st.integers(1, 3)), "timeout": 40})
        else:
            found.append({"name": name, "answers": draw(ANSWERS), "grouped": draw(st.booleans())})
    return found


def check_permits(at: PartitionScheduler) -> None:
    """Assert that held placements agree with allocations, timers and groups."""
    held = at.partition.held_placements
    holds: dict[PlacementHold, list[Allocation]] = {}
    for one in at.partition.accounting.allocations.values():
        if one.hold is not None:
            holds.setdefault(one.hold, []).append(one)
            assert one.ask is not None
            assert one.ask.app.asks[one.key] is one.ask, one
            assert one.releasing is None, one
            assert one.timer is None, one
            assert one.node.state == "Schedulable" or one.tags, one
    assert list(held) == sorted(holds, key=lambda hold: hold.number)
    for hold, members in holds.items():
        assert {one.uuid for one in members} == {one.uuid for one in hold.members}, hold
        assert hold.gang is None or hold.gang.held or hold.gang.done, hold
        assert hold in at.permits._questions, hold
    assert set(at.permits._questions) == set(holds)
    in_groups = [hold for group in at.permits._groups.values() for hold in group]
    assert len(in_groups) == len(set(in_groups))
    assert set(in_groups) == {hold for hold in holds if hold.place is not None}
    for place, group in at.permits._groups.items():
        assert group, place
        assert {hold.place for hold in group} == {place}
    assert not at.permits._permitted
    for app in at.partition.applications.values():
        if app.atomic is not None and app.atomic.held and not app.atomic.done:
            assert any(hold.gang is app.atomic for hold in holds), app
            assert app.atomic.request is None, app
