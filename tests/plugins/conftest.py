"""Small objects with the attributes of the scheduler's, for calling plugins directly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import attrs
import pytest

from tests.plugins.quota_kit import ANSWERS, Drawn, Refreshing, Watching, World
from yunikorn.api import Queue
from yunikorn.framework.registry import Registry
from yunikorn.resources import NOTHING, Resource
from yunikorn_testing import MakeScheduler, node


@attrs.frozen
class App:
    """An application as rules and predicates see it."""

    id: str = "app-1"
    user: str = "developer"
    groups: tuple[str, ...] = ("developer",)
    queue_name: str = ""
    queue: Queue | None = None
    tags: Mapping[str, str] = attrs.field(factory=dict)
    state: str = "New"
    submitted: int = 0
    priority: int = 0
    allocated: Mapping[str, int] = NOTHING
    pending: Mapping[str, int] = NOTHING
    fair_total: Mapping[str, int] = NOTHING
    waiting_since: int = 0
    arrival: int = 0


@attrs.frozen
class Ask:
    """An ask as predicates see it."""

    tags: Mapping[str, str] = attrs.field(factory=dict)
    app: App = App()
    key: str = "ask-1"
    resource: Resource = NOTHING
    priority: int = 0
    created: int = 0


@attrs.frozen
class Node:
    """A node as predicates see it."""

    attributes: Mapping[str, str] = attrs.field(factory=dict)
    id: str = "node-1"
    capacity: Mapping[str, int] = NOTHING
    allocated: Mapping[str, int] = NOTHING
    occupied: Mapping[str, int] = NOTHING
    available: Mapping[str, int] = NOTHING


@pytest.fixture
def make_app() -> type[App]:
    """Return a function that creates an application: `make_app(user="ann", tags={...})`."""
    return App


@pytest.fixture
def make_ask() -> Callable[..., Ask]:
    """Return a function that creates an ask from its tags and those of its application."""
    return lambda tags=None, app_tags=None: Ask(tags or {}, App(tags=app_tags or {}))


@pytest.fixture
def make_node() -> type[Node]:
    """Return a function that creates a node from its attributes."""
    return Node


@pytest.fixture
def registry() -> Registry:
    """The default plugins."""
    return Registry.load(third_party=False)


@pytest.fixture
def world(scheduler: MakeScheduler) -> Callable[..., World]:
    """Return a function that makes a cluster with one large node and the policies of `quota_kit`."""
    ANSWERS[:] = [lambda policy, queue: None]

    def make(config: str, *nodes: Any, failures: Literal["fail", "expected"] = "fail") -> World:
        plugins = [Drawn, Watching, Refreshing]
        return World(scheduler(config, *(nodes or (node(vcore=64),)), plugins=plugins, failures=failures))

    return make
