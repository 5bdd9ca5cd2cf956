"""Base class of policies that decide who reserves a node, how many do, and for how long."""

from __future__ import annotations

from yunikorn.api.base import Plugin
from yunikorn.api.views import Application, Ask, Node, Queue


class ReservationPolicy(Plugin):
    """Base class of policies that decide about reservations in a partition.

    A request that no node has room for may reserve a node, which is then hidden from other requests. The
    core keeps its own rules: there is one reservation per ask class, a reserved node with room is given to
    the first request in order, and a request that requires a node, or whose victims make room on a node,
    keeps that node whatever the policy says.
    """

    @property
    def unrestricted(self) -> bool:
        """True if every request may reserve, after the delay of the partition, without any bound.

        The other members are then not called. Read once, when a configuration is loaded.
        """
        return False

    @property
    def pause(self) -> float:
        """Seconds until requests of an ask class may reserve again after their reservation was given up.

        At least 0.1. Read once, when a configuration is loaded; a policy with a constant value writes
        `pause = 10.0`.
        """
        return 60.0

    def reserves_after(self, ask: Ask, delay: float | None) -> float | None:
        """Return the age in seconds from which `ask` may reserve a node, or None if it must not.

        `delay` is the delay of the partition (`periods.reservation`), None if that is `never`. The age counts
        from `ask.created`; a negative result is the same as 0. The answer is asked for again after a change
        in the cluster, and at that age.
        """
        raise TypeError(f"{type(self).__name__} has no reserves_after(ask, delay)")

    def most_in(self, queue: Queue) -> int | None:
        """Return how many requests in `queue` and below may have a reservation; None for no bound.

        The core asks for each queue from the request's up to root, which stands for the partition.
        """
        return None

    def most_of(self, app: Application) -> int | None:
        """Return how many requests of `app` may have a reservation at the same time; None for no bound."""
        return None

    def lasts(self, ask: Ask) -> float | None:
        """Return the seconds, more than 0, after which the reservation is given up; None for no end.

        The time counts from the reservation of the node, also if the request inherited the reservation.
        """
        return None

    def reason(self, ask: Ask) -> str | None:
        """Return why `ask`, for which `reserves_after` returned None, waits; None for a general text.

        Shown in explanations only. Must not change what the policy decides.
        """
        return None

    def rank_node(self, ask: Ask, node: Node) -> float:
        """Return a number; of all nodes that could run `ask` if they were free, the lowest is reserved.

        Ties go by the order of nodes. By default the core reserves the node with the best fit.
        """
        raise TypeError(f"{type(self).__name__} has no rank_node(ask, node)")
