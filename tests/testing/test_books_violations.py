"""The contracts detect wrong books: each plugin here breaks one rule, and a test of the contract names it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import pytest

from tests.testing.test_contract_violations import broken_promises, violation
from yunikorn.api import Ask, Node, NodeSortPolicy, Predicate, Task


class Sound(Predicate):
    """At most two tasks of an application per zone."""

    name = "sound"

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def key(self, task: Task, node: Node) -> tuple[str, str]:
        return task.app.id, node.attributes.get("zone", "")

    def check(self, ask: Ask, node: Node) -> str | None:
        return "two tasks run in the zone" if self.counts[self.key(ask, node)] >= 2 else None

    def placed(self, task: Task, node: Node) -> Any:
        self.counts[self.key(task, node)] += 1

    def released(self, task: Task, node: Node) -> Any:
        key = self.key(task, node)
        self.counts[key] -= 1
        if not self.counts[key]:
            del self.counts[key]

    def ask_class(self, ask: Ask) -> Hashable:
        return ask.app.id

    def domain(self, node: Node) -> Hashable:
        return node.attributes.get("zone", "")

    def subjects(self, task: Task) -> tuple[Hashable, ...]:
        return (task.app.id,)


class Leaking(Sound):
    """Keeps counts of zero."""

    name = "leaking"

    def released(self, task: Task, node: Node) -> None:
        self.counts[self.key(task, node)] -= 1


class Forgetful(Sound):
    """Releases nothing."""

    name = "forgetful"

    def released(self, task: Task, node: Node) -> None:
        """Do nothing."""


class OnlyPlaced(Predicate):
    """Has no `released`."""

    name = "only-placed"

    def check(self, ask: Ask, node: Node) -> str | None:
        return None

    def placed(self, task: Task, node: Node) -> None:
        """Do nothing."""


class FirstCome(Sound):
    """Accepts the application that came first in a zone."""

    name = "first-come"

    def __init__(self) -> None:
        super().__init__()
        self.first: dict[str, str] = {}

    def check(self, ask: Ask, node: Node) -> str | None:
        first = self.first.get(str(self.domain(node)), ask.app.id)
        return None if first == ask.app.id else "another application came first"

    def placed(self, task: Task, node: Node) -> None:
        super().placed(task, node)
        self.first.setdefault(str(self.domain(node)), task.app.id)

    def released(self, task: Task, node: Node) -> None:
        super().released(task, node)
        zone = self.domain(node)
        if not any(key[1] == zone for key in self.counts):
            del self.first[str(zone)]


class OnlyAllocations(Sound):
    """Ignores requests."""

    name = "only-allocations"

    def placed(self, task: Task, node: Node) -> None:
        for _ in range(2 * hasattr(task, "uuid")):
            super().placed(task, node)

    def released(self, task: Task, node: Node) -> None:
        for _ in range(2 * hasattr(task, "uuid")):
            super().released(task, node)


class SilentElsewhere(Sound):
    """Counts in the whole cluster, but declares zones."""

    name = "silent-elsewhere"

    def key(self, task: Task, node: Node) -> tuple[str, str]:
        return task.app.id, ""


class OtherSubjects(Sound):
    """Names subjects that have nothing in common."""

    name = "other-subjects"

    def subjects(self, task: Task) -> tuple[Hashable, ...]:
        return (task.key,)


class CoarseClass(Sound):
    """Has one class for requests with different answers."""

    name = "coarse-class"

    def ask_class(self, ask: Ask) -> Hashable:
        return ""


class Prepared(Sound):
    """Passes its counts by a state; is correct."""

    name = "prepared"

    def prepare(self, ask: Ask) -> dict[str, int]:
        return {zone: count for (app, zone), count in self.counts.items() if app == ask.app.id}

    def check(self, ask: Ask, node: Node, state: dict[str, int]) -> str | None:  # type: ignore[override]
        return "two tasks run in the zone" if state.get(str(self.domain(node)), 0) >= 2 else None


class Committing(Sound):
    """Commits a number; is correct."""

    name = "committing"

    def commit(self, ask: Ask, node: Node) -> Any:
        return {"number": str(self.counts[self.key(ask, node)])}


class Eager(Committing):
    """Counts a task before it is placed."""

    name = "eager"

    def commit(self, ask: Ask, node: Node) -> Any:
        self.counts["", ""] = 1
        return {"number": "1"}


class Drawing(Committing):
    """Commits another number each time."""

    name = "drawing"
    last = 0

    def commit(self, ask: Ask, node: Node) -> Any:
        Drawing.last += 1
        return {"number": str(Drawing.last)}


class Numeric(Committing):
    """Commits a number that is no text."""

    name = "numeric"

    def commit(self, ask: Ask, node: Node) -> Any:
        return {"number": 1}


class Sticky(NodeSortPolicy):
    """Node order that never forgets a task."""

    name = "sticky"

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def score(self, node: Node) -> int:
        return self.counts[node.id]

    def placed(self, task: Task, node: Node) -> None:
        self.counts[node.id] += 1

    def released(self, task: Task, node: Node) -> None:
        """Do nothing."""


RESTORED, ORDER = "test_release_restores_the_books", "test_books_do_not_depend_on_order"
COMMITS = "test_commit_returns_tags_and_leaves_the_books"
ENDS = "test_refusals_end_only_where_the_books_say_so"


@pytest.mark.parametrize(
    ("cls", "test", "message"),
    [
        (Leaking, RESTORED, "counts is "),
        (Forgetful, RESTORED, " tasks were placed, and released in reverse order"),
        (OnlyPlaced, "test_class_can_be_registered_for_its_kind", "has placed without released"),
        (FirstCome, ORDER, "with tasks placed in reverse"),
        (OnlyAllocations, "test_requests_and_allocations_count_alike", "if placed(task, node) gets requests"),
        (Eager, COMMITS, "changes the books"),
        (Drawing, COMMITS, "the second time"),
        (Numeric, COMMITS, "return a mapping of texts"),
        (SilentElsewhere, ENDS, "return this domain from released()"),
        (OtherSubjects, ENDS, "have no subject in common"),
        (CoarseClass, ENDS, "although the ask classes are equal"),
        (Sticky, RESTORED, "the key of empty is 0, but 2 after"),
    ],
)
def test_wrong_books_are_found(cls: type[Any], test: str, message: str) -> None:
    assert message in violation(cls(), test)


@pytest.mark.parametrize("cls", [Sound, Prepared, Committing])
def test_correct_books_pass_the_contract(cls: type[Predicate]) -> None:
    assert broken_promises(cls()) == {}
