"""Reservation policies with drawn answers, and checks of their bounds for random histories."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any

import attrs
from hypothesis import strategies as st

from yunikorn import api
from yunikorn.clock import SECOND
from yunikorn.model.application import Application
from yunikorn.model.ask import Ask
from yunikorn.model.queue import Queue
from yunikorn.scheduling.obstacles import obstacles
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.scheduling.reservations.reservations import Reservations
from yunikorn.states import STOPPED

NEVER = -1.0
"""Age of requests that must not reserve."""


@attrs.frozen(eq=False)
class Reserver(api.ReservationPolicy):
    """Answers as drawn, from a position that depends on the request, queue or application."""

    name = "reserver"
    ages: list[float]
    queues: list[int]
    apps: list[int]
    durations: list[float]
    pause: float = 5.0
    by_name: bool = False

    def reserves_after(self, ask: api.Ask, delay: float | None) -> float | None:
        age = _drawn(self.ages, f"{ask.app.id}.{ask.key}")
        return None if age == NEVER else age

    def most_in(self, queue: api.Queue) -> int | None:
        return _bound(self.queues, queue.path)

    def most_of(self, app: api.Application) -> int | None:
        return _bound(self.apps, app.id)

    def lasts(self, ask: api.Ask) -> float | None:
        return _drawn(self.durations, ask.key) or None


@attrs.frozen(eq=False)
class Chooser(Reserver):
    """Another reserver, which also chooses the node."""

    name = "chooser"

    def rank_node(self, ask: api.Ask, node: api.Node) -> float:
        return -zlib.crc32(node.id.encode())


RESERVERS = [Reserver, Chooser]


def _drawn(values: list[float], name: str) -> float:
    return values[zlib.crc32(name.encode()) % len(values)]


def _bound(values: list[int], name: str) -> int | None:
    most = values[zlib.crc32(name.encode()) % len(values)]
    return None if most == NEVER else most


_OPTIONS = st.fixed_dictionaries(
    {
        "ages": st.lists(st.sampled_from([0, 0, 0, 2, 4, 20, -3, NEVER]), min_size=1, max_size=4),
        "queues": st.lists(st.sampled_from([-1, -1, 1, 2, 3, 0]), min_size=2, max_size=4),
        "apps": st.lists(st.sampled_from([-1, -1, 1, 2, 0]), min_size=2, max_size=3),
        "durations": st.lists(st.sampled_from([0, 0, 0.01, 7, 40]), min_size=1, max_size=3),
        "pause": st.sampled_from([0, 3, 30]),
    }
)
_STANDARD = st.fixed_dictionaries(
    {},
    optional={
        "delay": st.sampled_from([0, 3]),
        "total": st.sampled_from([0, 1, 1, 2, 3]),
        "perqueue": st.sampled_from([0, 1, 1, 2]),
        "perapplication": st.sampled_from([0, 1, 1, 2]),
        "duration": st.sampled_from([0.01, 5, 20]),
        "pause": st.sampled_from([0, 3, 30]),
    },
)


@st.composite
def reservings(draw: Any, without: int = 3) -> dict[str, Any]:
    """Draw the reservation policy of a configuration: none in `without` of five cases."""
    if draw(st.integers(0, 4)) < without:
        return {}
    name = draw(st.sampled_from(["standard", "reserver", "chooser"]))
    return {"policy": name, **draw(_STANDARD if name == "standard" else _OPTIONS)}


def check_reserving(at: PartitionScheduler) -> None:
    """Assert that no bound is exceeded, that counts are right, and that every reservation has a reason."""
    found = at.cycle.reservations
    held = {ask for node in at.partition.nodes.values() for ask in node.reservations}
    if not found.restricted:
        assert not found._counted
        assert not found._waiting
        return
    counts: Counter[Queue | Application] = Counter()
    for ask, counted in found._counted.items():
        assert ask in held, f"{ask} has no reservation, and counts"
        assert not ask.ask_class.required, ask
        counts.update(counted.owners)
        assert ask.app.queue is None or counted.owners == (*ask.app.chain, ask.app)
        timer = counted.timer
        assert timer is None or timer.due >= found.now, f"the reservation of {ask} is over"
    assert counts == found.counts
    policy = _policy(at)
    for owner, count in counts.items():
        most = policy.most_of(owner) if isinstance(owner, Application) else policy.most_in(owner)
        assert most is None or count <= most, f"{owner} has {count} of {most} reservations"
    for ask in held - set(found._counted):
        # Others are required, for victims, or no longer needed.
        served = ask in at.partition.accounting.node_reservations.inheritable
        assert ask.ask_class.required or served or found.is_exempt(ask), ask
    for ask in found._counted:
        check_age(at, policy, ask)


def check_age(at: PartitionScheduler, policy: api.ReservationPolicy, ask: Ask) -> None:
    """Assert that a request with a reservation is old enough."""
    delay = at.partition.timeouts.reservation
    age = policy.reserves_after(ask, None if delay is None else delay / SECOND)
    assert age is not None, f"{ask} must not reserve"
    assert at.partition.clock.now() >= ask.created + round(age * SECOND), f"{ask} reserved too early"


def check_none_forgotten(at: PartitionScheduler) -> None:
    """Assert, after all decisions, that each request without a reservation is refused or finds no node."""
    found = at.cycle.reservations
    if not found.restricted or found.due or found.now < found._rest_until or at.partition.state == STOPPED:
        return
    if at.partition.gangs.formation.overdue:
        # An overdue gang may hold back any of them, and its end leads to another look.
        return
    for app in at.partition.applications.values():
        if app.held is not None or app.backoff_timer is not None or app.queue is None or not app.admitted:
            continue
        if any(queue.state == "Stopped" for queue in app.chain):
            continue
        for bit in _bits(app.requests.bits):
            ask = app.requests.first(bit)
            if ask is not None and ask.ask_class in found._waiting:
                check_refused(at, found, ask)


def check_refused(at: PartitionScheduler, found: Reservations, ask: Ask) -> None:
    """Assert that the policy refuses a request whose class waits, or that a quota stops the request."""
    if next(obstacles(ask, to_start=True), at.partition.queues.root) is not at.partition.queues.root:
        return
    assert not found.is_settled(ask.ask_class), f"{ask} waits, and its class has a reservation"
    assert found.explain(ask) is not None, f"{ask} was forgotten"


def _policy(at: PartitionScheduler) -> api.ReservationPolicy:
    (found,) = [one.plugin for one in at.instances if isinstance(one.plugin, api.ReservationPolicy)]
    return found


def _bits(bits: int) -> list[int]:
    return [1 << place for place in range(bits.bit_length()) if bits >> place & 1]
