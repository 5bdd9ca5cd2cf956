"""Plugins of one package share what they compute for a request while the core decides about it."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

from yunikorn.api import (
    Allocation,
    Ask,
    Context,
    Node,
    PermitPolicy,
    Plugin,
    Predicate,
    ReservationPolicy,
    Wait,
)
from yunikorn_testing import MakeScheduler, application, ask, node


class Noting:
    """Counts how often the state was computed, and notes who found it."""

    context: Context
    computed: ClassVar[list[str]] = []
    found: ClassVar[list[str]] = []

    def opened(self, context: Context) -> None:
        """Keep the context."""
        self.context = context

    def note(self, task: Any) -> dict[Any, Any]:
        """Return the state of a task, computed if it is missing."""
        state = self.context.shared(task)
        if "of" not in state:
            state["of"] = task.key
            Noting.computed.append(task.key)
        assert state["of"] == task.key
        Noting.found.append(f"{type(self).__name__} {task.key}")
        return state


@pytest.fixture(autouse=True)
def nothing_noted() -> None:
    """Begin without notes."""
    Noting.computed.clear()
    Noting.found.clear()


class First(Noting, Predicate):
    """Accepts nodes other than the first."""

    name = "first"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Refuse the first node."""
        self.note(ask)
        return "first" if node.id == "n1" else None


class Second(Noting, Predicate):
    """Accepts nodes other than the second."""

    name = "second"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Refuse the second node."""
        self.note(ask)
        return "second" if node.id == "n2" else None


class Permit(Noting, PermitPolicy):
    """Permits everything at the second question."""

    name = "permit"

    def permit(self, allocation: Allocation) -> Wait | None:
        """Wait, then permit."""
        if allocation.tags.get("wait") and "waited" not in WAITED:
            WAITED.append("waited")
            self.note(allocation)
            return Wait(5, "not yet")
        self.note(allocation)
        return None


WAITED: list[str] = []


class Reserving(Noting, ReservationPolicy):
    """Reserves at once."""

    name = "reserving"

    def reserves_after(self, ask: Ask, delay: float | None) -> float:
        """Return no age."""
        self.note(ask)
        return 0.0


def configuration(**keys: Any) -> str:
    """Return a configuration with these keys of a partition."""
    root = {"name": "root", "submitacl": "*", "queues": [{"name": "default"}]}
    return json.dumps({"partitions": [{"name": "default", "queues": [root], **keys}]})


PLUGINS: list[type[Plugin]] = [First, Second, Permit, Reserving]
ALL = configuration(predicates=["first", "second"], permits=["permit"])


def test_predicates_and_permit_policies_share_one_state_per_decision(scheduler: MakeScheduler) -> None:
    nodes = [node(f"n{number}", vcore=4) for number in (1, 2, 3)]
    cluster = scheduler(ALL, *nodes, plugins=PLUGINS)
    cluster.submit(application("app"), ask("a", 2, vcore=1), ask("b", vcore=1))
    assert [one.node for one in cluster.run()] == ["n3"] * 3
    assert Noting.computed == ["a", "a", "b"]
    assert Noting.found[:4] == ["First a", "First a", "Second a", "First a"]
    assert "Permit a" in Noting.found
    assert "Permit b" in Noting.found


def test_a_state_does_not_outlive_its_decision(scheduler: MakeScheduler) -> None:
    WAITED.clear()
    cluster = scheduler(configuration(permits=["permit"]), node("n3", vcore=4), plugins=PLUGINS)
    cluster.submit(application("app"), ask("a", vcore=1, tags={"wait": "yes"}))
    assert cluster.run() == []
    assert Noting.computed == ["a"]
    cluster.advance(5)
    assert len(cluster.running("app")) == 1
    assert Noting.computed == ["a", "a"]
    cluster.run()
    at = cluster.scheduler.partition("test", "default")
    assert at is not None
    assert at.decision_states.states == {}


def test_a_request_that_is_tried_again_begins_with_an_empty_state(scheduler: MakeScheduler) -> None:
    cluster = scheduler(ALL, node("n1", vcore=4), plugins=PLUGINS)
    cluster.submit(application("app"), ask("a", vcore=1))
    cluster.run()
    assert Noting.computed == ["a"]
    cluster.add(node("n3", vcore=4))
    assert [one.node for one in cluster.run()] == ["n3"]
    assert Noting.computed == ["a", "a"]


def test_packages_have_states_of_their_own(scheduler: MakeScheduler) -> None:
    class Other(Second):
        """The second predicate, in another package."""

        name = "second"

    Other.__module__ = "another.package"
    nodes = [node(f"n{number}", vcore=4) for number in (1, 2, 3)]
    cluster = scheduler(configuration(predicates=["first", "second"]), *nodes, plugins=[First, Other])
    cluster.submit(application("app"), ask("a", vcore=1))
    assert len(cluster.run()) == 1
    assert Noting.computed == ["a", "a"]


def test_a_reload_keeps_the_states_apart_as_before(scheduler: MakeScheduler) -> None:
    cluster = scheduler(ALL, node("n3", vcore=4), plugins=PLUGINS)
    cluster.reload(ALL + " ")
    cluster.reload(configuration(predicates=["second", "first"], permits=["permit"]))
    cluster.submit(application("app"), ask("a", 2, vcore=1))
    assert len(cluster.run()) == 2
    assert Noting.computed == ["a", "a"]


def test_reservation_policies_may_use_the_state_of_the_search(scheduler: MakeScheduler) -> None:
    config = configuration(predicates=["second"], reservations={"policy": "reserving"})
    cluster = scheduler(config, node("n3", vcore=4), plugins=PLUGINS)
    cluster.submit(application("app"), ask("a", vcore=3))
    cluster.run()
    cluster.submit(application("large"), ask("b", vcore=4))
    cluster.run()
    assert "Reserving b" in Noting.found


def test_a_context_without_a_scheduler_has_an_empty_state() -> None:
    shared = Context("default", lambda: 0).shared
    state = shared(ask("a"))
    state["x"] = 1
    assert shared(ask("a")) == {}
