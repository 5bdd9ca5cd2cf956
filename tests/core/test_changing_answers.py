"""Policies whose answers change from one call to the next: scheduling ends after a bounded number of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.gangs import GangRM
from tests.core.kit import Tree, configuration, queue, with_plugins
from tests.core.manual_workers import ManualWorkers, core_with_workers
from tests.example_counts import examples
from yunikorn import api
from yunikorn.interface.messages import PreemptionPolicy

MOST = 20_000
"""Number of questions from which the answers no longer change, so that an endless search ends, and fails."""


class Dice:
    """Source of the answers of all policies, and counter of their questions."""

    numbers = random.Random(0)
    rotates: ClassVar[bool] = False
    """True if each question gets another answer than the last one about the same object."""
    holds: ClassVar[bool] = False
    """True if whatever may wait has to wait."""
    asked: ClassVar[int] = 0
    turns: ClassVar[Counter[str]] = Counter()

    @classmethod
    def begin(cls, seed: int = 0, *, rotates: bool = False, holds: bool = False) -> None:
        """Start with answers that depend on the seed."""
        cls.numbers.seed(seed)
        cls.rotates, cls.holds, cls.asked = rotates, holds, 0
        cls.turns.clear()

    @classmethod
    def throw(cls, subject: str, *answers: Any) -> Any:
        """Return one of these answers about an object, the first one after too many questions."""
        cls.asked += 1
        waits = [one for one in answers if isinstance(one, api.Wait)]
        if cls.asked > MOST:
            return answers[0]
        if cls.holds and waits:
            return waits[0]
        if not cls.rotates:
            return cls.numbers.choice(answers)
        cls.turns[subject] += 1
        return answers[cls.turns[subject] % len(answers)]


def wait() -> api.Wait:
    return api.Wait(Dice.numbers.choice([0, 0.1, 3]), "the dice say so")


class Submits(api.SubmitPolicy):
    name = "changing-submit"

    def submit(self, app: api.Submission) -> Any:
        return Dice.throw(app.id, None, None, "no", 7)


class Places(api.PlacementRule):
    name = "changing"

    def place(self, app: api.Application, queues: api.QueueTree) -> Any:
        return Dice.throw(app.id, "root.a", "root.b", "root.p.c", None, 7)


class Admits(api.AdmissionPolicy):
    name = "changing-admission"
    blocking = True

    def admit(self, app: api.Application) -> Any:
        return Dice.throw(app.id, None, None, wait(), wait(), "no", 7)


class Permits(api.PermitPolicy):
    name = "changing-permit"

    @property
    def timeout(self) -> float:
        return Dice.numbers.choice([0.5, 5.0, 60.0])

    def permit(self, allocation: Any) -> Any:
        return Dice.throw(f"{self.name} {allocation.uuid}", wait(), wait(), wait(), wait(), None, "no", 7)

    def group(self, allocation: Any) -> Any:
        return Dice.throw(f"{self.name} group {allocation.uuid}", "one", "two")


class OtherPermits(Permits):
    name = "more-permit"
    blocking = True


class Quotas(api.QuotaPolicy):
    name = "changing-quota"
    watches_siblings = True
    watches_cluster = True
    refresh_every = 1.0

    def opened(self, context: api.Context) -> None:
        self.now = context.now

    def quota(self, queue: api.Queue) -> Any:
        until = self.now() + Dice.numbers.choice([1, 10**9])
        amount = Dice.numbers.randrange(8) * 1000
        return Dice.throw(
            queue.path, None, api.Quota({"vcore": amount}), api.Quota({"vcore": amount}, until), 7
        )


class SlowQuotas(Quotas):
    name = "slow-quota"
    blocking = True
    watches_siblings = False


class Reserves(api.ReservationPolicy):
    name = "changing-reservation"
    pause = 0.0

    def reserves_after(self, ask: Any, delay: float | None) -> Any:
        return Dice.throw(f"age {ask.key}", None, 0, 0, 2, "x")

    def most_in(self, queue: Any) -> Any:
        return Dice.throw(f"most {queue.path}", None, 0, 1, 2, "x")

    def most_of(self, app: Any) -> Any:
        return Dice.throw(f"most {app.id}", None, 0, 1, 2, "x")

    def lasts(self, ask: Any) -> Any:
        return Dice.throw(f"lasts {ask.key}", None, 0.1, 1, "x")

    def rank_node(self, ask: Any, node: Any) -> Any:
        return Dice.throw(f"rank {ask.key} {node.id}", 0, 1, 2, "x")


REGISTRY = with_plugins(
    submit_policies=[Submits],
    placement_rules=[Places],
    admission_policies=[Admits],
    permit_policies=[Permits, OtherPermits],
    quota_policies=[Quotas, SlowQuotas],
    reservation_policies=[Reserves],
)
CHANGING: dict[str, Any] = {
    "submitpolicies": ["changing-submit"],
    "placementrules": [{"name": "changing"}, {"name": "fixed", "value": "root.a"}],
    "admission": ["changing-admission"],
    "permits": ["changing-permit", "more-permit"],
    "reservations": {"policy": "changing-reservation"},
    "quota": "changing-quota",
}
"""Keys of a configuration that name policies."""
SETTLED: dict[str, Any] = {
    "preemption": {"quotapreemptionenabled": True},
    "periods": {"reservation": "1s"},
    "placementrules": [{"name": "fixed", "value": "root.a"}],
}


def config_of(named: Iterable[str]) -> str:
    """Return a configuration that uses these policies."""
    used = {key: CHANGING[key] for key in sorted(named)}
    properties = {"quota.policy": used.pop("quota")} if "quota" in used else {}
    slow = {"quota.policy": "slow-quota"} if properties else {}

    def leaf(name: str, **more: str) -> Tree:
        return queue(name, properties=properties | more, resources={"max": {"vcore": 9}})

    eager = leaf("b", **{"quota.preemption.delay": "1s"})
    return configuration(
        leaf("a"), eager, queue("p", leaf("c"), leaf("d", **slow), properties=slow), **(SETTLED | used)
    )


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["app", "ask", "ask", "gang", "node", "schedule", "time", "reload", "release"]),
        st.integers(0, 5),
    ),
    min_size=5,
    max_size=25,
)


def begin(config: str, *, workers: bool) -> tuple[GangRM, ManualWorkers | None]:
    """Return a resource manager, and the workers that call its policies, if there are any."""
    if not workers:
        return GangRM(config, REGISTRY), None
    core: Any = core_with_workers(REGISTRY)
    return GangRM(config, scheduler=core), core.manual_workers


def play(rm: GangRM, config: str, number: int, operation: str, drawn: int) -> None:
    """Play one operation of a history."""
    name = f"app{drawn}"
    if operation == "app":
        rm.app(name)
    elif operation == "ask":
        rm.ask(name, f"ask{number}", count=1 + drawn, vcore=1 + drawn % 3, policy=PreemptionPolicy())
    elif operation == "gang":
        rm.gang(f"gang{number}", "Atomic" if drawn % 2 else "Soft", vcore=2)
        rm.task(f"gang{number}", f"task{number}", "group", 2, placeholder=not drawn % 2, vcore=1)
    elif operation == "node":
        rm.node(f"n{number}", vcore=2 + drawn)
    elif operation == "time":
        rm.pass_time(drawn / 2)
    elif operation == "reload":
        rm.reload(config + " " * (number + 1))
    elif operation == "release":
        rm.remove_app(name)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(
    operations=OPERATIONS,
    named=st.sets(st.sampled_from(sorted(CHANGING)), min_size=1),
    seed=st.integers(0, 999),
    rotates=st.booleans(),
    holds=st.booleans(),
    workers=st.booleans(),
)
def test_scheduling_ends_whatever_policies_answer(
    operations: list[tuple[str, int]], named: set[str], seed: int, rotates: bool, holds: bool, workers: bool
) -> None:
    config = config_of(named)
    Dice.begin(seed, rotates=rotates, holds=holds)
    rm, calls = begin(config, workers=workers)
    rm.node("first", vcore=12)
    for number in range(4):
        rm.app(f"app{number}")
        rm.ask(f"app{number}", f"first{number}", count=3, vcore=1)
    for number, (operation, drawn) in enumerate(operations):
        play(rm, config, number, operation, drawn)
        if calls is not None and drawn % 2:
            calls.answer_all()
        rm.scheduler.schedule(1000)
    assert Dice.asked < MOST


class Swaps(api.PermitPolicy):
    """Holds all placements, and names the other one of two groups at each question."""

    name = "swaps"

    def permit(self, allocation: Any) -> api.Wait:
        return api.Wait(10, "the others are missing")

    def group(self, allocation: Any) -> Any:
        return Dice.throw(allocation.uuid, "one", "two")


def test_placements_that_keep_changing_their_groups_are_asked_about_once() -> None:
    Dice.begin(rotates=True)
    rm = GangRM(configuration(permits=["swaps"]), with_plugins(permit_policies=[Swaps]))
    rm.node("n1", vcore=4)
    rm.app()
    rm.ask(count=3, vcore=1)
    rm.scheduler.schedule()
    assert len(rm.at_work().partition.held_placements) == 3
    assert Dice.asked < 10
