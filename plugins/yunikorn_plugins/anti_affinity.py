"""Default predicate `anti-affinity`: no task near a task with a label that one of the two avoids.

    predicates:
      - name: anti-affinity
        attribute: rack

A task has the labels in the tag `yunikorn.apache.org/labels` of its request and its application, and avoids
those in the tag `yunikorn.apache.org/anti-affinity`: `web`, or `web, db`. A task is not placed on a node
where a task with an avoided label runs, or a task that avoids one of its own labels. With `attribute`, all
nodes with the same value count as one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable
from functools import lru_cache
from typing import NamedTuple

import attrs

from yunikorn.api import Ask, Node, Predicate, Task, hookimpl

_LABEL = re.compile(r"[^\s,]+\Z")
NONE: frozenset[str] = frozenset()


@lru_cache(maxsize=1024)
def read_labels(text: str) -> frozenset[str] | str:
    """Return the labels of a comma-separated list, or an error text."""
    labels = [part.strip() for part in text.split(",")] if text.strip() else []
    for label in labels:
        if not _LABEL.match(label):
            return f"'{label}' is not a label: use texts without spaces, separated by commas"
    return frozenset(labels)


class Both(NamedTuple):
    """Labels that a task has, and labels that it avoids."""

    labels: frozenset[str]
    avoided: frozenset[str]


@attrs.define(eq=False)
class AntiAffinity(Predicate):
    """No two tasks on one node, or in one rack, of which one avoids a label of the other."""

    name = "anti-affinity"
    attribute: str = ""
    """Attribute of the nodes that must differ; empty for the nodes themselves. A node without it is apart."""
    labels: str = "yunikorn.apache.org/labels"
    """Tag with the labels of a task; those of the request and of its application both count."""
    tag: str = "yunikorn.apache.org/anti-affinity"
    """Tag with the labels that a task avoids; those of the request and of its application both count."""
    _running: dict[Hashable, tuple[Counter[str], Counter[str]]] = attrs.field(init=False, factory=dict)
    """Number of tasks by label, and by avoided label, for each domain."""

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if no task near avoids the request's labels or has one that it avoids."""
        both = self._read(ask)
        if isinstance(both, str):
            return both
        running = self._running.get(self.domain(node))
        if running is None or both is None:
            return None
        where = f"in the {self.attribute}" if self.attribute else "on the node"
        for label in sorted(both.avoided):
            if running[0][label]:
                return f"a task with the label {label} runs {where}"
        for label in sorted(both.labels):
            if running[1][label]:
                return f"a task that avoids the label {label} runs {where}"
        return None

    # -- what the answer depends on -----------------------------------------------------------------

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the labels of the request and those that it avoids; None without any."""
        return self._read(ask)

    def domain(self, node: Node) -> Hashable:
        """Return the value of the attribute, or the node itself."""
        return node.attributes.get(self.attribute, ("node", node.id)) if self.attribute else node.id

    def subjects(self, task: Task) -> frozenset[str]:
        """Return all labels of a task, its own and those that it avoids."""
        both = self._read(task)
        return NONE if both is None or isinstance(both, str) else both.labels | both.avoided

    def wanted(self, ask: Ask) -> str | None:
        """Return the avoided labels as the requirement."""
        both = self._read(ask)
        if both is None or isinstance(both, str) or not both.avoided:
            return None
        return f"no task with the label {' or '.join(sorted(both.avoided))}"

    # -- books --------------------------------------------------------------------------------------

    def placed(self, task: Task, node: Node) -> None:
        """Count the labels of a task."""
        both = self._read(task)
        if both is None or isinstance(both, str):
            return
        labels, avoided = self._running.setdefault(self.domain(node), (Counter(), Counter()))
        labels.update(both.labels)
        avoided.update(both.avoided)

    def released(self, task: Task, node: Node) -> None:
        """Count the labels of a task no more."""
        both, domain = self._read(task), self.domain(node)
        if both is None or isinstance(both, str):
            return
        running = self._running[domain]
        for counts, gone in zip(running, both, strict=True):
            for label in gone:
                counts[label] -= 1
                if not counts[label]:
                    del counts[label]
        if not any(running):
            del self._running[domain]

    # -- helpers ------------------------------------------------------------------------------------

    def _read(self, task: Task) -> Both | str | None:
        """Return the labels of a task and those that it avoids; None without any, else an error text."""
        found = []
        for tag in (self.labels, self.tag):
            labels = NONE
            for text in (task.app.tags.get(tag), task.tags.get(tag)):
                more = read_labels(text) if text else NONE
                if isinstance(more, str):
                    return f"the labels cannot be read: {more} (tag {tag})"
                labels |= more
            found.append(labels)
        return Both(*found) if any(found) else None


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [AntiAffinity]
