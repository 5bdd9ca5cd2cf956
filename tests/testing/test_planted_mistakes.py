"""Contracts find mistakes that work at first: leaks, hidden state, odd texts, resources taken too early."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from tests.testing.test_contract_violations import broken_promises
from yunikorn.api import (
    Application,
    AppSortPolicy,
    Ask,
    Context,
    Event,
    EventSink,
    Node,
    NodeSortPolicy,
    PlacementRule,
    Plugin,
    Predicate,
    Queue,
    QueueSortPolicy,
    Submission,
    SubmitPolicy,
    UserGroupResolver,
)
from yunikorn.testing import EventSinkContract

SEEN_APPS: dict[str, int] = {}


@attrs.define(eq=False)
class Leaks(AppSortPolicy):
    """Remembers every application, and never looks through them."""

    name = "leaks"
    _seen: dict[str, int] = attrs.field(init=False, factory=dict)

    def key(self, app: Application) -> int:
        """Return the time of submission, as first seen."""
        return self._seen.setdefault(app.id, app.submitted)


class LeaksIntoItsModule(PlacementRule):
    """Remembers every application in a global."""

    name = "leaks_into_its_module"

    def place(self, app: Application) -> str | None:
        """Return a fixed queue."""
        SEEN_APPS[app.id] = 1
        return "root.default"


class CachesByTag(Predicate):
    """Keeps an entry for every value of a tag."""

    name = "caches-by-tag"
    known: ClassVar[dict[str, str | None]] = {}

    def check(self, ask: Ask, node: Node) -> str | None:
        """Accept every node."""
        return self.known.setdefault(ask.tags.get("team", ""), None)

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the tag."""
        return ask.tags.get("team", "")


@pytest.mark.parametrize("plugin", [Leaks(), LeaksIntoItsModule(), CachesByTag()], ids=lambda one: one.name)
def test_leaks_without_growing_cost_are_found(plugin: Plugin) -> None:
    found = broken_promises(plugin)
    assert "bound what is kept" in found["test_memory_is_independent_of_earlier_calls"]
    assert "test_cost_of_an_answer_is_independent_of_earlier_calls" not in found


class CountsInItsClass(Predicate):
    """Refuses every ten-thousandth question of all its objects."""

    name = "counts-in-its-class"
    asked: ClassVar[int] = 0

    def check(self, ask: Ask, node: Node) -> str | None:
        """Refuse from time to time."""
        type(self).asked += 1
        return "once in a while" if self.asked % 10_000_000 == 0 else None


def test_counters_in_a_class_are_found() -> None:
    found = broken_promises(CountsInItsClass())["test_answers_set_no_class_attribute_and_no_global"]
    assert "CountsInItsClass.asked" in found


class ReadsPrivateParts(NodeSortPolicy):
    """Reads attributes of the scheduler's own nodes."""

    name = "reads-private-parts"

    def score(self, node: Node) -> float:
        """Return the number of reservations, which no view has."""
        return float(len(getattr(node, "reservations", ())) + getattr(node, "_version", 0))


def test_private_attributes_are_found() -> None:
    found = broken_promises(ReadsPrivateParts())
    assert "Node._version, Node.reservations" in found["test_only_documented_attributes_are_read"]


class RecentWithoutHalfLife(QueueSortPolicy):
    """Orders queues by usage that is never recorded."""

    name = "recent-without-half-life"

    def key(self, queue: Queue) -> float:
        """Return the recent usage."""
        return sum(queue.recent.values())


def test_recent_usage_without_half_life_is_found() -> None:
    found = broken_promises(RecentWithoutHalfLife())
    assert "half_life is None" in found["test_usage_over_time_is_read_only_with_a_half_life"]


class ReadsANumber(Predicate):
    """Reads a tag as a number, whatever it says."""

    name = "reads-a-number"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Compare a tag with an attribute."""
        wanted, most = int(ask.app.tags.get("racks", "1")), node.attributes.get("racks", "1")
        return None if wanted <= int(most) else "too few racks"


class SortsByAText(AppSortPolicy):
    """Returns numbers and texts as keys."""

    name = "sorts-by-a-text"

    def key(self, app: Application) -> Any:
        """Return a tag as number if it is one, else as text."""
        given = app.tags.get("rank", "0")
        return int(given) if given.isdecimal() and len(given) < 9 else given


class PlacesNowhere(PlacementRule):
    """Returns a tag as queue, even if it is empty."""

    name = "places_nowhere"

    def place(self, app: Application) -> str | None:
        """Return the tag."""
        return app.tags.get("project")


@pytest.mark.parametrize(
    "plugin", [ReadsANumber(), SortsByAText(), PlacesNowhere()], ids=lambda one: one.name
)
def test_odd_texts_of_the_tags_that_a_plugin_reads_are_tried(plugin: Plugin) -> None:
    assert "test_odd_texts_in_tags_are_answered" in broken_promises(plugin)


def opens_a_file(folder: Path) -> object:
    return (folder / "events").open("w")


def connects(folder: Path) -> object:
    return sqlite3.connect(folder / "events.db")


def starts_a_thread(folder: Path) -> object:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    return thread


@pytest.mark.parametrize("takes", [opens_a_file, connects, starts_a_thread])
def test_resources_taken_by_the_constructor_are_found(takes: Any, tmp_path: Path) -> None:
    class OpensAtOnce(EventSink):
        """Takes hold of something when it is created."""

        name = "opens-at-once"

        def __init__(self) -> None:
            if ready:
                self.held = takes(tmp_path)

        def send(self, batch: Sequence[Event]) -> None:
            """Do nothing."""

    ready = False
    sink = OpensAtOnce()
    ready = True
    case = type("TestIt", (EventSinkContract,), {"sink": sink})()
    with pytest.raises(AssertionError, match=r"do this in opened\(\)"):
        case.test_creation_opens_nothing()


class OpensInOpened(EventSink):
    """Takes hold of a database when it is opened."""

    name = "opens-in-opened"
    connection: sqlite3.Connection | None = None

    def opened(self, context: Context) -> None:
        """Open the database."""
        self.connection = sqlite3.connect(":memory:")

    def send(self, batch: Sequence[Event]) -> None:
        """Use the database."""
        assert self.connection is not None
        self.connection.execute("select 1")

    def closed(self) -> None:
        """Close the database."""
        if self.connection is not None:
            self.connection.close()


def test_resources_taken_by_opened_are_no_mistake() -> None:
    assert not broken_promises(OpensInOpened())


@attrs.define(eq=False)
class BoundToItsThread(UserGroupResolver):
    """Uses a connection of the thread of `opened`."""

    name = "bound-to-its-thread"
    _connection: Any = attrs.field(init=False, default=None)

    def opened(self, context: Context) -> None:
        """Connect."""
        self._connection = sqlite3.connect(":memory:")

    def groups(self, user: str) -> Sequence[str]:
        """Return a group from the database."""
        return [*self._connection.execute("select 'staff'").fetchone()]

    def closed(self) -> None:
        """Close the connection."""
        self._connection.close()


@attrs.define(eq=False)
class DependsOnTheThread(SubmitPolicy):
    """Rejects applications in all threads but the first."""

    name = "depends-on-the-thread"

    def submit(self, app: Submission) -> str | None:
        """Return None in the main thread."""
        return None if threading.current_thread() is threading.main_thread() else "not here"


class DependsButNeverBlocks(DependsOnTheThread):
    """The same, called by the core only."""

    name = "depends-but-never-blocks"
    blocking = False


def test_resolver_or_policy_that_is_bound_to_a_thread_is_found() -> None:
    name = "test_answers_are_the_same_in_another_thread"
    assert "ProgrammingError in another thread" in broken_promises(BoundToItsThread())[name]
    assert "in another thread: a service calls" in broken_promises(DependsOnTheThread())[name]
    assert name not in broken_promises(DependsButNeverBlocks())
