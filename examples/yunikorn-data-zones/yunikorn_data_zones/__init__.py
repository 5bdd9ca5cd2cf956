"""A predicate and a permit policy for YuniKorn: tasks run where their data can be copied to.

partitions:
  - name: default
    predicates:
      - name: data-zones
        catalogue: /etc/yunikorn/data.json
    permits:
      - name: copy-slots
        catalogue: /etc/yunikorn/data.json
        slots: 2

The catalogue names the zones from which each dataset can be copied: `{"genome": ["a", "b"]}`. A task names
its datasets in the tag `data`. The predicate looks them up for each search, and accepts nodes in zones that
have all of them; the permit policy lets only a few tasks copy a dataset at once. Both need the datasets and
zones of the task, which are computed once per decision, in the state that the plugins of a package share.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import attrs

from yunikorn.api import Allocation, Ask, Context, Node, PermitPolicy, Predicate, Task, Wait, hookimpl

Catalogue = Mapping[str, frozenset[str]]
"""Zones by dataset."""


def read_catalogue(path: Path) -> Catalogue:
    """Return the zones by dataset. Raises `OSError` or `ValueError`."""
    return {name: frozenset(zones) for name, zones in json.loads(path.read_text("utf-8")).items()}


@attrs.frozen
class Wanted:
    """Datasets of a task, and the zones that have all of them."""

    datasets: tuple[str, ...]
    zones: frozenset[str] | None
    """None if the task needs no data."""


def wanted(task: Task, catalogue: Catalogue) -> Wanted:
    """Look up what a task needs."""
    datasets = tuple(
        sorted({name for part in task.tags.get("data", "").split(",") if (name := part.strip())})
    )
    if not datasets:
        return Wanted((), None)
    return Wanted(datasets, frozenset.intersection(*(catalogue.get(one, frozenset()) for one in datasets)))


@attrs.define(eq=False)
class _DataPlugin:
    """Part that both plugins have in common."""

    catalogue: Path
    """File with the zones of each dataset."""
    _context: Context | None = attrs.field(init=False, default=None)
    _zones: Catalogue = attrs.field(init=False, factory=dict)

    def opened(self, context: Context) -> None:
        """Read the catalogue."""
        self._context, self._zones = context, read_catalogue(self.catalogue)

    reloaded = opened

    def _wanted(self, task: Task) -> Wanted:
        """Return what a task needs, as the other plugin may have computed it in this decision."""
        assert self._context is not None
        state = self._context.shared(task)
        found: Wanted | None = state.get("wanted")
        if found is None:
            found = state["wanted"] = wanted(task, self._zones)
        return found


@attrs.define(eq=False)
class DataZones(_DataPlugin, Predicate):
    """Only nodes in a zone that has all datasets of the task."""

    name = "data-zones"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if the zone of the node has the datasets, else a reason."""
        needed = self._wanted(ask)
        if needed.zones is None or node.attributes.get("zone") in needed.zones:
            return None
        return f"its zone has not all of {', '.join(needed.datasets)}"


@attrs.define(eq=False)
class CopySlots(_DataPlugin, PermitPolicy):
    """Only a number of tasks at once copies a dataset; the others are held."""

    name = "copy-slots"
    timeout = 3600.0
    slots: int = 4
    """Number of running tasks per dataset."""
    _running: Counter[str] = attrs.field(init=False, factory=Counter)

    def permit(self, allocation: Allocation) -> Wait | None:
        """Hold a placement while more tasks than the slots use one of its datasets."""
        for one in self._wanted(allocation).datasets:
            if self._running[one] > self.slots:
                return Wait(60, f"{self.slots} tasks copy {one} already")
        return None

    def group(self, allocation: Allocation) -> str | None:
        """Return the datasets: when a task ends, others with the same may go."""
        return ",".join(self._wanted(allocation).datasets) or None

    def placed(self, task: Task, node: Node) -> None:
        """Count a task of its datasets."""
        self._running.update(wanted(task, self._zones).datasets)

    def released(self, task: Task, node: Node) -> None:
        """Count a task less, and forget datasets without any."""
        for one in wanted(task, self._zones).datasets:
            self._running[one] -= 1
            if not self._running[one]:
                del self._running[one]


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [DataZones]


@hookimpl
def yunikorn_permit_policies() -> list[type[PermitPolicy]]:
    """Return the permit policy."""
    return [CopySlots]
