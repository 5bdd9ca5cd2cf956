"""Base class of policies that choose the victims of preemption, and the cause of a preemption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

from yunikorn.api.base import Plugin
from yunikorn.api.views import Allocation, Node, Queue
from yunikorn.resources import NOTHING


@attrs.frozen(slots=True)
class PreemptionCause:
    """Purpose of a search for victims."""

    kind: Literal["guarantee", "priority", "required-node", "quota", "shrunk-node"]
    """Cause of the preemption.

    A pending request of `queue` is covered by a guarantee (`guarantee`), or has a higher priority than its
    victims (`priority`). A request can run on no node but `node` (`required-node`). The usage of `queue` is
    above its lowered quota (`quota`). The usage of `node` is above its capacity (`shrunk-node`).
    """
    queue: Queue | None = None
    """Queue of the requests, or queue above its quota; None for a shrunk node."""
    priority: int | None = None
    """Priority of the requests; None where no request is the cause."""
    node: Node | None = None
    """Required or shrunk node; None where victims may be on any node."""
    amount: Mapping[str, int] = NOTHING
    """Amounts to free, by resource type.

    Empty for `guarantee` and `priority`, because one order of victims serves requests of all sizes.
    """


@attrs.frozen(slots=True)
class VictimUnit:
    """Allocations that end together so that a gang has room in a domain."""

    victims: Sequence[Allocation]
    """All that ends, also outside the domain."""
    kind: Literal["single", "step", "gang"] = "single"
    """A single allocation, several that a gang has beyond its size, or a whole gang."""
    outside: int = 0
    """Number of victims outside the domain."""


class PreemptionPolicy(Plugin):
    """Base class of policies that choose the victims of preemption in a partition.

    The core keeps its own rules: no queue falls below its guarantee, a preemption frees enough or nothing,
    each victim is needed, allocations that opted out or require their node are never victims, and originators
    are victims only where others do not suffice.
    """

    @property
    def originators(self) -> Literal["last", "protect"]:
        """Treatment of originators: victims after all others (`last`), or never victims (`protect`).

        `rank` decides among originators, and among the others. Read once, when a configuration is loaded. A
        policy with this name as an option leaves the choice to the configuration.
        """
        return "last"

    @property
    def mode(self) -> Literal["end", "requeue", "suspend"]:
        """Way in which victims make room: `end`, `requeue`, or `suspend`; `end` unless overridden.

        A victim that is requeued starts again from its beginning; one that is suspended continues later. Both
        ask for their room again. The resource manager must have declared the mode. Read once, when a
        configuration is loaded. A policy with this name as an option leaves the choice to the configuration.
        """
        return "end"

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which a failed search for victims is repeated without a change; None for never.

        For answers that depend on the time. Read once, when a configuration is loaded. A policy with a
        constant value writes `refresh_every = 60.0`.
        """
        return None

    @property
    def is_constant(self) -> bool:
        """True if the answers for a victim never change while it runs; False unless overridden.

        `rank` and `protects` may then use only constant attributes of the victim, such as its resource,
        priority, tags, time of placement, user and application, and the kind, queue and priority of the
        cause. Candidates are then kept from one search to the next, so that a search costs much less on a
        large cluster. Read once, when a configuration is loaded. Without effect on policies that have `cost`
        or `refresh_every`, and if ranks are neither numbers nor tuples of numbers.
        """
        return False

    def mode_of(self, victim: Allocation, cause: PreemptionCause) -> Literal["end", "requeue", "suspend"]:
        """Return the way in which a chosen victim makes room; by default the `mode` of all victims.

        Called once for each victim, when all victims of a preemption are chosen; never for placeholders,
        which have no progress. If an answer is not valid, nothing is preempted.
        """
        return self.mode

    def protects(self, victim: Allocation, cause: PreemptionCause) -> str | None:
        """Return why `victim` must not be preempted for `cause`, or None if it may be.

        By default nothing is protected. Originators are protected where `originators` is `protect`.
        """
        return None

    def rank(self, victim: Allocation, cause: PreemptionCause) -> Any:
        """Return the sort key of `victim`, any comparable value; the smallest is preempted first.

        Ranks are computed once per search, or once for several searches with an equal cause.
        """
        raise TypeError(f"{type(self).__name__} has no rank(victim, cause)")

    def cost(self, victim: Allocation, cause: PreemptionCause) -> float:
        """Return the cost of losing `victim`, 0 or more.

        Of several nodes on which victims would make room for a request, the node with the lowest sum is
        chosen, and of equal ones the first by id. By default each victim costs 1.
        """
        return 1.0

    def cost_of_units(self, units: Sequence[VictimUnit], cause: PreemptionCause) -> float | tuple[float, ...]:
        """Return the cost of ending `units`, of which there is one at least, so that a gang has room.

        Of several domains in which a gang could run, the one of the lowest cost is cleared, and of equal ones
        the first by name; tuples are compared from left to right. By default the lowest is the one with the
        lowest priority of the most important victim, then the fewest gangs that end, then the lowest sum of
        `cost`. If an answer is not valid, nothing is preempted.
        """
        victims = [victim for unit in units for victim in unit.victims]
        gangs = sum(unit.kind == "gang" for unit in units)
        highest = max(victim.priority for victim in victims)
        return highest, gangs, sum(self.cost(victim, cause) for victim in victims)
