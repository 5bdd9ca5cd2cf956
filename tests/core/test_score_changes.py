"""Node sort policies whose scores change on several nodes at once, by way of their books."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import pytest

from tests.core.kit import RM, configuration, with_plugins
from yunikorn import api


class EmptiestRack(api.NodeSortPolicy):
    """Sorts the nodes of the rack with the fewest tasks first."""

    name = "emptiest-rack"
    score_range = (0.0, 100.0)

    def __init__(self) -> None:
        self.tasks: Counter[str] = Counter()
        self.changes: list[str] = []
        self.racks: dict[str, list[str]] = {}

    def score(self, node: api.Node, ask_class: api.AskClass) -> float:
        return float(self.tasks[node.attributes["rack"]])

    def score_changes(self, ask_class: Any) -> list[str]:
        return self.changes

    def node_added(self, node: api.Node) -> None:
        self.racks.setdefault(node.attributes["rack"], []).append(node.id)

    def node_removed(self, node: api.Node) -> None:
        self.racks[node.attributes["rack"]].remove(node.id)

    def placed(self, task: api.Task, node: api.Node) -> None:
        self._change(node, 1)

    def released(self, task: api.Task, node: api.Node) -> None:
        self._change(node, -1)

    def _change(self, node: api.Node, tasks: int) -> None:
        self.tasks[node.attributes["rack"]] += tasks
        self.changes += self.racks[node.attributes["rack"]]


class WithNewLists(EmptiestRack):
    """The same, by a list of its own for each state of the books: all nodes are scored again."""

    name = "with-new-lists"

    def _change(self, node: api.Node, tasks: int) -> None:
        self.tasks[node.attributes["rack"]] += tasks
        self.changes = []


class ForAll(EmptiestRack):
    """The same for a policy whose scores do not depend on the request."""

    name = "for-all"

    def score(self, node: api.Node) -> float:  # type: ignore[override]
        return EmptiestRack.score(self, node, None)  # type: ignore[arg-type]


WEIGHTED = {"type": "weighted", "scores": [{"name": "emptiest-rack"}]}


def racks(policy: dict[str, Any], *classes: type[api.NodeSortPolicy]) -> RM:
    """Return an RM with two racks of two nodes."""
    rm = RM(configuration(nodesortpolicy=policy), with_plugins(node_sort_policies=[*classes]))
    for node_id in ("a1", "a2", "b1", "b2"):
        rm.node(node_id, {"rack": node_id[0]}, vcore=4)
    rm.app()
    return rm


@pytest.mark.parametrize(
    "policy", [{"type": "emptiest-rack"}, {"type": "for-all"}, {"type": "with-new-lists"}, WEIGHTED]
)
def test_nodes_of_a_rack_move_together(policy: dict[str, Any]) -> None:
    rm = racks(policy, EmptiestRack, ForAll, WithNewLists)
    rm.ask(count=4, vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["a1", "b1", "a1", "b1"]


def test_releases_move_all_nodes() -> None:
    rm = racks({"type": "emptiest-rack"}, EmptiestRack)
    for key in ("first", "second", "third", "fourth"):
        rm.ask(key=key, vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["a1", "b1", "a1", "b1"]
    rm.release(key="second")
    rm.release(key="fourth")
    rm.ask(key="later", count=3, vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["b1", "b1", "a1"]


class Broken(EmptiestRack):
    """Fails when its changes are read."""

    name = "broken"

    def score_changes(self, ask_class: Any) -> list[str]:
        return {}[ask_class]


class Untrue(EmptiestRack):
    """Names what are no nodes."""

    name = "untrue"

    def score_changes(self, ask_class: Any) -> list[str]:
        self.changes += ["unknown", 7, [], None]  # type: ignore[list-item]
        return self.changes


def test_changes_of_unknown_nodes_have_no_effect() -> None:
    rm = racks({"type": "untrue"}, Untrue)
    rm.ask(count=4, vcore=1)
    assert [node for _, _, node in rm.schedule()] == ["a1", "b1", "a1", "b1"]
    assert rm.failures() == []


class Listless(EmptiestRack):
    """Returns no list."""

    name = "listless"

    def score_changes(self, ask_class: Any) -> list[str]:
        return 7  # type: ignore[return-value]


@pytest.mark.parametrize("policy", ["broken", "listless"])
@pytest.mark.parametrize("weighted", [False, True])
def test_changes_that_cannot_be_read_are_reported(policy: str, weighted: bool) -> None:
    rm = racks(
        {"type": "weighted", "scores": [{"name": policy}]} if weighted else {"type": policy}, Broken, Listless
    )
    rm.ask(count=2, vcore=1)
    assert len(rm.schedule()) == 2
    (failure,) = rm.failures()
    assert policy in failure
    assert "score_changes" in failure


class ByKnownTags(api.NodeSortPolicy):
    """Keeps requests apart by the tags that running tasks name."""

    name = "by-known-tags"

    def __init__(self) -> None:
        self.known: list[str] = []

    def ask_class(self, ask: api.Ask) -> Hashable:
        return tuple(ask.tags.get(tag) for tag in self.known)

    @property
    def classes_version(self) -> int:
        return len(self.known)

    def score(self, node: api.Node, ask_class: api.AskClass) -> float:
        return 0.0 if node.attributes["rack"] in ask_class.value else 1.0  # type: ignore[operator]

    def placed(self, task: api.Task, node: api.Node) -> None:
        if (named := task.tags.get("reads")) and named not in self.known:
            self.known.append(named)

    def released(self, task: api.Task, node: api.Node) -> None:
        pass


@pytest.mark.parametrize("weighted", [False, True])
def test_waiting_requests_get_other_classes_when_a_policy_changes_them(weighted: bool) -> None:
    policy: dict[str, Any] = {"type": "by-known-tags"}
    if weighted:
        policy = {"type": "weighted", "scores": [{"name": "by-known-tags"}]}
    rm = racks(policy, ByKnownTags)
    rm.ask(key="reader", tags={"reads": "wants"}, vcore=1)
    rm.ask(key="in-a", tags={"wants": "a"}, vcore=1)
    rm.ask(key="in-b", tags={"wants": "b"}, vcore=1)
    assert rm.schedule(1) == [("app", "reader", "a1")]
    assert rm.schedule() == [("app", "in-a", "a1"), ("app", "in-b", "b1")]
