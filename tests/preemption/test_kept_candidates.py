"""Searches with candidates that are kept find the same victims as searches that collect all candidates."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.gangs import GangRM
from tests.core.kit import Decision, configuration, queue, with_plugins
from yunikorn.api import (
    Allocation,
    Ask,
    Context,
    PermitPolicy,
    PreemptionCause,
    PreemptionPolicy,
    ReservationPolicy,
    Wait,
)
from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn.interface import messages
from yunikorn.interface.constants import TERMINATING_TAG
from yunikorn.interface.messages import NodeAction
from yunikorn.model.ask import REQUIRED_NODE_TAG
from yunikorn.resources import Resource
from yunikorn.scheduling.preemption import candidate_store
from yunikorn.scheduling.preemption.candidate_store import CandidateStore, KeptPool
from yunikorn.scheduling.preemption.candidates import Candidates, Pool
from yunikorn.scheduling.preemption.victims import PreemptionPlan, Search

pytestmark = pytest.mark.usefixtures("kept_at_once")

LEAVES = ["root.a", "root.b", "root.p.c", "root.p.d"]
PLAN = Search.plan


class Coarse(PreemptionPolicy):
    """Many victims have the same rank, in all queues and applications; some are protected."""

    name = "coarse"
    is_constant = True

    def protects(self, victim: Allocation, cause: PreemptionCause) -> str | None:
        return "is precious" if victim.tags.get("precious") else None

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        return victim.priority


class Worded(Coarse):
    """Ranks are texts, which are not kept."""

    name = "worded"

    def rank(self, victim: Allocation, cause: PreemptionCause) -> str:  # type: ignore[override]
        return victim.app.id


class Moody(Coarse):
    """Fails for some victims, which are protected then."""

    name = "moody"

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        if victim.tags.get("rank") == "3":
            raise ValueError("not three")
        return victim.priority


class Held(PermitPolicy):
    """Withholds some placements from the resource manager for a while."""

    name = "held"
    timeout = 60.0

    def opened(self, context: Context) -> None:
        self.now = context.now

    def permit(self, allocation: Allocation) -> str | Wait | None:
        if allocation.tags.get("rank") == "2" and self.now() - allocation.placed < 3 * SECOND:
            return Wait(3, "not yet")
        return None


class Eager(ReservationPolicy):
    """Every request may reserve a node at once, some of them for a while only."""

    name = "eager"

    def reserves_after(self, ask: Ask, delay: float | None) -> float | None:
        return 0.0

    def lasts(self, ask: Ask) -> float | None:
        return 5.0 if ask.tags.get("rank") == "1" else None


class HistoryRM(GangRM):
    """An RM under which any mix of placements, held placements and replacements may be decided at once."""

    def schedule(self, most: int | None = None) -> list[Decision]:
        """Run the scheduler; the placements are those in `responses`."""
        self.scheduler.schedule(most)
        return []


class Compared:
    """Replacement of `Search.plan` that compares its result with that of a search that keeps nothing."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(self, search: Search, *arguments: Any, **options: Any) -> PreemptionPlan | None:
        found = PLAN(search, *arguments, **options)
        kept = search._pool
        if isinstance(kept, KeptPool):
            every = Candidates(kept._eligible, kept._kept.policy, kept._kept.cause)
            search._pool = Pool(every, search._pairs)
            assert PLAN(search, *arguments, **options) == found
            search._pool = kept
            self.counts["found" if found else "none"] += 1
            self.counts["originators"] += found is not None and any(one.originator for one in found.victims)
            self.counts["several victims"] += found is not None and len(found.victims) > 1
            self.counts["reserved nodes"] += any(node.reservations for node in kept._kept.nodes)
        else:
            self.counts["not kept"] += 1
        return found


def leaf(draw: Random, name: str) -> dict[str, Any]:
    """Return a leaf that may have guarantees and a quota, and may preempt in several ways."""
    resources: dict[str, Any] = {}
    if draw.random() < 0.7:
        resources["guaranteed"] = {"memory": str(draw.randint(1, 6))}
        if draw.random() < 0.5:
            resources["guaranteed"]["vcore"] = f"{draw.randint(1, 4)}m"
    if draw.random() < 0.2:
        resources["max"] = {"memory": str(draw.randint(6, 12)), "vcore": "12m"}
    properties = {"preemption.delay": "1s"}
    for kind in ("by.priority", "within.queue"):
        if draw.random() < 0.5:
            properties[f"preemption.{kind}"] = "enabled"
    if draw.random() < 0.2:
        properties["priority.offset"] = str(draw.randint(-2, 2))
    return queue(name, resources=resources, properties=properties)


def tree(draw: Random, policy: str) -> str:
    """Return a configuration."""
    resources: dict[str, Any] = {"guaranteed": {"memory": str(draw.randint(12, 16))}}
    if draw.random() < 0.5:
        resources["max"] = {"memory": str(draw.randint(16, 24))}
    parent = queue("p", leaf(draw, "c"), leaf(draw, "d"), resources=resources)
    preemption = {"policy": policy, "shrunknodes": draw.random() < 0.5, "quotapreemptionenabled": True}
    keys: dict[str, Any] = {"preemption": preemption}
    if draw.random() < 0.3:
        keys["permits"] = [{"name": "held"}]
    if draw.random() < 0.4:
        keys["reservations"] = {"policy": "eager"}
    return configuration(leaf(draw, "a"), leaf(draw, "b"), parent, **keys)


def registry() -> Registry:
    """Return a registry with the policies of this file."""
    return with_plugins(
        preemption_policies=[Coarse, Worded, Moody], permit_policies=[Held], reservation_policies=[Eager]
    )


class History:
    """A random history of a cluster in which queues claim what others use."""

    def __init__(self, draw: Random, policy: str) -> None:
        self.draw, self.policy = draw, policy
        self.number = 0
        self.drivers = draw.choice([0.1, 0.5, 1.0])
        """Share of originators among the requests."""
        self.rm = HistoryRM(tree(draw, policy), registry())
        self.gangs: list[str] = []
        for _ in range(draw.randint(2, 8)):
            self.add_node()
        for path in LEAVES:
            for copy in range(2):
                self.rm.app(f"{path}-{copy}", path)

    def run(self, steps: int) -> None:
        """Make random steps."""
        kinds = [
            *[self.ask] * 8,
            *[self.settle] * 8,
            *[self.end] * 2,
            self.submit_gang,
            *[self.send_member] * 2,
            self.require_node,
            self.add_node,
            self.change_node,
            self.remove_node,
            self.resize,
            self.report_end,
            self.reload,
        ]
        for _ in range(2):
            self.submit_gang()
        self.rm.schedule()
        for _ in range(30):
            self.ask()
        self.rm.schedule()
        for _ in range(steps):
            self.draw.choice(kinds)()

    def ask(self) -> None:
        """Send a request of some replicas."""
        draw = self.draw
        self.number += 1
        amounts = {"memory": draw.randint(1, 4)} | (
            {"vcore": draw.randint(1, 3)} if draw.random() < 0.6 else {}
        )
        tags = {"rank": str(draw.randint(0, 3))} | ({"precious": "yes"} if draw.random() < 0.2 else {})
        if self.number % 2:
            tags["creationTime"] = "1"
        self.rm.ask(
            f"{draw.choice(LEAVES)}-{draw.randint(0, 1)}",
            f"r{self.number}",
            draw.randint(1, 4),
            priority=draw.randint(0, 3),
            tags=tags,
            originator=draw.random() < self.drivers,
            policy=messages.PreemptionPolicy(draw.random() < 0.8, draw.random() < 0.9),
            resource=amounts,
        )

    def submit_gang(self) -> None:
        """Submit a gang of placeholders; Hard or Soft, and with a time-out."""
        draw = self.draw
        self.number += 1
        app_id, count = f"g{self.number}", draw.randint(1, 3)
        style = draw.choice(["Hard", "Soft"])
        self.rm.gang(app_id, style, draw.choice(LEAVES), seconds=60, memory=count * 2, vcore=count)
        self.rm.task(app_id, "ph", "workers", count, placeholder=True, memory=2, vcore=1)
        self.gangs.append(app_id)

    def send_member(self) -> None:
        """Send a task that replaces a placeholder, of the same size or smaller."""
        if self.gangs:
            draw = self.draw
            self.number += 1
            app_id, memory, priority = draw.choice(self.gangs), draw.randint(1, 2), draw.randint(0, 3)
            self.rm.task(app_id, f"m{self.number}", "workers", priority=priority, memory=memory, vcore=1)

    def require_node(self) -> None:
        """Send a request that requires a node, as those of daemon sets."""
        if nodes := self.nodes():
            draw = self.draw
            self.number += 1
            tags = {REQUIRED_NODE_TAG: draw.choice(nodes)}
            app_id = f"{draw.choice(LEAVES)}-{draw.randint(0, 1)}"
            self.rm.ask(app_id, f"d{self.number}", priority=draw.randint(0, 3), tags=tags, memory=1)

    def settle(self) -> None:
        """Let requests ripen, and confirm releases; or schedule only."""
        self.rm.schedule()
        if self.draw.random() < 0.7:
            self.rm.pass_time(self.draw.choice([0.5, 2, 16]))
            self.rm.schedule()
        if self.draw.random() < 0.8:
            self.rm.confirm()
            self.rm.schedule()

    def end(self) -> None:
        """End a running allocation."""
        if self.rm.running:
            one = self.rm.running[self.draw.choice(list(self.rm.running))]
            self.rm.release(one.application_id, one.uuid)
            self.rm.running.pop(one.uuid, None)
            self.rm.evicted.pop(one.uuid, None)

    def resize(self) -> None:
        """Change the size of a running allocation."""
        self._send_again({}, {"memory": self.draw.randint(1, 4)})

    def report_end(self) -> None:
        """Report that the resource manager is ending an allocation."""
        self._send_again({TERMINATING_TAG: "true"}, None)

    def _send_again(self, tags: dict[str, str], size: dict[str, int] | None) -> None:
        if self.rm.running:
            one = self.rm.running[self.draw.choice(list(self.rm.running))]
            amount = one.resource_per_alloc if size is None else Resource(size)
            again = messages.Allocation(
                one.allocation_key,
                one.application_id,
                uuid=one.uuid,
                node_id=one.node_id,
                resource_per_alloc=amount,
                allocation_tags={**one.allocation_tags, **tags},
            )
            self.rm.update(allocations=[again])

    def nodes(self) -> list[str]:
        """Return the ids of all nodes."""
        return list(self.rm.at_work().partition.nodes)

    def add_node(self) -> None:
        """Register a node; ids are not in the order of registration."""
        self.number += 1
        node_id = f"n{self.draw.randint(0, 9)}-{self.number}"
        self.rm.node(node_id, memory=self.draw.randint(3, 8), vcore=self.draw.randint(3, 8))

    def change_node(self) -> None:
        """Drain, resume or resize a node."""
        if nodes := self.nodes():
            action = self.draw.choice(
                [NodeAction.DRAIN_NODE, NodeAction.DRAIN_TO_SCHEDULABLE, NodeAction.UPDATE]
            )
            amounts = {"memory": self.draw.randint(2, 8), "vcore": self.draw.randint(2, 8)}
            self.rm.change_node(
                self.draw.choice(nodes), action, capacity=amounts if action == NodeAction.UPDATE else None
            )

    def remove_node(self) -> None:
        """Remove a node."""
        if nodes := self.nodes():
            self.rm.change_node(self.draw.choice(nodes), NodeAction.DECOMMISSION)

    def reload(self) -> None:
        """Reload another configuration."""
        self.rm.reload(tree(self.draw, self.policy))


def compare(
    seed: int, policy: str, compared: Compared, steps: int = 60, kind: type[History] = History
) -> None:
    """Play a history, and compare all searches."""
    with mock.patch.object(Search, "plan", lambda *arguments, **options: compared(*arguments, **options)):
        history = kind(Random(seed), policy)
        history.run(steps)
    for release in history.rm.entries("released_allocations"):
        compared.counts[release.termination_type.name] += 1
        compared.counts["required nodes"] += "daemon set" in release.message


@given(seed=st.integers(0, 2**32), policy=st.sampled_from(["standard", "coarse", "moody"]))
def test_victims_are_those_of_a_search_that_keeps_nothing(seed: int, policy: str) -> None:
    compare(seed, policy, Compared())


def test_histories_contain_what_is_compared() -> None:
    compared = Compared()
    for seed in range(25):
        compare(seed, ("standard", "coarse")[seed % 2], compared)
    assert compared.counts["found"] > 50
    assert compared.counts["none"] > 20
    assert compared.counts["several victims"] > 10
    assert compared.counts["originators"] > 5
    for each in ("reserved nodes", "required nodes", "PLACEHOLDER_REPLACED"):
        assert compared.counts[each] > 5, compared.counts
    assert not compared.counts["not kept"]


def test_decisions_are_those_without_kept_candidates() -> None:
    for seed in range(8):
        kept = decisions(seed)
        with mock.patch.object(CandidateStore, "find", return_value=None):
            assert decisions(seed) == kept


def decisions(seed: int) -> list[Any]:
    """Return the responses of a history."""
    history = History(Random(seed), ("standard", "coarse")[seed % 2])
    history.run(60)
    return history.rm.responses


def test_ranks_that_are_no_numbers_are_not_kept() -> None:
    compared = Compared()
    for seed in range(4):
        compare(seed, "worded", compared)
    assert compared.counts["not kept"] > 5
    assert not compared.counts["found"]


def test_memory_is_bounded_by_live_nodes() -> None:
    limit, sizes = 40, list[int]()
    original = CandidateStore.find

    def find(store: CandidateStore, *arguments: Any) -> KeptPool | None:
        found, live = original(store, *arguments), store._changes._partition.nodes
        assert found is not None
        assert {node.id for node in found._kept.nodes} == set(live)
        assert len(found._kept.kept) == len(found._kept._positions) == len(live)
        sizes.append(len(store._kept))
        assert sizes[-1] <= max(1, limit // len(live))
        return found

    with mock.patch.object(candidate_store, "KEPT", limit), mock.patch.object(CandidateStore, "find", find):
        history = History(Random(1), "standard")
        history.run(80)
        for _ in range(60):
            history.add_node()
            history.remove_node()
            history.settle()
    assert max(sizes) > 3
