"""Admission policies with drawn answers, and checks of held applications for random histories."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable
from typing import Any

import attrs
from hypothesis import strategies as st

from yunikorn import api
from yunikorn.interface.messages import UpdateResponse
from yunikorn.model.application import Application
from yunikorn.model.queue import Queue
from yunikorn.resources import INT32_MIN
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.states import COMPLETING, FAILING

ADMIT, REJECT = 0, -1
"""Answers of a doorkeeper; any other number is a wait in seconds."""
ANSWERS = st.tuples(
    st.lists(st.sampled_from([1, 5, 20, 0.05, 100, REJECT]), max_size=3),
    st.sampled_from([ADMIT, ADMIT, ADMIT, ADMIT, REJECT, 5]),
).map(lambda drawn: [*drawn[0], drawn[1]])


@attrs.define(eq=False)
class Doorkeeper(api.AdmissionPolicy):
    """Answers in the drawn order, from a position that depends on the application."""

    name = "doorkeeper"
    answers: list[float] = attrs.field(factory=lambda: [ADMIT])
    asked: Counter[Application] = attrs.field(factory=Counter, init=False)
    last: dict[Application, float] = attrs.field(factory=dict, init=False)
    """Last answer by application."""

    def admit(self, app: Any) -> str | api.Wait | None:
        assert app.queue is not None
        assert app.state != FAILING, f"{app} fails, and was asked about"
        assert app not in self.last or app.held is not None, f"{app} was admitted, and was asked about again"
        at = zlib.crc32(app.id.encode()) + self.asked[app]
        self.asked[app] += 1
        answer = self.last[app] = self.answers[at % len(self.answers)]
        if answer == REJECT:
            return "drawn to be rejected"
        return None if answer == ADMIT else api.Wait(answer, "drawn to wait")


@attrs.define(eq=False)
class Usher(Doorkeeper):
    """Another doorkeeper."""

    name = "usher"


DOORKEEPERS = [Doorkeeper, Usher]


@st.composite
def admissions(draw: Any, without: int = 3) -> list[dict[str, Any]]:
    """Draw the admission policies of a configuration: none in `without` of five cases, else one or two."""
    if draw(st.integers(0, 4)) < without:
        return []
    order = st.sampled_from([["doorkeeper"], ["usher"], ["doorkeeper", "usher"], ["usher", "doorkeeper"]])
    return [{"name": name, "answers": draw(ANSWERS)} for name in draw(order)]


def check_holds(at: PartitionScheduler) -> None:
    """Assert that the held applications are those that a policy makes wait, and that none is scheduled."""
    apps = at.partition.applications.values()
    held = {app for app in apps if app.held is not None}
    asked = [one.plugin for one in at.instances if isinstance(one.plugin, Doorkeeper)]
    for app in apps:
        waits = any(one.last.get(app, ADMIT) not in (ADMIT, REJECT) for one in asked)
        assert (app in held) == waits or app.state == FAILING, app
        assert app not in held or app.state != COMPLETING, app
        assert app not in held or app.admission_key is None, f"{app} takes a place in its admission class"
        assert app.paused == (app in held or app.backoff_timer is not None), app
    _check_rounds(at, held)
    for queue in at.partition.queues:
        _check_queue(queue)
    for node in at.partition.nodes.values():
        for ask in node.reservations:
            assert ask.app not in held, f"{node} is kept for {ask}"
    for ask in at.preemption._evictor.promised():
        assert ask.app not in held, f"victims make way for {ask}"
    for one in at.partition.accounting.allocations.values():
        real = one.replacement
        assert real is None or real.app not in held, f"{one} is replaced"


def _check_rounds(at: PartitionScheduler, held: set[Application]) -> None:
    rounds = at.held_applications._questions._due
    assert {app for app in held if app.state != FAILING} <= set(rounds) <= held
    for app, joined in rounds.items():
        assert app.held is not None
        assert app in joined.items, app
        assert joined.timer is not None, app
        assert joined.timer.due == joined.due == app.held.until, app


def _check_queue(queue: Queue) -> None:
    if queue.is_leaf:
        free = [app for app in queue.applications.values() if app.held is None]
        priorities = [app.priority for app in free]
    else:
        priorities = [child.priority for child in queue.children.values()]
    assert queue._levels == Counter(one for one in priorities if one != INT32_MIN), queue


def check_placed(at: PartitionScheduler, responses: Iterable[UpdateResponse], own: Iterable[str]) -> None:
    """Assert that no held application got an allocation, except those that the RM placed itself.

    An application that is held now was held from its submission on.
    """
    for response in responses:
        for one in response.new_allocations:
            app = at.partition.applications.get(one.application_id)
            assert app is None or app.held is None or one.uuid in own, f"{one} of a held application"
