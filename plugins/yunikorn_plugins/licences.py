"""Default predicate `licences`: counts of the whole cluster, such as floating licences.

    predicates:
      - name: licences
        counts: {matlab: 40, ansys: 10}

A request, or else its application, names in the tag `licences` what each task uses: `matlab=2, ansys`,
where a name alone means 1. A task is placed only while enough of each is free.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from functools import lru_cache

import attrs

from yunikorn.api import Ask, Node, Predicate, Task, hookimpl

_USE = re.compile(r"(?P<name>[^\s=,]+)(?:\s*=\s*(?P<count>[0-9]{1,9}))?\Z")
Uses = tuple[tuple[str, int], ...]
"""Names and numbers, in order of the names."""


@lru_cache(maxsize=1024)
def read_uses(text: str) -> Uses | str:
    """Return what a task uses, from `NAME=COUNT, NAME`, or an error text."""
    found: dict[str, int] = {}
    for part in (part.strip() for part in text.split(",")):
        match = _USE.match(part)
        if match is None:
            return f"'{part}' is not NAME or NAME=COUNT"
        if match["name"] in found:
            return f"'{match['name']}' occurs twice"
        found[match["name"]] = int(match["count"] or 1)
    return tuple(sorted((name, count) for name, count in found.items() if count))


def _at_least_zero(owner: object, attribute: object, counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        if count < 0:
            raise ValueError(f"the count of {name} is {count}: use 0 or more")


@attrs.define(eq=False)
class Licences(Predicate):
    """Only while the licences that a task uses are free in the whole cluster."""

    name = "licences"
    counts: Mapping[str, int] = attrs.field(validator=_at_least_zero)
    """Number of licences by name."""
    tag: str = "licences"
    """Tag with the licences that each task uses; that of the request goes before that of its application."""
    _used: dict[str, int] = attrs.field(init=False, factory=dict)
    """Number of licences in use, by name."""

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if all licences are free, else the first that is not."""
        uses = self._uses(ask)
        if isinstance(uses, str):
            return f"the licences cannot be read: {uses} (tag {self.tag})"
        for name, count in uses:
            total = self.counts.get(name)
            if total is None:
                return f"there is no licence '{name}'; known: {', '.join(sorted(self.counts)) or 'none'}"
            free = total - self._used.get(name, 0)
            if count > free:
                return f"{max(free, 0)} of {total} licences {name} are free, the task uses {count}"
        return None

    # -- what the answer depends on -----------------------------------------------------------------

    def ask_class(self, ask: Ask) -> Hashable:
        """Return what the request uses."""
        return self._uses(ask)

    def domain(self, node: Node) -> None:
        """Return the same for all nodes: the counts are those of the whole cluster."""

    def subjects(self, task: Task) -> tuple[str, ...]:
        """Return the names of the licences."""
        uses = self._uses(task)
        return () if isinstance(uses, str) else tuple(name for name, _ in uses)

    def wanted(self, ask: Ask) -> str | None:
        """Return what the request uses as the requirement."""
        uses = self._uses(ask)
        if isinstance(uses, str) or not uses:
            return None
        return f"free licences {', '.join(f'{name}={count}' for name, count in uses)}"

    # -- books --------------------------------------------------------------------------------------

    def placed(self, task: Task, node: Node) -> None:
        """Count the licences of a task."""
        self._count(task, 1)

    def released(self, task: Task, node: Node) -> None:
        """Count the licences of a task no more."""
        self._count(task, -1)

    def _count(self, task: Task, times: int) -> None:
        uses = self._uses(task)
        for name, count in () if isinstance(uses, str) else uses:
            used = self._used.get(name, 0) + times * count
            if used:
                self._used[name] = used
            else:
                del self._used[name]

    def _uses(self, task: Task) -> Uses | str:
        text = task.tags.get(self.tag) or task.app.tags.get(self.tag)
        return read_uses(text) if text else ()


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [Licences]
