"""Tasks that no node can ever take, found before the simulation starts."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from yunikorn.config.quantities import in_words
from yunikorn.resources import Resource, fits
from yunikorn.simulation.workload import Workload


@attrs.frozen
class OversizedTasks:
    """How many tasks, of how many applications, are larger than every node of their partition."""

    tasks: int = 0
    applications: int = 0
    examples: tuple[str, ...] = ()
    """One line for each of the first few sizes, in words."""

    def remark(self) -> str:
        """What to tell the user, empty when everything fits."""
        if not self.tasks:
            return ""
        shown = "; ".join(self.examples)
        return (
            f"{self.tasks} tasks of {self.applications} applications fit on no node and will wait for "
            f"ever: {shown}"
        )


def find_oversized(workload: Workload, examples: int = 3) -> OversizedTasks:
    """Compare every task with every size of node that its partition ever has.

    Only the amounts count here; what predicates and queues refuse is the core's to say.
    """
    sizes: dict[str, set[Resource]] = {}
    for node in workload.all_nodes():
        sizes.setdefault(partition_name(node.partition), set()).add(node.resources)
    known: dict[tuple[str, Resource], bool] = {}
    lines: list[str] = []
    tasks = applications = 0
    for application in workload.applications:
        partition = partition_name(application.partition)
        lost = 0
        for group in application.tasks:
            shape = (partition, group.resources)
            fitting = known.get(shape)
            if fitting is None:
                fitting = known[shape] = _fits_any(sizes.get(partition, ()), group.resources)
                if not fitting and len(lines) < examples:
                    lines.append(f"{application.id} wants {in_words(group.resources)}")
            lost += 0 if fitting else group.count
        tasks += lost
        applications += bool(lost)
    return OversizedTasks(tasks, applications, tuple(lines))


def partition_name(partition: str) -> str:
    """The partition's name; the empty one means `default`."""
    return partition or "default"


def _fits_any(sizes: set[Resource] | tuple[()], wanted: Mapping[str, int]) -> bool:
    return any(fits(size, wanted) for size in sizes)
