"""A predicate for YuniKorn: floating licences (seats) of the whole cluster, with a limit per user.

partitions:
  - name: default
    predicates:
      - name: user-seats
        seats: {matlab: 40, ansys: 10}
        per_user: {matlab: 10}

The default predicate `licences` counts for the whole cluster only, so that one user may take all seats. A
task names its seat in the tag `seat` of its request or its application; each task takes one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping

import attrs

from yunikorn.api import Ask, Node, Predicate, Task, hookimpl


@attrs.define(eq=False)
class UserSeats(Predicate):
    """Only while a seat is free in the cluster, and the user holds fewer than the limit."""

    name = "user-seats"
    seats: Mapping[str, int]
    """Number of seats by name."""
    per_user: Mapping[str, int] = attrs.field(factory=dict)
    """Largest number of seats that one user holds, by name; names without one are not limited."""
    tag: str = "seat"
    """Tag with the name of the seat that each task takes."""
    _taken: Counter[str] = attrs.field(init=False, factory=Counter)
    """Number of tasks by seat."""
    _held: Counter[tuple[str, str]] = attrs.field(init=False, factory=Counter)
    """Number of tasks by seat and user."""

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if the user may take the seat now, else the reason."""
        seat, user = self._seat(ask), ask.app.user
        if not seat:
            return None
        if seat not in self.seats:
            return f"there is no seat '{seat}'; known: {', '.join(sorted(self.seats))}"
        if self._taken[seat] >= self.seats[seat]:
            return f"all {self.seats[seat]} seats {seat} are taken"
        if seat in self.per_user and self._held[seat, user] >= self.per_user[seat]:
            return f"user {user} holds {self.per_user[seat]} seats {seat}, the most for one user"
        return None

    # What the answer depends on: the same for all nodes, and changed by tasks with the same seat.

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the seat and the user; None for requests without a seat."""
        seat = self._seat(ask)
        return (seat, ask.app.user) if seat else None

    def domain(self, node: Node) -> str:
        """Return the same domain for all nodes."""
        return "cluster"

    def subjects(self, task: Task) -> tuple[str, ...]:
        """Return the seat."""
        seat = self._seat(task)
        return (seat,) if seat else ()

    # The books: exact at every `check`, also while a gang is tried.

    def placed(self, task: Task, node: Node) -> None:
        """Take a seat."""
        seat = self._seat(task)
        if seat:
            self._taken[seat] += 1
            self._held[seat, task.app.user] += 1

    def released(self, task: Task, node: Node) -> None:
        """Free a seat; counts of zero are removed, so that the books do not grow with the number of users."""
        seat = self._seat(task)
        if not seat:
            return
        self._taken[seat] -= 1
        self._held[seat, task.app.user] -= 1
        if not self._taken[seat]:
            del self._taken[seat]
        if not self._held[seat, task.app.user]:
            del self._held[seat, task.app.user]

    def _seat(self, task: Task) -> str:
        return task.tags.get(self.tag) or task.app.tags.get(self.tag, "")


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [UserSeats]
