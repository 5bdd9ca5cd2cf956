"""Contracts find mistakes that work at first: leaks, hidden state, odd texts, resources taken too early."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from tests.testing.test_contract_violations import broken_promises, violation
from yunikorn.api import (
    Allocation,
    Application,
    AppSortPolicy,
    Ask,
    Context,
    Event,
    EventSink,
    Node,
    NodeSortPolicy,
    PermitPolicy,
    PlacementRule,
    Plugin,
    Predicate,
    PreemptionCause,
    PreemptionPolicy,
    Queue,
    QueueSortPolicy,
    Submission,
    SubmitPolicy,
    Task,
    UserGroupResolver,
    Wait,
)
from yunikorn_testing import EventSinkContract

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
    assert "bound what is kept" in violation(plugin, "test_memory_is_independent_of_earlier_calls")
    assert not broken_promises(plugin, "test_cost_of_an_answer_is_independent_of_earlier_calls")


class CountsInItsClass(Predicate):
    """Refuses every ten-thousandth question of all its objects."""

    name = "counts-in-its-class"
    asked: ClassVar[int] = 0

    def check(self, ask: Ask, node: Node) -> str | None:
        """Refuse from time to time."""
        type(self).asked += 1
        return "once in a while" if self.asked % 10_000_000 == 0 else None


def test_counters_in_a_class_are_found() -> None:
    found = violation(CountsInItsClass(), "test_answers_set_no_class_attribute_and_no_global")
    assert "CountsInItsClass.asked" in found


class ReadsPrivateParts(NodeSortPolicy):
    """Reads attributes of the scheduler's own nodes."""

    name = "reads-private-parts"

    def score(self, node: Node) -> float:
        """Return the number of reservations, which no view has."""
        return float(len(getattr(node, "reservations", ())) + getattr(node, "_version", 0))


def test_private_attributes_are_found() -> None:
    found = violation(ReadsPrivateParts(), "test_only_documented_attributes_are_read")
    assert "Node._version, Node.reservations" in found


class RecentWithoutHalfLife(QueueSortPolicy):
    """Orders queues by usage that is never recorded."""

    name = "recent-without-half-life"

    def key(self, queue: Queue) -> float:
        """Return the recent usage."""
        return sum(queue.recent.values())


def test_recent_usage_without_half_life_is_found() -> None:
    found = violation(RecentWithoutHalfLife(), "test_usage_over_time_is_read_only_with_a_half_life")
    assert "half_life is None" in found


class CountsAll(AppSortPolicy):
    """Orders applications by all tasks of the user's groups, and claims to depend on the user's."""

    name = "counts-all"

    def __init__(self) -> None:
        self.running = 0

    def key(self, app: Application) -> int:
        """Return the number of all running tasks, unless the user is a guest."""
        return 0 if "guests" in app.groups else self.running

    def subject(self, app: Application) -> str:
        """Return the user."""
        return app.user

    def placed(self, task: Task, node: Node) -> None:
        """Count a task."""
        self.running += 1

    def released(self, task: Task, node: Node) -> None:
        """Count a task no more."""
        self.running -= 1


def test_keys_that_change_without_a_common_subject_are_found() -> None:
    found = broken_promises(CountsAll())
    assert list(found) == ["test_keys_change_only_where_the_books_say_so"]
    assert "its subject is 'ann', and that of the task 'bob'" in str(found)


class PastWithoutHalfLife(AppSortPolicy):
    """Orders applications by usage that is never recorded."""

    name = "past-without-half-life"
    refresh_every = 60.0

    def key(self, app: Application) -> float:
        """Return the recent usage."""
        return sum(app.past.recent.values())


def test_recent_usage_of_applications_without_half_life_is_found() -> None:
    found = broken_promises(PastWithoutHalfLife())
    assert list(found) == ["test_usage_over_time_is_read_only_with_a_half_life"]


class OwnersWithoutKinds(AppSortPolicy):
    """Orders applications by usage of users that is never recorded."""

    name = "owners-without-kinds"
    refresh_every = 60.0
    half_life = 600.0

    def key(self, app: Application) -> float:
        """Return the recent usage of the user."""
        return sum(app.usage.recent("user", app.user).values())


def test_usage_by_owner_without_kinds_is_found() -> None:
    found = violation(OwnersWithoutKinds(), "test_usage_over_time_is_read_only_with_a_half_life")
    assert "set usage_by" in found


class ServiceWithoutRefresh(AppSortPolicy):
    """Orders applications by service that grows, and never again."""

    name = "service-without-refresh"

    def key(self, app: Application) -> float:
        """Return the received service."""
        return sum(app.past.served.values())


def test_growing_service_without_refresh_is_found() -> None:
    found = broken_promises(ServiceWithoutRefresh())
    assert list(found) == ["test_key_that_reads_growing_service_declares_its_refresh_interval"]
    assert "reads PastService.served, which grows" in str(found)


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


class SubmitsANumber(SubmitPolicy):
    """Sets the priority to a tag, whatever it says."""

    name = "submits-a-number"

    def submit(self, app: Submission) -> Submission | None:
        """Return the application with the priority, if there is one."""
        given = app.tags.get("priority")
        return None if given is None else attrs.evolve(app, priority=int(given))


class SubmitsALargeNumber(SubmitPolicy):
    """Sets the priority to a tag if it is a number, however large."""

    name = "submits-a-large-number"

    def submit(self, app: Submission) -> Submission | None:
        """Return the application with the priority, if there is one."""
        given = app.tags.get("priority", "")
        return attrs.evolve(app, priority=int(given[:20])) if given.isdecimal() else None


class RejectsWithoutReason(SubmitPolicy):
    """Rejects with a tag as reason, even if it is empty."""

    name = "rejects-without-reason"

    def submit(self, app: Submission) -> str | None:
        """Return the tag."""
        return app.tags.get("refuse")


class PermitsANumber(PermitPolicy):
    """Waits as long as a tag of the application says."""

    name = "permits-a-number"

    def permit(self, allocation: Allocation) -> Wait | None:
        """Return the wait, if there is one."""
        given = allocation.app.tags.get("wait")
        return None if given is None else Wait(max(1, min(int(given), 60)), "as requested")


class GroupsByANumber(PermitPolicy):
    """Numbers the groups by a tag."""

    name = "groups-by-a-number"

    def permit(self, allocation: Allocation) -> None:
        """Permit each placement."""

    def group(self, allocation: Allocation) -> str | None:
        """Return the number as text."""
        return f"group {int(allocation.tags.get('group', '0'))}"


class RanksByANumber(PreemptionPolicy):
    """Reads the rank of a victim from a tag."""

    name = "ranks-by-a-number"

    def rank(self, allocation: Allocation, cause: PreemptionCause) -> int:
        """Return the tag."""
        return int(allocation.tags.get("rank", "0"))


class ProtectsByAnAttribute(PreemptionPolicy):
    """Reads the rack of a victim from its node."""

    name = "protects-by-an-attribute"

    def rank(self, allocation: Allocation, cause: PreemptionCause) -> int:
        """Return the same rank for all."""
        return 0

    def protects(self, allocation: Allocation, cause: PreemptionCause) -> str | None:
        """Protect the victims of one rack."""
        return "rack 7" if int(allocation.node.attributes.get("rack", "0")) == 7 else None


class CostsByAProperty(PreemptionPolicy):
    """Reads the cost from a property of the queue that preempts."""

    name = "costs-by-a-property"

    def rank(self, allocation: Allocation, cause: PreemptionCause) -> int:
        """Return the same rank for all."""
        return 0

    def cost(self, allocation: Allocation, cause: PreemptionCause) -> float:
        """Return the property."""
        return 1.0 if cause.queue is None else float(cause.queue.properties.get("cost", "1") or "?")


class CostsNoNumber(PreemptionPolicy):
    """Reads the cost from a tag; some texts are infinity or no number."""

    name = "costs-no-number"

    def rank(self, allocation: Allocation, cause: PreemptionCause) -> int:
        """Return the same rank for all."""
        return 0

    def cost(self, allocation: Allocation, cause: PreemptionCause) -> float:
        """Return the number of a tag; 1 for other texts."""
        try:
            return max(0.0, float(allocation.tags.get("cost", "1")))
        except ValueError:
            return 1.0


class RanksByNoNumber(PreemptionPolicy):
    """Reads the rank from a tag; some texts are no number."""

    name = "ranks-by-no-number"

    def rank(self, allocation: Allocation, cause: PreemptionCause) -> float:
        """Return the number of a tag; 0 for other texts."""
        try:
            return float(allocation.tags.get("rank", "0"))
        except ValueError:
            return 0.0


class ProtectsWithoutReason(PreemptionPolicy):
    """Returns the text of a tag, which may be empty."""

    name = "protects-without-reason"

    def rank(self, allocation: Allocation, cause: PreemptionCause) -> int:
        """Return the same rank for all."""
        return 0

    def protects(self, allocation: Allocation, cause: PreemptionCause) -> str | None:
        """Return the tag."""
        return allocation.tags.get("protect")


class WaitsForever(PermitPolicy):
    """Waits as long as a tag says, without a bound."""

    name = "waits-forever"

    def permit(self, allocation: Allocation) -> Wait | None:
        """Return the wait, if the tag has a number above 0."""
        try:
            seconds = float(allocation.tags.get("wait", "0"))
        except ValueError:
            return None
        return Wait(seconds, "as requested") if seconds > 0 else None


class LooksAtNeighbours(Predicate):
    """Reads a tag of each task on a node."""

    name = "looks-at-neighbours"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Refuse a node with a loud task."""
        noise = sum(int(one.tags.get("noise", "0")) for one in node.allocations.values())
        return "loud" if noise > 3 else None


class LooksAtItsOwn(Predicate):
    """Reads a tag of each task of an application."""

    name = "looks-at-its-own"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Refuse a node with a loud task of the same application."""
        here = ask.app.allocations_by_node.get(node.id, ())
        noise = sum(int(one.tags.get("noise", "0")) for one in here)
        return "loud" if noise + len(ask.app.allocations) > 99 else None


@pytest.mark.parametrize(
    "plugin",
    [
        LooksAtNeighbours(),
        LooksAtItsOwn(),
        CostsNoNumber(),
        RanksByNoNumber(),
        ProtectsWithoutReason(),
        WaitsForever(),
        ReadsANumber(),
        SortsByAText(),
        PlacesNowhere(),
        SubmitsANumber(),
        SubmitsALargeNumber(),
        RejectsWithoutReason(),
        PermitsANumber(),
        GroupsByANumber(),
        RanksByANumber(),
        ProtectsByAnAttribute(),
        CostsByAProperty(),
    ],
    ids=lambda one: one.name,
)
def test_odd_texts_of_the_tags_that_a_plugin_reads_are_tried(plugin: Plugin) -> None:
    assert ", with " in violation(plugin, "test_odd_texts_in_tags_are_answered")


class ChangesTagsWithCare(SubmitPolicy):
    """Changes the tags and the queue in all ways that work with a submission of the scheduler."""

    name = "changes-tags-with-care"

    def submit(self, app: Submission) -> Submission:
        """Return the application with more tags, or in another queue."""
        if app.tags.get("team"):
            return attrs.evolve(app, queue_name="root.teams")
        more: Any = app.tags
        return attrs.evolve(app, tags={"a": "1"} | (more | {"b": "2"}) | more.copy() | ({"c": "3"} | more))


def test_submission_may_be_changed_in_all_ways_that_work() -> None:
    assert not broken_promises(ChangesTagsWithCare())


class RemembersTheOwner(SubmitPolicy):
    """Keeps an entry for every user, and never looks through them."""

    name = "remembers-the-owner"
    known: ClassVar[dict[str, str | None]] = {}

    def submit(self, app: Submission) -> str | None:
        """Accept every application."""
        return self.known.setdefault(app.user, None)


class ReadsPrivatePartsOfVictims(PreemptionPolicy):
    """Reads attributes of the scheduler's own allocations and queues."""

    name = "reads-private-parts-of-victims"

    def rank(self, allocation: Allocation, cause: PreemptionCause) -> float:
        """Return the number of releases, which no view has."""
        return float(getattr(allocation, "_releases", 0) + getattr(cause.queue, "_debt", 0))


def test_leaks_and_private_attributes_are_found_in_these_kinds_too() -> None:
    assert "bound what is kept" in violation(
        RemembersTheOwner(), "test_memory_is_independent_of_earlier_calls"
    )
    found = violation(ReadsPrivatePartsOfVictims(), "test_only_documented_attributes_are_read")
    assert "Allocation._releases, Queue._debt" in found


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
    assert "ProgrammingError in another thread" in violation(BoundToItsThread(), name)
    assert "in another thread: a service calls" in violation(DependsOnTheThread(), name)
    assert not broken_promises(DependsButNeverBlocks(), name)
