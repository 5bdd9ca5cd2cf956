"""Test kit of permit policies: policies that answer as a test says, and a resource manager."""

from __future__ import annotations

from typing import Any

from tests.core.gangs import GangRM
from tests.core.kit import Decision, configuration, queue, with_plugins
from yunikorn.api import Context, Node, PermitPolicy, Task, Wait
from yunikorn.interface.messages import (
    UpdateResponse,
)


class Gate(PermitPolicy):
    """Answers as a test says, by key."""

    name = "gate"
    timeout = 100.0
    answers: dict[str, Any] = {}  # noqa: RUF012
    asked: list[str] = []  # noqa: RUF012
    counts: dict[str, int] = {}  # noqa: RUF012

    def opened(self, context: Context) -> None:
        self.nodes: set[str] = set()

    def node_added(self, node: Node) -> None:
        assert node.id not in self.nodes
        self.nodes.add(node.id)

    def node_removed(self, node: Node) -> None:
        self.nodes.remove(node.id)

    def placed(self, task: Task, node: Node) -> None:
        assert node.id in self.nodes
        self.counts[task.key] = self.counts.get(task.key, 0) + 1

    def released(self, task: Task, node: Node) -> None:
        self.counts[task.key] -= 1

    def group(self, allocation: Any) -> Any:
        return allocation.tags.get("group")

    def permit(self, allocation: Any) -> Any:
        assert allocation.uuid in allocation.app.allocations
        self.asked.append(allocation.key)
        answer = self.answers.get(allocation.key, self.answers.get("*"))
        return answer(allocation) if callable(answer) else answer


class Second(Gate):
    """Another gate."""

    name = "second"
    answers: dict[str, Any] = {}  # noqa: RUF012
    asked: list[str] = []  # noqa: RUF012
    counts: dict[str, int] = {}  # noqa: RUF012


def clear() -> None:
    """Forget answers and questions of earlier tests."""
    for cls in (Gate, Second):
        cls.answers.clear()
        cls.asked.clear()
        cls.counts.clear()


REGISTRY = with_plugins(permit_policies=[Gate, Second])
WAIT = Wait(10, "the quota server is busy")


class PermitRM(GangRM):
    """A resource manager that counts announcements instead of decisions."""

    def schedule(self, most: int | None = None) -> list[Decision]:
        """Run the scheduler, and return the placements that it announced."""
        before = len(self.responses)
        self.scheduler.schedule(most)
        return self.since(before)

    def since(self, before: int) -> list[Decision]:
        """Return the placements announced since there were so many responses."""
        new = [one for response in self.responses[before:] for one in response.new_allocations]
        return [(one.application_id, one.allocation_key, one.node_id) for one in new]

    def after(self, seconds: float) -> list[Decision]:
        """Let the time pass, and return the placements announced meanwhile."""
        before = len(self.responses)
        self.pass_time(seconds)
        self.scheduler.schedule()
        return self.since(before)

    def held(self) -> list[str]:
        """Return the keys of the held placements."""
        return [one.key for hold in self.at_work().partition.held_placements for one in hold.members]

    def why(self, key: str = "ask", app_id: str = "app") -> list[str]:
        """Return the details of the reasons why a request waits."""
        return [one.detail for one in self.scheduler.explain(self.rm_id, "default", app_id)[key].reasons]


def cluster(*queues: Any, policies: tuple[Any, ...] = ("gate",), **keys: Any) -> PermitRM:
    text = configuration(*(queues or (queue("a"), queue("b"))), permits=list(policies), **keys)
    rm = PermitRM(text, REGISTRY)
    rm.node("n1", vcore=4)
    return rm


def holding(**keys: Any) -> PermitRM:
    """Return an RM with a request that the gate holds."""
    Gate.answers["*"] = WAIT
    rm = cluster(**keys)
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule() == []
    assert rm.held() == ["ask"]
    rm.take_response()
    return rm


def is_silent(response: UpdateResponse) -> bool:
    return not (response.new_allocations or response.released_allocations)


Booked = tuple[dict[str, int], dict[str, int], int, int]


def booked(rm: PermitRM) -> Booked:
    """Return what is allocated and pending in the queue, on the node, and in the books of the gate."""
    leaf, node = rm.find_queue(), rm.find_node()
    return (
        {name: amount for name, amount in leaf.allocated.items() if amount},
        {name: amount for name, amount in leaf.pending.items() if amount},
        node.available["vcore"],
        sum(Gate.counts.values()),
    )


PLACED: Booked = ({"vcore": 1}, {}, 3, 1)
PENDING: Booked = ({}, {"vcore": 1}, 4, 0)
