"""Searches that remember the victims of nodes find the same victims as searches that do not."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any
from unittest import mock

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import Allocation, PreemptionCause, PreemptionPolicy
from yunikorn.scheduling.preemption.candidate_store import CandidateStore
from yunikorn.scheduling.preemption.candidates import Needs
from yunikorn.scheduling.preemption.victims import PreemptionPlan, Search

LEAVES = ["root.a", "root.b", "root.p.c", "root.p.d"]


class Priced(PreemptionPolicy):
    """Preempts by rank, and chooses the node by costs that have nothing to do with the rank."""

    name = "priced"

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        return int(victim.tags.get("rank", "0"))

    def cost(self, victim: Allocation, cause: PreemptionCause) -> float:
        return float(victim.tags.get("cost", "1")) / 3


def amount(draw: Random) -> dict[str, Any]:
    """Return the size of a request."""
    return {"memory": draw.randint(1, 3)} | ({"vcore": draw.randint(1, 2)} if draw.random() < 0.5 else {})


def leaf(draw: Random, name: str) -> dict[str, Any]:
    """Return a leaf that may have guarantees, and may preempt in several ways."""
    guaranteed: dict[str, str] = {"memory": str(draw.randint(1, 6))} if draw.random() < 0.7 else {}
    if draw.random() < 0.4:
        guaranteed["vcore"] = f"{draw.randint(1, 4)}m"
    properties = {"preemption.delay": "1s"}
    for kind in ("by.priority", "within.queue"):
        if draw.random() < 0.6:
            properties[f"preemption.{kind}"] = "enabled"
    return queue(name, resources={"guaranteed": guaranteed}, properties=properties)


def tree(draw: Random, policy: str) -> str:
    """Return a configuration."""
    resources = {"guaranteed": {"memory": str(draw.randint(12, 16))}} if draw.random() < 0.5 else {}
    parent = queue("p", leaf(draw, "c"), leaf(draw, "d"), resources=resources)
    return configuration(leaf(draw, "a"), leaf(draw, "b"), parent, preemption={"policy": policy})


class Compared:
    """Replacement of `Search.plan` that compares its result with that of a search without memory."""

    def __init__(self) -> None:
        self.plan = Search.plan
        self.remember = Needs.hold_for
        self.counts: Counter[str] = Counter()

    def __call__(self, search: Search, *arguments: Any, **options: Any) -> PreemptionPlan | None:
        found = self.plan(search, *arguments, **options)
        with mock.patch.object(Needs, "hold_for", return_value=False):
            plain = self.plan(search, *arguments, **options)
        assert found == plain
        self.counts["found" if found else "none"] += 1
        return found

    def hold_for(self, needs: Needs, *arguments: Any) -> bool:
        """Count how often what is known is of use."""
        found = self.remember(needs, *arguments)
        self.counts["usable" if found else "unusable"] += bool(needs)
        return found


@pytest.mark.parametrize("policy", ["standard", "priced"])
def test_victims_are_those_of_a_plain_search(policy: str) -> None:
    compared = Compared()
    with (
        # The candidates of a constant policy are kept, and victims are not remembered then.
        mock.patch.object(CandidateStore, "find", return_value=None),
        mock.patch.object(Search, "plan", lambda *arguments, **options: compared(*arguments, **options)),
        mock.patch.object(Needs, "hold_for", lambda *arguments: compared.hold_for(*arguments)),
    ):
        for seed in range(60):
            play(Random(seed), policy)
    assert compared.counts["found"] > 50
    assert compared.counts["usable"] > 20
    assert compared.counts["unusable"] > 5


def play(draw: Random, policy: str) -> None:
    """Fill a cluster, and let queues claim some of it; several requests of a size follow each other."""
    rm = RM(tree(draw, policy), with_plugins(preemption_policies=[Priced]))
    for number in range(draw.randint(2, 6)):
        rm.node(f"n{number}", memory=draw.randint(3, 8), vcore=draw.randint(3, 8))
    for path in LEAVES:
        rm.app(path, path)
    for number in range(40):
        tags = {"rank": str(draw.randint(0, 3)), "cost": str(draw.randint(0, 4))}
        originator, priority = draw.random() < 0.2, draw.randint(0, 1)
        size = amount(draw)
        rm.ask(draw.choice(LEAVES), f"r{number}", priority=priority, tags=tags, originator=originator, **size)
    rm.schedule()
    for path in LEAVES:
        rm.release_ask(path)
    for number in range(3):
        path, size, priority = draw.choice(LEAVES), amount(draw), draw.randint(1, 3)
        for copy in range(draw.randint(1, 5)):
            rm.ask(path, f"late{number}-{copy}", priority=priority, **size)
        for _ in range(2):
            rm.pass_time(31)
            rm.schedule()
            if draw.random() < 0.7:
                rm.confirm()
            rm.schedule()
    assert not rm.failures()
