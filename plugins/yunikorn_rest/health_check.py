"""Health check: comparison of the accounting of the core with itself, in slices between decisions.

The checks, their names and their texts are those of YuniKorn 1.9. Each object is compared with its own parts
at one moment, so decisions in between cause no false alarm.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING

import attrs

from yunikorn.clock import SECOND
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import has_negative, sum_of
from yunikorn_rest import shapes
from yunikorn_rest.application_reader import present

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.application import Application
    from yunikorn.model.node import Node

STEP = 500
"""Number of allocations that are checked without a pause, apart from those of one node."""
ATTEMPTS = 5
"""Number of attempts to sum up the nodes of a partition while nodes are added and removed."""
VALID = 30 * SECOND
"""Time for which a result is used again (ns)."""


@attrs.define
class CheckFindings:
    """Findings of the checks, for all partitions together."""

    errors: int = 0
    failed_nodes: int = 0
    negative_partitions: list[str] = attrs.Factory(list)
    negative_nodes: list[str] = attrs.Factory(list)
    inconsistent_partitions: list[str] = attrs.Factory(list)
    inconsistent_nodes: list[str] = attrs.Factory(list)
    reservation_ratios: list[str] = attrs.Factory(list)
    orphans_on_nodes: list[str] = attrs.Factory(list)
    orphans_of_applications: list[str] = attrs.Factory(list)

    def health(self) -> shapes.Health:
        """Return the result in the order of YuniKorn."""
        checks = (
            _check(
                "Scheduling errors",
                "Check for scheduling error entries in metrics",
                f"There were {self.errors} scheduling errors logged in the metrics",
                not self.errors,
            ),
            _check(
                "Failed nodes",
                "Check for failed nodes entries in metrics",
                f"There were {self.failed_nodes} failed nodes logged in the metrics",
                not self.failed_nodes,
            ),
            _listed(
                "Negative resources",
                "Check for negative resources in the partitions",
                "Partitions with negative resources",
                self.negative_partitions,
            ),
            _listed(
                "Negative resources",
                "Check for negative resources in the nodes",
                "Nodes with negative resources",
                self.negative_nodes,
            ),
            _listed(
                "Consistency of data",
                "Check if total partition resource == sum of the node resources from the partition",
                "Partitions with inconsistent data",
                self.inconsistent_partitions,
            ),
            _listed(
                "Consistency of data",
                "Check if node total resource = allocated resource + occupied resource + available resource",
                "Nodes with inconsistent data",
                self.inconsistent_nodes,
            ),
            _check(
                "Reservation check",
                "Check the reservation nr compared to the number of nodes",
                f"Reservation/node nr ratio: [{' '.join(self.reservation_ratios)}]",
                True,
            ),
            _listed(
                "Orphan allocation on node check",
                "Check if there are orphan allocations on the nodes",
                "Orphan allocations",
                self.orphans_on_nodes,
            ),
            _listed(
                "Orphan allocation on app check",
                "Check if there are orphan allocations on the applications",
                "OrphanAllocations",
                self.orphans_of_applications,
            ),
        )
        return shapes.Health(healthy=all(check.succeeded for check in checks), health_checks=checks)


def _check(name: str, description: str, message: str, succeeded: bool) -> shapes.HealthCheck:
    return shapes.HealthCheck(
        name=name, succeeded=succeeded, description=description, diagnosis_message=message
    )


def _listed(name: str, description: str, prefix: str, found: Iterable[str]) -> shapes.HealthCheck:
    names = " ".join(json.dumps(one, ensure_ascii=False) for one in found)
    return _check(name, description, f"{prefix}: [{names}]", not names)


def check(scheduler: Scheduler) -> Generator[None, None, shapes.Health]:
    """Check all partitions."""
    found = CheckFindings(errors=sum(failure.count for failure in scheduler.failures))
    for _, at in scheduler.all_partitions():
        partition = at.partition
        found.failed_nodes += partition.rejected_nodes
        yield from _check_partition(partition, found)
        yield from _check_nodes(partition, found)
        yield from _check_applications(partition, found)
    return found.health()


def _check_partition(partition: Partition, found: CheckFindings) -> Generator[None, None, None]:
    if has_negative(partition.cluster.total) or has_negative(partition.used):
        found.negative_partitions.append(partition.name)
    nodes = list(partition.nodes.values())
    reserved = sum(1 for node in nodes if node.reservations)
    found.reservation_ratios.append(f"{reserved / len(nodes):.6f}" if nodes else "NaN")
    for _ in range(ATTEMPTS):
        # Nodes that are added, removed or resized during the sum would make it wrong.
        version = partition.cluster.version
        sums = []
        nodes = list(partition.nodes.values())
        for start in range(0, len(nodes), STEP):
            sums.append(sum_of(node.capacity for node in nodes[start : start + STEP]))
            yield
        if partition.cluster.version == version:
            if present(sum_of(sums)) != present(partition.cluster.total):
                found.inconsistent_partitions.append(partition.name)
            return


def _check_nodes(partition: Partition, found: CheckFindings) -> Generator[None, None, None]:
    for node in list(partition.nodes.values()):
        if partition.nodes.get(node.id) is not node:
            continue
        if any(map(has_negative, (node.capacity, node.occupied, node.available, node.allocated))):
            found.negative_nodes.append(node.id)
        if present(sum_of(one.resource for one in node.allocations.values())) != present(node.allocated):
            found.inconsistent_nodes.append(node.id)
        found.orphans_on_nodes += _orphans_on(node, partition)
        yield


def _orphans_on(node: Node, partition: Partition) -> list[str]:
    return [
        uuid
        for uuid, one in node.allocations.items()
        # An allocation that replaces a placeholder joins its application when the placeholder has ended.
        if one.replaces is None
        and (
            partition.applications.get(one.app.id) is not one.app or one.app.allocations.get(uuid) is not one
        )
    ]


def _check_applications(partition: Partition, found: CheckFindings) -> Generator[None, None, None]:
    for app in list(partition.applications.values()):
        yield from _check_application(app, partition, found)
        yield


def _check_application(
    app: Application, partition: Partition, found: CheckFindings
) -> Generator[None, None, None]:
    # Not the items: a tuple for each would keep the garbage collector busy.
    for index, uuid in enumerate(list(app.allocations)):
        one = app.allocations.get(uuid)
        if one is not None:
            node = partition.nodes.get(one.node.id)
            if node is not one.node or node.allocations.get(uuid) is not one:
                found.orphans_of_applications.append(uuid)
        if index % STEP == STEP - 1:
            yield


class HealthBoard:
    """Latest result of the health check, which is repeated when it is asked for and out of date."""

    def __init__(self, stopwatch: Callable[[], int]) -> None:
        self._stopwatch = stopwatch
        self._checked = 0
        self._latest: shapes.Health | None = None

    @property
    def latest(self) -> shapes.Health | None:
        """The latest result if it is not out of date."""
        return None if self._stopwatch() - self._checked >= VALID else self._latest

    def post(self, health: shapes.Health) -> shapes.Health:
        """Keep a result, and return it."""
        self._latest, self._checked = health, self._stopwatch()
        return health
