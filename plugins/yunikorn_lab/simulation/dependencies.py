"""Dependencies between applications: predecessors that end before an application is submitted.

A predecessor has ended when its application is over, no matter how: finished, failed or rejected. The
application follows after its think time, and never before its own time of submission.

The key `after` of the applications of a scenario: names of predecessors, checked and resolved.

A name is the id of an application, or the id of an entry with a `count`, which stands for all of its
applications.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from yunikorn.config.yaml_reading import Spot, YamlTable
from yunikorn.text import number_of, suggest
from yunikorn_lab.simulation.workload import WorkloadApplication

SHOWN = 3
"""Maximum number of examples in a report."""


@attrs.frozen
class DependencyReport:
    """Applications with predecessors; `dependents` is the sum of submitted, waiting and not yet due ones."""

    dependents: int
    submitted: int
    after_failure: int
    """Applications submitted although a predecessor failed or was rejected."""
    waiting: int
    """Applications whose own time of submission is over, but whose predecessors have not all ended."""
    examples: list[str]
    """The first of the waiting applications, with one of their predecessors each."""

    def remark(self) -> str:
        """Return a remark on the waiting applications, or an empty string if there are none."""
        if not self.waiting:
            return ""
        more = ", ..." if self.waiting > len(self.examples) else ""
        return (
            f"{number_of(self.waiting, 'application')} "
            f"{'was' if self.waiting == 1 else 'were'} not submitted, because a predecessor had not ended: "
            f"{', '.join(self.examples)}{more}"
        )

    def remark_on_failures(self) -> str:
        """Return a remark on predecessors that failed or were rejected, or an empty string."""
        if not self.after_failure:
            return ""
        applications = number_of(self.after_failure, "application")
        return f"{applications} followed a predecessor that failed or was rejected"


@attrs.define(eq=False)
class _Held:
    """An application whose predecessors have not all ended, or whose think time is not over."""

    application: WorkloadApplication
    place: int
    """Number in the order of the workload; decides between applications submitted at one instant."""
    missing: set[str]
    ended: int = 0
    """End of the last predecessor that has ended (ns)."""
    after_failure: bool = False

    @property
    def ready(self) -> int:
        return max(self.application.submit, self.ended + self.application.think)


class Dependencies:
    """Applications that are held until their predecessors have ended.

    Only the ends of applications that others still wait for are kept.
    """

    def __init__(self, dependents: Mapping[str, int]) -> None:
        """Prepare for a workload; `dependents` is the number of direct dependents per predecessor."""
        self._to_come = dict(dependents)
        self._ended: dict[str, tuple[int, bool]] = {}
        self._waiting: dict[str, list[_Held]] = {}
        self._ready: list[tuple[int, int, _Held]] = []
        self._held: dict[str, _Held] = {}
        self._arrived = self._submitted = self._after_failure = 0

    def add(self, application: WorkloadApplication) -> None:
        """Add an application with predecessors whose own time of submission has come."""
        held = _Held(application, self._arrived, set())
        self._arrived += 1
        for name in dict.fromkeys(application.after):
            self._to_come[name] = self._to_come.get(name, 1) - 1
            end = self._ended.get(name)
            if end is None:
                held.missing.add(name)
                self._waiting.setdefault(name, []).append(held)
            else:
                self._note(held, *end)
                if not self._to_come[name]:
                    del self._ended[name]
        self._held[application.id] = held
        self._see_ready(held)

    def ended(self, name: str, moment: int, has_finished: bool) -> None:
        """Note the end of an application; `has_finished` is False if it failed or was rejected."""
        for held in self._waiting.pop(name, ()):
            held.missing.discard(name)
            self._note(held, moment, has_finished)
            self._see_ready(held)
        if self._to_come.get(name):
            self._ended[name] = moment, has_finished

    def _note(self, held: _Held, moment: int, has_finished: bool) -> None:
        held.ended = max(held.ended, moment)
        held.after_failure = held.after_failure or not has_finished

    def _see_ready(self, held: _Held) -> None:
        if not held.missing:
            heapq.heappush(self._ready, (held.ready, held.place, held))

    def next(self) -> int | None:
        """Return the time of the next submission (ns), or None."""
        return self._ready[0][0] if self._ready else None

    def take(self, moment: int) -> Iterator[WorkloadApplication]:
        """Yield the applications to submit at `moment`, with their actual time of submission."""
        while self._ready and self._ready[0][0] <= moment:
            ready, _, held = heapq.heappop(self._ready)
            del self._held[held.application.id]
            self._submitted += 1
            self._after_failure += held.after_failure
            yield attrs.evolve(held.application, submit=ready)

    def missing(self, name: str) -> Collection[str] | None:
        """Return the predecessors that the application waits for; None if it is not held."""
        held = self._held.get(name)
        return None if held is None else [one for one in held.application.after if one in held.missing]

    def report(self, dependents: int) -> DependencyReport | None:
        """Return the figures at the end of a workload with `dependents`, or None without dependents."""
        if not dependents:
            return None
        waiting = [held for held in self._held.values() if held.missing]
        examples = []
        for held in waiting[:SHOWN]:
            first, *others = self.missing(held.application.id) or ()
            more = f" and {len(others)} more" if others else ""
            examples.append(f"{held.application.id} after {first}{more}")
        return DependencyReport(dependents, self._submitted, self._after_failure, len(waiting), examples)


def find_cycles(after: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the groups of applications that wait for each other, in the order of `after`.

    The groups are the strongly connected components of more than one application (by Tarjan's algorithm), and
    the applications that are their own predecessor.
    """
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for root in after:
        if root in order:
            continue
        work = [(root, iter(after.get(root, ())))]
        while work:
            name, others = work[-1]
            if name not in order:
                order[name] = low[name] = len(order)
                stack.append(name)
                on_stack.add(name)
            below = _next_step(name, others, order, low, on_stack)
            if below is not None:
                work.append((below, iter(after.get(below, ()))))
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[name])
            if low[name] == order[name]:
                group = _pop_until(name, stack, on_stack)
                if len(group) > 1 or name in after.get(name, ()):
                    found.append(group)
    places = {name: place for place, name in enumerate(after)}
    return sorted((sorted(group, key=places.__getitem__) for group in found), key=lambda g: places[g[0]])


def _next_step(
    name: str, others: Iterator[str], order: Mapping[str, int], low: dict[str, int], on_stack: set[str]
) -> str | None:
    """Return the next predecessor that has not been visited, or None after the last one."""
    for other in others:
        if other not in order:
            return other
        if other in on_stack:
            low[name] = min(low[name], order[other])
    return None


def _pop_until(name: str, stack: list[str], on_stack: set[str]) -> list[str]:
    group: list[str] = []
    while not group or group[-1] != name:
        group.append(stack.pop())
        on_stack.discard(group[-1])
    return group


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
