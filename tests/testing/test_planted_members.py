"""Contracts find mistakes in members beside the method of a kind, and in objects beside the arguments."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Literal

import attrs
import pytest

from tests.testing.test_contract_violations import broken_promises, violation
from yunikorn.api import (
    AdmissionPolicy,
    Allocation,
    Application,
    AppSortPolicy,
    Ask,
    AskClass,
    Event,
    EventSink,
    Node,
    NodeSortPolicy,
    PermitPolicy,
    Plugin,
    Predicate,
    PreemptionCause,
    PreemptionPolicy,
    Queue,
    QueueSortPolicy,
    ReservationPolicy,
    Task,
    UserGroupResolver,
    VictimUnit,
    Wait,
)


class KeepsEachEvent(EventSink):
    """Keeps all events."""

    name = "keeps-each-event"
    wants = ("NODE:NODE_ALLOC",)

    def __init__(self) -> None:
        self.received: list[Event] = []

    def send(self, batch: Sequence[Event]) -> None:
        """Keep the events."""
        self.received.extend(batch)


class WritesInPortions(KeepsEachEvent):
    """Keeps up to a thousand events until it writes them."""

    name = "writes-in-portions"

    def send(self, batch: Sequence[Event]) -> None:
        """Keep the events, or write all of them."""
        super().send(batch)
        if len(self.received) >= 1_000:
            self.received.clear()


@attrs.define(eq=False)
class RemembersEachUser(UserGroupResolver):
    """Remembers the groups of all users."""

    name = "remembers-each-user"
    _known: dict[str, Sequence[str]] = attrs.field(init=False, factory=dict)

    def groups(self, user: str) -> Sequence[str]:
        """Return the groups as first found."""
        return self._known.setdefault(user, ["staff"])


def test_sinks_and_resolvers_that_keep_everything_are_found() -> None:
    found = violation(KeepsEachEvent(), "test_memory_is_independent_of_earlier_events")
    assert "bound what is kept" in found
    assert not broken_promises(WritesInPortions())
    found = violation(RemembersEachUser(), "test_memory_is_independent_of_earlier_calls")
    assert "after 1200 different users, and" in found


class RemembersPlacements(PermitPolicy):
    """Remembers every placement."""

    name = "remembers-placements"

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def permit(self, allocation: Allocation) -> None:
        """Permit each placement."""
        self.seen.add(allocation.uuid)


class WritesADiary(AdmissionPolicy):
    """Appends to a text."""

    name = "writes-a-diary"

    def __init__(self) -> None:
        self.text = ""

    def admit(self, app: Application) -> None:
        """Admit each application."""
        self.text += f"{app.id} "


@pytest.mark.parametrize("plugin", [RemembersPlacements(), WritesADiary()], ids=lambda one: one.name)
def test_names_of_placements_and_long_texts_that_are_kept_are_found(plugin: Plugin) -> None:
    found = violation(plugin, "test_memory_is_independent_of_earlier_calls")
    assert "bound what is kept" in found


class CountsInAList(Predicate):
    """Refuses every millionth question of all its objects, which it counts in a list."""

    name = "counts-in-a-list"
    asked: ClassVar[list[int]] = [0]

    def check(self, ask: Ask, node: Node) -> str | None:
        """Refuse from time to time."""
        self.asked[0] += 1
        return "once in a while" if self.asked[0] % 1_000_000 == 0 else None


def test_counters_in_containers_of_a_class_are_found() -> None:
    found = violation(CountsInAList(), "test_answers_set_no_class_attribute_and_no_global")
    assert "CountsInAList.asked" in found


class WaitsAsTold(AdmissionPolicy):
    """Waits as long as a tag says; some texts are infinity or no number."""

    name = "waits-as-told"

    def admit(self, app: Application) -> Wait | None:
        """Return the wait, if the tag has a number above 0."""
        try:
            seconds = float(app.tags.get("wait", "0"))
        except ValueError:
            return None
        return Wait(seconds, "as requested") if seconds > 0 else None


class RefusesAsTold(AdmissionPolicy):
    """Rejects with a tag as reason, even if it is empty."""

    name = "refuses-as-told"

    def admit(self, app: Application) -> str | None:
        """Return the tag."""
        return app.tags.get("refuse")


def as_number(text: str) -> float:
    """Return the number of a text, which may be NaN or infinity; 0 for other texts."""
    try:
        return float(text)
    except ValueError:
        return 0.0


class ReservesNormally(ReservationPolicy):
    """Reserves after the delay of the partition."""

    name = "reserves-normally"

    def reserves_after(self, ask: Ask, delay: float | None) -> float | None:
        """Return the delay."""
        return delay


class ReservesAsTold(ReservationPolicy):
    """Reads ages, durations, bounds and ranks from texts that may be no number."""

    name = "reserves-as-told"

    def reserves_after(self, ask: Ask, delay: float | None) -> float:
        """Return the number of a tag."""
        return as_number(ask.tags.get("after", "1"))


class LastsAsTold(ReservesNormally):
    """Reads a duration from a tag."""

    name = "lasts-as-told"

    def lasts(self, ask: Ask) -> float:
        """Return the number of a tag."""
        return as_number(ask.tags.get("lasts", "1"))


class BoundsAsTold(ReservesNormally):
    """Reads a bound from a property."""

    name = "bounds-as-told"

    def most_in(self, queue: Queue) -> Any:
        """Return the number of the property."""
        return int(queue.properties.get("most", "1"))


class RanksNodesAsTold(ReservesNormally):
    """Reads the rank of a node from an attribute."""

    name = "ranks-nodes-as-told"

    def rank_node(self, ask: Ask, node: Node) -> float:
        """Return the number of the attribute."""
        return as_number(node.attributes.get("rank", "1"))


class RanksByATuple(PreemptionPolicy):
    """Ranks victims by a tuple with the number of a tag, which may be NaN."""

    name = "ranks-by-a-tuple"

    def rank(self, allocation: Allocation, cause: PreemptionCause) -> tuple[float, str]:
        """Return the number and the key."""
        return as_number(allocation.tags.get("rank", "0")), allocation.key


class ScoresALargeNumber(NodeSortPolicy):
    """Scores nodes by an attribute if it is a number, however large."""

    name = "scores-a-large-number"

    def score(self, node: Node) -> int:
        """Return the number of the attribute."""
        given = node.attributes.get("cost", "1")
        return int(given[:400]) if given.isdecimal() else 0


class KeepsBooks(Predicate):
    """Counts running tasks; derived classes read a number from a text in one of the members."""

    name = "keeps-books"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Accept every node."""
        return None

    def placed(self, task: Task, node: Node) -> None:
        """Count nothing."""

    def released(self, task: Task, node: Node) -> None:
        """Count nothing."""

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the same class for all."""
        return 1

    def domain(self, node: Node) -> Hashable:
        """Return the rack."""
        return node.attributes.get("rack", "")


class PlacesANumber(KeepsBooks):
    """Reads the number of seats of a task."""

    name = "places-a-number"

    def placed(self, task: Task, node: Node) -> None:
        """Read the number."""
        int(task.tags.get("seats", "1"))


class HasANumberAsDomain(KeepsBooks):
    """Reads the number of a rack."""

    name = "has-a-number-as-domain"

    def domain(self, node: Node) -> Hashable:
        """Return the number."""
        return int(node.attributes.get("rack", "1"))


class HasANumberAsSubject(KeepsBooks):
    """Reads a number of a task."""

    name = "has-a-number-as-subject"

    def subjects(self, task: Task) -> list[int]:
        """Return the number."""
        return [int(task.tags.get("seats", "1"))]


class HasANumberAsClass(KeepsBooks):
    """Reads a number of a request."""

    name = "has-a-number-as-class"

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the number."""
        return int(ask.tags.get("seats", "1"))


class WantsANumber(KeepsBooks):
    """Reads a number for the explanation of a request."""

    name = "wants-a-number"

    def wanted(self, ask: Ask) -> str:
        """Return the number."""
        return f"{int(ask.tags.get('seats', '1'))} seats"


class HasANumberAsScope(Predicate):
    """Reads the number of a rack in the domain of a scope."""

    name = "has-a-number-as-scope"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Refuse every node."""
        return "no room"

    def placed(self, task: Task, node: Node) -> None:
        """Count nothing."""

    def released(self, task: Task, node: Node) -> None:
        """Count nothing."""

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the same class for all."""
        return 1

    def scope(self, ask: Ask, node: Node) -> Hashable:
        """Return the name of the attribute."""
        return "rack"

    def domain_in(self, node: Node, scope: Hashable) -> Hashable:
        """Return the number."""
        return int(node.attributes.get(str(scope), "1"))


class AdmitsANumber(AppSortPolicy):
    """Reads the number of an admission class."""

    name = "admits-a-number"

    def key(self, app: Application) -> int:
        """Return the time of submission."""
        return app.submitted

    def admission_class(self, app: Application) -> Hashable:
        """Return the number."""
        return int(app.tags.get("class", "1"))


@pytest.mark.parametrize(
    "plugin",
    [
        WaitsAsTold(),
        RefusesAsTold(),
        ReservesAsTold(),
        LastsAsTold(),
        BoundsAsTold(),
        RanksNodesAsTold(),
        RanksByATuple(),
        ScoresALargeNumber(),
        PlacesANumber(),
        HasANumberAsDomain(),
        HasANumberAsSubject(),
        HasANumberAsClass(),
        HasANumberAsScope(),
        WantsANumber(),
        AdmitsANumber(),
    ],
    ids=lambda one: one.name,
)
def test_odd_texts_are_tried_in_every_member_of_every_kind(plugin: Plugin) -> None:
    assert set(broken_promises(plugin)) == {"test_odd_texts_in_tags_are_answered"}


class ReadsPrivatePartsOfTasks(KeepsBooks):
    """Reads attributes of the scheduler's own tasks, in the books only."""

    name = "reads-private-parts-of-tasks"

    def placed(self, task: Task, node: Node) -> None:
        """Read the specification."""
        getattr(task, "spec", None)


class ReadsPrivatePartsAround(PermitPolicy):
    """Reads attributes of allocations of the application, and of the node."""

    name = "reads-private-parts-around"

    def permit(self, allocation: Allocation) -> None:
        """Permit each placement."""
        for some in allocation.app.allocations_by_node.values():
            for one in some:
                getattr(one, "releasing", None)
        for one in allocation.node.allocations.values():
            getattr(one.app, "backlog", None)


class ReadsPrivatePartsAbove(QueueSortPolicy):
    """Reads attributes of the parent queue."""

    name = "reads-private-parts-above"

    def key(self, queue: Queue) -> int:
        """Return the same key for all."""
        getattr(queue.parent, "children", None)
        return 0


class ReadsPrivatePartsOfClasses(NodeSortPolicy):
    """Reads attributes of the class of a request."""

    name = "reads-private-parts-of-classes"

    def score(self, node: Node, ask_class: AskClass) -> float:
        """Return the same score for all."""
        getattr(ask_class, "tries", None)
        return 0.0


@pytest.mark.parametrize(
    ("plugin", "read"),
    [
        (ReadsPrivatePartsOfTasks(), "Allocation.spec"),
        (ReadsPrivatePartsAround(), "Allocation.releasing, Application.backlog"),
        (ReadsPrivatePartsAbove(), "Queue.children"),
        (ReadsPrivatePartsOfClasses(), "AskClass.tries"),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_private_attributes_of_related_objects_are_found(plugin: Plugin, read: str) -> None:
    assert f"reads {read}, which" in violation(plugin, "test_only_documented_attributes_are_read")


class ModesByATag(PreemptionPolicy):
    """Returns the text of a tag as the mode, without a look at it."""

    name = "modes-by-a-tag"

    def rank(self, allocation: Allocation, cause: PreemptionCause) -> int:
        """Return the same rank for all."""
        return 0

    def mode_of(self, allocation: Allocation, cause: PreemptionCause) -> Any:
        """Return the tag, or an unknown mode for large tasks."""
        return allocation.tags.get("mode", "end") if allocation.resource.get("vcore", 0) < 8_000 else "pause"


@attrs.define(eq=False)
class TakesTurns(PreemptionPolicy):
    """Suspends every other victim."""

    name = "takes-turns"
    _suspended: bool = attrs.field(init=False, default=False)

    def rank(self, allocation: Allocation, cause: PreemptionCause) -> int:
        """Return the same rank for all."""
        return 0

    def mode_of(self, allocation: Allocation, cause: PreemptionCause) -> Literal["end", "suspend"]:
        """Return the other mode than before."""
        self._suspended = not self._suspended
        return "suspend" if self._suspended else "end"


class CostsOfUnitsAsText(RanksByATuple):
    """Has no number for gangs that lose members elsewhere."""

    name = "costs-of-units-as-text"

    def cost_of_units(self, units: Sequence[VictimUnit], cause: PreemptionCause) -> Any:
        """Return a text for such units."""
        return "high" if any(unit.outside for unit in units) else len(units)


def test_costs_of_units_that_are_no_numbers_are_found() -> None:
    (message,) = broken_promises(CostsOfUnitsAsText(), "test_answers_are_valid").values()
    assert "cost_of_units(step and gang, guarantee) is 'high': return a number, or a tuple" in message


class PausesAll(RanksByATuple):
    """Has an unknown mode for all victims."""

    name = "pauses-all"
    mode: Any = "pause"


def test_unknown_and_changing_modes_are_found() -> None:
    (message,) = broken_promises(ModesByATag(), "test_answers_are_valid").values()
    assert "mode_of(large, guarantee) is 'pause': return one of end, requeue, suspend" in message
    assert "test_modes_are_valid" in broken_promises(PausesAll(), "test_modes_are_valid")
    assert broken_promises(TakesTurns(), "test_repeated_calls_return_equal_answers")
