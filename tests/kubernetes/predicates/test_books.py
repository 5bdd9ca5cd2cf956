"""Answers from books equal answers computed from scratch, and refusals end only where the books say so."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from tests.example_counts import examples
from tests.kubernetes.predicates import naive
from tests.kubernetes.predicates.drawn import Draw, ask_of, host_of
from yunikorn.api import Where
from yunikorn_kubernetes.predicates.pod_affinity import InterPodAffinity
from yunikorn_kubernetes.predicates.topology_spread import PodTopologySpread
from yunikorn_testing import AskSample, NodeSample, allocation
from yunikorn_testing.samples import AllocationSample

KINDS = [("spread",), ("affinity",), ("spread", "node", "taints"), ("affinity", "spread"), ()]
SEEDS = st.integers(0, 2**32)
Key = tuple[Hashable, Hashable, Hashable]


class Checked:
    """A predicate, and the refusals that the scheduler would remember."""

    def __init__(self, predicate: PodTopologySpread | InterPodAffinity, refuses: naive.Refuses) -> None:
        self.predicate = predicate
        self.refuses = refuses
        self.closed: dict[Key, AskSample] = {}
        """A refused request by class, scope and domain."""

    def change(self, method: str, task: AllocationSample | None, node: NodeSample) -> None:
        """Pass a change to the predicate, and open what its answer names."""
        what = (node,) if task is None else (task, node)
        where = getattr(self.predicate, method)(*what)
        subjects = None if task is None else set(self.predicate.subjects(task))
        for key, asked in list(self.closed.items()):
            here = self.predicate.domain_in(node, key[1]) == key[2]
            if subjects is not None and not subjects & set(self.predicate.subjects(asked)):
                continue
            if where is Where.EVERYWHERE or (here and (where is Where.HERE or method == "released")):
                del self.closed[key]

    def compare(self, asks: list[AskSample], nodes: list[NodeSample], pods: list[naive.Pod]) -> None:
        """Compare all answers; remember the refusals."""
        for asked in asks:
            kind = self.predicate.ask_class(asked)
            for node, expected in zip(nodes, naive.accepted(self.refuses, asked, nodes, pods), strict=True):
                reason = self.predicate.check(asked, node)
                assert (reason is None) is expected, (reason, asked.tags, node)
                if reason is not None:
                    scope = self.predicate.scope(asked, node)
                    self.closed[kind, scope, self.predicate.domain_in(node, scope)] = asked
            for (closed, scope, domain), first in self.closed.items():
                for node in nodes if closed == kind else []:
                    if self.predicate.domain_in(node, scope) == domain:
                        reason = self.predicate.check(asked, node)
                        assert reason is not None, (first.tags, asked.tags, scope, domain)


class Machine(RuleBasedStateMachine):
    """Nodes come, change and go; pods are placed and released."""

    tasks: Bundle[str] = Bundle("tasks")

    def __init__(self) -> None:
        super().__init__()
        self.checked = [
            Checked(PodTopologySpread(), naive.spread_refuses),
            Checked(InterPodAffinity(), naive.affinity_refuses),
        ]
        self.nodes: dict[str, NodeSample] = {}
        self.running: dict[str, AllocationSample] = {}
        self.asks: list[AskSample] = []
        self.count = 0

    @initialize(seed=SEEDS, nodes=st.integers(2, 6), asks=st.integers(2, 5))
    def start(self, seed: int, nodes: int, asks: int) -> None:
        draw = Draw(seed)
        for number in range(nodes):
            self.add_node(draw, f"n{number}")
        for number in range(asks):
            self.asks.append(ask_of(draw.pod(f"ask-{number}", *draw.random.choice(KINDS))))

    def add_node(self, draw: Draw, name: str) -> None:
        self.nodes[name] = host_of(draw.node(name))
        self.change("node_added", None, self.nodes[name])

    def change(self, method: str, task: AllocationSample | None, node: NodeSample) -> None:
        for one in self.checked:
            one.change(method, task, node)

    @rule(target=tasks, seed=SEEDS, same=st.booleans())
    def place(self, seed: int, same: bool) -> str:
        return self.start_pod(seed, same)

    def start_pod(self, seed: int, same: bool) -> str:
        """Place a pod, which may be one of those that wait; return the id of its task."""
        draw = Draw(seed)
        self.count += 1
        drawn = draw.pod(f"pod-{self.count}", *draw.random.choice(KINDS))
        if draw.often(0.15):
            drawn["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        asked = draw.random.choice(self.asks) if same else ask_of(drawn)
        node = self.nodes[draw.random.choice(sorted(self.nodes))]
        task = allocation(asked, node, f"task-{self.count}")
        self.running[task.uuid] = task
        self.change("placed", task, node)
        return task.uuid

    @rule(task=consumes(tasks))
    def release(self, task: str) -> None:
        if task in self.running:
            gone = self.running.pop(task)
            self.change("released", gone, gone.node)

    @rule(seed=SEEDS)
    def node_changes(self, seed: int) -> None:
        """Replace the attributes of a node: it is removed with its pods, and added again."""
        draw = Draw(seed)
        name = draw.random.choice(sorted(self.nodes))
        here = self.leave(name)
        self.add_node(draw, name)
        for task in here:
            moved = allocation(
                AskSample(task.key, task.app, task.resource, tags=task.tags), self.nodes[name], task.uuid
            )
            self.running[task.uuid] = moved
            self.change("placed", moved, moved.node)

    @rule(seed=SEEDS)
    def node_goes(self, seed: int) -> None:
        if len(self.nodes) > 1:
            self.leave(Draw(seed).random.choice(sorted(self.nodes)))

    @rule(seed=SEEDS)
    def node_comes(self, seed: int) -> None:
        self.count += 1
        if len(self.nodes) < 8:
            self.add_node(Draw(seed), f"m{self.count}")

    def leave(self, name: str) -> list[AllocationSample]:
        here = [task for task in self.running.values() if task.node.id == name]
        for task in reversed(here):
            del self.running[task.uuid]
            self.change("released", task, task.node)
        node = self.nodes.pop(name)
        self.change("node_removed", None, node)
        return here

    @invariant()
    def answers_are_those_from_scratch(self) -> None:
        pods = [(task.tags, task.node) for task in self.running.values()]
        for one in self.checked:
            one.compare(self.asks, list(self.nodes.values()), pods)


TestBooks = Machine.TestCase
TestBooks.settings = settings(max_examples=examples(10), stateful_step_count=12, deadline=None)


@pytest.mark.parametrize("seed", range(4))
def test_large_random_histories(seed: int) -> None:
    """The same rules as in the machine, for hundreds of steps on more nodes."""
    draw, machine = Draw(seed), Machine()
    machine.start(seed, 8, 8)
    placed: list[str] = []
    for _ in range(120):
        step = draw.random.random()
        if step < 0.5 or len(placed) < 5:
            placed.append(machine.start_pod(draw.random.randrange(2**32), draw.often(0.5)))
        elif step < 0.85:
            machine.release(placed.pop(draw.random.randrange(len(placed))))
        elif step < 0.95:
            machine.node_changes(draw.random.randrange(2**32))
        elif step < 0.98:
            machine.node_comes(draw.random.randrange(2**32))
        else:
            machine.node_goes(draw.random.randrange(2**32))
        machine.answers_are_those_from_scratch()
    assert placed
