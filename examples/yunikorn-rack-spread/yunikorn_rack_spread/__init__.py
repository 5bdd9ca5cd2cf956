"""A predicate for YuniKorn: a limited number of tasks per rack, zone and other levels of the cluster.

partitions:
  - name: default
    predicates:
      - name: rack-spread
        limits: {rack: 2, zone: 6}

At most two tasks of an application then run per rack, and at most six per zone. The default predicate
`spread` limits one attribute only. An application replaces the limits by its tag `rack-spread`: `rack=1`, or
`off`.
Tasks whose requests have the tag `spread-group` are counted apart from the others of the application.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any

import attrs

from yunikorn.api import Ask, Node, Predicate, Task, hookimpl

OFF = "off"
_LIMIT = re.compile(r"(?P<level>[^\s=,]+)\s*=\s*(?P<most>[1-9][0-9]{0,8})\Z")
Limits = tuple[tuple[int, int], ...]
"""Index of a level and its limit."""
Group = tuple[str, str]
"""Application and group whose tasks are counted together."""
Place = tuple[str | None, ...]
"""Values of a node, by level."""


@lru_cache(maxsize=1024)
def read_limits(text: str, levels: tuple[str, ...]) -> Limits | str:
    """Return the limits from `LEVEL=N, LEVEL=N` or `off`, or an error text."""
    if text.strip().lower() == OFF:
        return ()
    found: dict[int, int] = {}
    for part in (part.strip() for part in text.split(",")):
        match = _LIMIT.match(part)
        if match is None:
            return f"'{part}' is not LEVEL=N with N from 1, or off"
        if match["level"] not in levels:
            return f"there is no level '{match['level']}'; known: {', '.join(levels)}"
        found[levels.index(match["level"])] = int(match["most"])
    return tuple(sorted(found.items()))


def _at_least_one(_: object, __: Any, limits: Mapping[str, int]) -> None:
    if not limits:
        raise ValueError("there is no limit: name an attribute of the nodes, as in {rack: 2}")
    for level, most in limits.items():
        if most < 1:
            raise ValueError(f"the limit of {level} is {most}: use 1 or more")


@attrs.define(eq=False)
class RackSpread(Predicate):
    """Only while the rack, zone and other levels of the node have few tasks of the application."""

    name = "rack-spread"
    limits: Mapping[str, int] = attrs.field(validator=_at_least_one)
    """Largest number of tasks of a group by level; a level is an attribute of the nodes."""
    tag: str = "rack-spread"
    """Tag of applications with other limits."""
    group_tag: str = "spread-group"
    """Tag of requests whose tasks are counted apart from others of the application."""
    _levels: tuple[str, ...] = attrs.field(init=False)
    _default: Limits = attrs.field(init=False)
    _tasks: Counter[tuple[Group, int, str]] = attrs.field(init=False, factory=Counter)
    """Number of tasks by group, level and value of the level."""
    _places: dict[tuple[int, str], Counter[Place]] = attrs.field(init=False, factory=dict)
    """Number of nodes by place, for each level and value of the level."""

    def __attrs_post_init__(self) -> None:
        self._levels = tuple(self.limits)
        self._default = tuple(enumerate(self.limits.values()))

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if all levels of the node have room for a task of the group, else the reason."""
        limits = self._limits(ask)
        if isinstance(limits, str):
            return f"the limits cannot be read: {limits} (tag {self.tag})"
        group = self._group(ask)
        for level, most in limits:
            value = node.attributes.get(self._levels[level])
            if value is None:
                return f"the node has no {self._levels[level]}"
            if self._tasks[group, level, value] >= most:
                return f"at most {most} tasks per {self._levels[level]}"
        return None

    # What the answer depends on: the place of the node, and the tasks of the group.

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the group and its limits; None for applications without limits."""
        limits = self._limits(ask)
        return (*self._group(ask), limits) if limits else None

    def domain(self, node: Node) -> Place:
        """Return the values of the node: its rack, its zone, and so on."""
        return tuple(node.attributes.get(level) for level in self._levels)

    def subjects(self, task: Task) -> tuple[Group]:
        """Return the group."""
        return (self._group(task),)

    def wanted(self, ask: Ask) -> str | None:
        """Return the limits as the requirement."""
        limits = self._limits(ask)
        if isinstance(limits, str) or not limits:
            return None
        return f"fewer tasks than {', '.join(f'{most} per {self._levels[level]}' for level, most in limits)}"

    # The books: exact at every `check`, also while a gang is tried.

    def placed(self, task: Task, node: Node) -> None:
        """Count a task in all levels."""
        group = self._group(task)
        for level, value in enumerate(self.domain(node)):
            if value is not None:
                self._tasks[group, level, value] += 1

    def released(self, task: Task, node: Node) -> list[Place] | None:
        """Count a task no more; returns the places of a level that was full, such as the racks of a zone.

        Counts of zero are removed, so that the books do not grow with the number of applications.
        """
        group, limits = self._group(task), self._limits(task)
        most = {} if isinstance(limits, str) else dict(limits)
        others: list[Place] = []
        for level, value in enumerate(self.domain(node)):
            if value is None:
                continue
            key = group, level, value
            if self._tasks[key] >= most.get(level, self._tasks[key] + 1):
                others += self._places[level, value]
            self._tasks[key] -= 1
            if not self._tasks[key]:
                del self._tasks[key]
        return others or None

    def node_added(self, node: Node) -> None:
        """Count a node."""
        place = self.domain(node)
        for level, value in enumerate(place):
            if value is not None:
                self._places.setdefault((level, value), Counter())[place] += 1

    def node_removed(self, node: Node) -> None:
        """Count a node no more."""
        place = self.domain(node)
        for level, value in enumerate(place):
            if value is None:
                continue
            nodes = self._places[level, value]
            nodes[place] -= 1
            if not nodes[place]:
                del nodes[place]
                if not nodes:
                    del self._places[level, value]

    def _limits(self, task: Task) -> Limits | str:
        text = task.app.tags.get(self.tag)
        return read_limits(text, self._levels) if text else self._default

    def _group(self, task: Task) -> Group:
        return task.app.id, task.tags.get(self.group_tag, "")


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [RackSpread]
