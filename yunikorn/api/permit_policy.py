"""Base class of plugins that decide whether a placement is announced to the resource manager."""

from __future__ import annotations

from typing import ClassVar

from yunikorn.api.base import Plugin, Wait
from yunikorn.api.views import Allocation, Node, Task


class PermitPolicy(Plugin):
    """Base class of policies that hold a placement until a condition is met.

    A held placement is booked: on its node, in its queues, for its user and in the books of plugins. The
    resource manager is not informed of it before all policies have permitted it.
    """

    blocking: ClassVar[bool] = False
    """True if `permit` may wait, for example for a network: a service then calls it in a worker thread. The
    argument is a copy without allocations of others, also where there are no workers. Such a policy keeps no
    books (`docs/decisions/archive/0184`)."""
    calls_at_once: ClassVar[int] = 1
    """Maximum number of worker threads that call `permit` at the same time."""
    counts_foreign: ClassVar[bool] = False
    """True if `placed` and `released` are called for foreign tasks as well, which are not scheduled here."""

    def permit(self, allocation: Allocation) -> str | Wait | None:
        """Return None to permit a placement, the reason for taking it back, or `Wait` to hold it for now.

        `allocation` is booked already. A permitted placement is not asked about again. After a refusal the
        request is placed again when something has changed. Called for the scheduler's own placements only:
        not for tasks that the resource manager has placed, nor for a real task that replaces a placeholder.
        """
        raise TypeError(f"{type(self).__name__} has no permit(allocation)")

    @property
    def timeout(self) -> float:
        """Seconds after which a placement is taken back that the policy still holds.

        Read when a configuration is loaded. A policy with a constant value writes `timeout = 60.0`.
        """
        return 300.0

    def group(self, allocation: Allocation) -> str | None:
        """Return the name of the group in which a permission may let others go, or None.

        When the policy permits a placement, the held placements of the same group are asked about at once: in
        order of placement, up to the first that has to wait. When one is held or ends, the others are asked
        about as soon as nothing more can be placed. Called once for a placement that is held, and again after
        a reload: the group stays the same until then.
        """
        return None

    # -- books --------------------------------------------------------------------------------------

    def placed(self, task: Task, node: Node) -> None:
        """Add a task to the books; implement together with `released`.

        Called before `permit` and, as for a predicate, for everything that is placed, tried or running
        already, whether or not it was held.
        """

    def released(self, task: Task, node: Node) -> None:
        """Remove a task from the books; undoes `placed` with the same task and node."""

    def node_added(self, node: Node) -> None:
        """Add a node, which runs no task yet; only called for classes that keep books."""

    def node_removed(self, node: Node) -> None:
        """Remove a node, which runs no task any more; only called for classes that keep books."""
