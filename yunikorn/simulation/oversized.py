"""Detection of tasks that fit on no node of the cluster, before the simulation starts."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from yunikorn.config.quantities import in_words
from yunikorn.resources import Resource, fits
from yunikorn.simulation.workload import Workload


@attrs.frozen
class OversizedTasks:
    """Number of tasks, and of their applications, that are larger than every node of their partition."""

    tasks: int = 0
    applications: int = 0
    examples: tuple[str, ...] = ()
    """Descriptions of the first few sizes, one line each."""

    def remark(self) -> str:
        """Return a remark for the user, or an empty string if all tasks fit."""
        if not self.tasks:
            return ""
        shown = "; ".join(self.examples)
        return (
            f"{self.tasks} tasks of {self.applications} applications fit on no node and will never be "
            f"allocated: {shown}"
        )


def find_oversized(workload: Workload, examples: int = 3) -> OversizedTasks:
    """Compare every task with every node size that occurs in its partition during the simulation.

    The comparison considers resource amounts only, not predicates or queue limits.
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
                    lines.append(f"{application.id} asks for {in_words(group.resources)}")
            lost += 0 if fitting else group.count
        tasks += lost
        applications += bool(lost)
    return OversizedTasks(tasks, applications, tuple(lines))


def partition_name(partition: str) -> str:
    """Return the partition's name; the empty name stands for `default`."""
    return partition or "default"


def _fits_any(sizes: set[Resource] | tuple[()], wanted: Mapping[str, int]) -> bool:
    return any(fits(size, wanted) for size in sizes)
