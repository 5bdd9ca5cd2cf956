"""Default predicate `spread`: a limited number of tasks of an application per value of a node attribute.

    predicates:
      - name: spread
        attribute: rack
        max: 2

At most two tasks of an application then run per rack. With `skew: 1` no rack has more than one task more than
the rack with the fewest. A request or its application replaces both numbers by the tag
`yunikorn.apache.org/spread`: `max=3`, `skew=1`, `max=3, skew=1`, or `off`. Requests without a number are not
limited, and their tasks do not count.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import Literal, NamedTuple

import attrs

from yunikorn.api import Ask, Node, Predicate, Task, hookimpl

OFF = "off"
_NUMBER = re.compile(r"(max|skew)\s*=\s*([1-9][0-9]{0,8})\Z")


class SpreadLimits(NamedTuple):
    """Limits of a request; 0 is none."""

    max: int
    skew: int


NONE = SpreadLimits(0, 0)


@lru_cache(maxsize=1024)
def read_limits(text: str) -> SpreadLimits | str:
    """Return the limits from `max=N, skew=N` or `off`, or an error text."""
    if text.strip().lower() == OFF:
        return NONE
    found = {}
    for part in (part.strip() for part in text.split(",")):
        match = _NUMBER.match(part)
        if match is None:
            return f"'{part}' is not max=N, skew=N with N from 1, or off"
        found[match[1]] = int(match[2])
    return SpreadLimits(found.get("max", 0), found.get("skew", 0))


Group = tuple[str, str]
"""Application, and task group if tasks count per task group."""


@attrs.define(eq=False)
class Spread(Predicate):
    """At most some tasks of an application per rack, zone, or any other attribute of nodes."""

    name = "spread"
    attribute: str
    """Attribute of the nodes; limited requests are not placed on nodes without it."""
    max: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Largest number of tasks per value of the attribute; 0 is no limit."""
    skew: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Largest difference to the value with the fewest tasks; 0 is no limit."""
    per: Literal["application", "task-group"] = "application"
    """Tasks that are counted together."""
    tag: str = "yunikorn.apache.org/spread"
    """Tag with other limits; that of the request goes before that of its application."""
    _default: SpreadLimits = attrs.field(init=False)
    _counts: dict[Group, dict[str, int]] = attrs.field(init=False, factory=dict)
    """Number of tasks by group and value."""
    _nodes: dict[str, int] = attrs.field(init=False, factory=dict)
    """Number of nodes by value."""

    def __attrs_post_init__(self) -> None:
        self._default = SpreadLimits(self.max, self.skew) if self.max or self.skew else NONE

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if the node's value has room for a task of the group, else the reason."""
        limits = self._limits(ask)
        if isinstance(limits, str):
            return f"the spread cannot be read: {limits} (tag {self.tag})"
        if limits is NONE:
            return None
        value = node.attributes.get(self.attribute)
        if value is None:
            return f"the node has no {self.attribute}"
        counts = self._counts.get(self._group(ask), {})
        here = counts.get(value, 0)
        if limits.max and here >= limits.max:
            return f"at most {limits.max} tasks of an {self._whole} per {self.attribute}"
        if limits.skew and here + 1 - self._least(counts) > limits.skew:
            return f"other values of {self.attribute} have fewer tasks of the {self._whole}"
        return None

    # -- what the answer depends on -----------------------------------------------------------------

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the group and its limits; None for requests without limits."""
        limits = self._limits(ask)
        if isinstance(limits, str):
            return limits
        return (*self._group(ask), *limits) if limits is not NONE else None

    def domain(self, node: Node) -> Hashable:
        """Return the value of the attribute."""
        return node.attributes.get(self.attribute)

    def subjects(self, task: Task) -> tuple[Hashable, ...]:
        """Return the group."""
        return (self._group(task),)

    def wanted(self, ask: Ask) -> str | None:
        """Return the limits as the requirement."""
        limits = self._limits(ask)
        if isinstance(limits, str) or limits is NONE:
            return None
        parts = [f"{name}={limit}" for name, limit in limits._asdict().items() if limit]
        return f"room by the spread over {self.attribute} ({', '.join(parts)})"

    # -- books --------------------------------------------------------------------------------------

    def placed(self, task: Task, node: Node) -> Iterable[Hashable] | None:
        """Count a task; returns all values if the smallest number of tasks has grown."""
        value = self._counted(task, node)
        if value is None:
            return None
        counts = self._counts.setdefault(self._group(task), {})
        before = self._least(counts)
        counts[value] = counts.get(value, 0) + 1
        return list(self._nodes) if self._least(counts) > before else None

    def released(self, task: Task, node: Node) -> None:
        """Count a task no more."""
        value = self._counted(task, node)
        if value is None:
            return
        group = self._group(task)
        counts = self._counts[group]
        counts[value] -= 1
        if not counts[value]:
            del counts[value]
            if not counts:
                del self._counts[group]

    def node_added(self, node: Node) -> None:
        """Count a node."""
        value = node.attributes.get(self.attribute)
        if value is not None:
            self._nodes[value] = self._nodes.get(value, 0) + 1

    def node_removed(self, node: Node) -> Iterable[Hashable] | None:
        """Count a node no more; returns all values if its value is gone."""
        value = node.attributes.get(self.attribute)
        if value is None:
            return None
        self._nodes[value] -= 1
        if self._nodes[value]:
            return None
        del self._nodes[value]
        return list(self._nodes)

    # -- helpers ------------------------------------------------------------------------------------

    @property
    def _whole(self) -> str:
        return self.per.replace("-", " ")

    def _limits(self, task: Task) -> SpreadLimits | str:
        text = task.tags.get(self.tag) or task.app.tags.get(self.tag)
        return read_limits(text) if text else self._default

    def _group(self, task: Task) -> Group:
        return task.app.id, task.task_group if self.per == "task-group" else ""

    def _counted(self, task: Task, node: Node) -> str | None:
        """Return the value under which a task counts; None if it does not."""
        limits = self._limits(task)
        return None if limits is NONE or isinstance(limits, str) else node.attributes.get(self.attribute)

    def _least(self, counts: dict[str, int]) -> int:
        """Return the smallest number of tasks over all values."""
        return min(counts.values()) if counts and len(counts) >= len(self._nodes) else 0


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [Spread]
