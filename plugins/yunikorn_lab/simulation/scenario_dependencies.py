"""The key `after` of the applications of a scenario: names of predecessors, checked and resolved.

A name is the id of an application, or the id of an entry with a `count`, which stands for all of its
applications.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from yunikorn.config.yaml_reading import Spot, YamlTable
from yunikorn.text import suggest
from yunikorn_lab.simulation.dependencies import find_cycles
from yunikorn_lab.simulation.workload import WorkloadApplication

HINTS = 20
"""Maximum number of unknown names for which a similar name is searched."""

CYCLE_SHOWN = 6
"""Maximum number of applications of a cycle in a message."""


class ScenarioDependencies:
    """The entries of `applications`, and the predecessors that entries name."""

    def __init__(self, is_complete: bool = True) -> None:
        """Create an empty record; names are not checked unless it is to be complete."""
        self._is_complete = is_complete
        self._entries: list[tuple[YamlTable, list[str]]] = []
        self._groups: dict[str, list[str]] = {}
        self._known: set[str] = set()
        self._hints = HINTS

    def add(self, table: YamlTable, ids: list[str]) -> None:
        """Add an entry of `applications`, and the ids of its applications."""
        self._entries.append((table, ids))
        self._known.update(ids)
        if len(ids) > 1:
            self._groups[table.text("id")] = ids

    def resolve(self, applications: Mapping[str, WorkloadApplication]) -> dict[str, WorkloadApplication]:
        """Return the applications with the ids of their predecessors.

        Unknown names, applications that wait for each other, and think times without predecessors are
        reported as problems.
        """
        found = dict(applications)
        spots: dict[str, dict[str, Spot]] = {}
        for table, ids in self._entries:
            before = self.predecessors(table)
            for name in ids if before else ():
                found[name] = attrs.evolve(found[name], after=tuple(before))
                spots[name] = before
        for cycle in find_cycles({name: list(before) for name, before in spots.items()}):
            self._report(cycle, spots)
        return found

    def _report(self, cycle: Sequence[str], spots: Mapping[str, Mapping[str, Spot]]) -> None:
        members = set(cycle)
        spot = next(spot for name, spot in spots[cycle[0]].items() if name in members)
        findings = self._entries[0][0].findings
        if len(cycle) == 1:
            findings.problem(spot, f"the application '{cycle[0]}' cannot wait for its own end")
            return
        shown = ", ".join(cycle[:CYCLE_SHOWN])
        more = f" and {len(cycle) - CYCLE_SHOWN} more" if len(cycle) > CYCLE_SHOWN else ""
        findings.problem(spot, f"the applications {shown}{more} wait for each other: remove one of the names")

    def predecessors(self, table: YamlTable) -> dict[str, Spot]:
        """Return the ids of the predecessors of an entry, with the positions of their names."""
        if "thinktime" in table and "after" not in table:
            table.problem("thinktime", "applies only after predecessors: add after, with their ids")
        if not self._is_complete:
            return {}
        wrong = len(table.findings.problems)
        texts = table.texts("after")
        # The keys of the entry have been read before, so that a value that is no list is already reported.
        del table.findings.problems[wrong:]
        before: dict[str, Spot] = {}
        for name, spot in texts:
            if name not in self._known and name not in self._groups:
                table.findings.problem(spot, f"no application '{name}' in applications{self._hint(name)}")
                continue
            for each in [name] if name in self._known else self._groups[name]:
                before.setdefault(each, spot)
        return before

    def _hint(self, name: str) -> str:
        # Each hint compares the name with all known names.
        self._hints -= 1
        return suggest(name, [*self._known, *self._groups]) if self._hints >= 0 else ""
