"""A small queue tree for the chain of placement rules, without a scheduler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import pytest

from yunikorn.api import Allocation, PastService, Queue
from yunikorn.config.acl import EVERYBODY, NOBODY, Acl
from yunikorn.config.filters import FilterConfig
from yunikorn.config.queues_yaml import RuleConfig
from yunikorn.framework.instances import InstancePlan
from yunikorn.framework.registry import Registry
from yunikorn.resources import NOTHING
from yunikorn.scheduling.placement import PlacementChain, PlacementResult


@attrs.frozen
class App:
    """An application to be placed."""

    user: str = "developer"
    groups: tuple[str, ...] = ("developer",)
    queue_name: str = ""
    tags: Mapping[str, str] = attrs.field(factory=dict)
    id: str = "app-1"
    queue: Queue | None = None
    state: str = "New"
    submitted: int = 0
    priority: int = 0
    allocated: Mapping[str, int] = NOTHING
    pending: Mapping[str, int] = NOTHING
    demand: Mapping[str, int] = NOTHING
    fair_total: Mapping[str, int] = NOTHING
    waiting_since: int = 0
    allocations: Mapping[str, Allocation] = attrs.field(factory=dict)
    allocations_by_node: Mapping[str, Sequence[Allocation]] = attrs.field(factory=dict)
    arrival: int = 0
    past: PastService = attrs.field(factory=PastService)


@attrs.define
class Place:
    """A queue of a tree."""

    tree: Tree
    path: str
    is_leaf: bool = True
    state: str = "Active"
    acl: Acl = NOBODY

    def submit_allowed(self, user: str, groups: Sequence[str]) -> bool:
        """Return True if the queue's own list or one above permits the user."""
        above = self.tree.queue(self.path.rpartition(".")[0])
        return self.acl.allows(user, groups) or (above is not None and above.submit_allowed(user, groups))


class Tree:
    """Queues by path; a path that ends in a dot is a parent queue. By default root permits all users."""

    def __init__(self, *paths: str, acls: Mapping[str, str] | None = None) -> None:
        self.queues = {"root": Place(self, "root", False, acl=EVERYBODY if acls is None else NOBODY)}
        for path in paths:
            name = path.rstrip(".")
            self.queues[name] = Place(self, name, not path.endswith("."))
        for path, text in (acls or {}).items():
            self.queues[path].acl = Acl.parse(text)

    def queue(self, path: str) -> Place | None:
        """Return a queue by path, ignoring case."""
        return self.queues.get(path.lower())

    def obstacle(self, path: str) -> str:
        """Return the leaf that is in the way of a path."""
        while "." in path:
            path = path.rpartition(".")[0]
            if path in self.queues:
                return f"{path} is a leaf queue" if self.queues[path].is_leaf else ""
        return ""


def rule(written: Mapping[str, Any]) -> RuleConfig:
    """Return a rule with the keys of a configuration."""
    rest = dict(written)
    if "filter" in rest:
        kind = rest["filter"].get("type", "allow")
        users, groups = (tuple(rest["filter"].get(key, ())) for key in ("users", "groups"))
        rest["filter"] = FilterConfig(kind == "allow", users, groups)
    if "parent" in rest:
        rest["parent"] = rule(rest["parent"])
    own = {key: rest.pop(key) for key in ("name", "create", "filter", "parent", "value") if key in rest}
    return RuleConfig(**own, options=rest)


def placed_by(chain: PlacementChain, app: Any) -> PlacementResult:
    """Return the placement of an application by rules that never block."""
    with pytest.raises(StopIteration) as end:
        next(chain.steps(app))
    found: PlacementResult = end.value.value
    return found


@pytest.fixture
def registry() -> Registry:
    """The default plugins."""
    return Registry.load(third_party=False)


@pytest.fixture
def make_app() -> type[App]:
    """Return a function that creates an application."""
    return App


@pytest.fixture
def make_tree() -> type[Tree]:
    """Return a function that creates a tree of queues."""
    return Tree


@pytest.fixture
def place(registry: Registry) -> Callable[..., PlacementResult]:
    """Return a function that places an application: `place(rules, tree, user=..., tags=...)`."""

    def run(rules: Sequence[Mapping[str, Any]], tree: Any, **facts: Any) -> PlacementResult:
        if "user" in facts:
            facts.setdefault("groups", (facts["user"],))
        chain = PlacementChain([rule(written) for written in rules], InstancePlan(registry), tree)
        return placed_by(chain, App(**facts))

    return run
