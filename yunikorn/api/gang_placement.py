"""Base classes of plugins that place whole gangs in the topology of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol, TypeVar

from yunikorn.api.base import Plugin
from yunikorn.api.views import Application, Node
from yunikorn.resources import Resource

_Domain = TypeVar("_Domain", bound="TopologyDomain")


class TopologySource(Plugin):
    """Base class of sources of a topology: a tree of domains, such as blocks of racks of hosts."""

    @property
    def levels(self) -> Sequence[str]:
        """Names of the levels, the outermost first. Read once, when a configuration is loaded."""
        raise TypeError(f"{type(self).__name__} has no levels")

    def path(self, node: Node) -> Sequence[str]:
        """Return the names of the domains of `node`, one for each level; "" for a level that it lacks.

        Domains of one name in different domains above are different ones. The answer may depend on the id
        and the attributes of the node only: it is asked for when these are reported or changed.
        """
        raise TypeError(f"{type(self).__name__} has no path(node)")


class GangPart(Protocol):
    """Read-only view of the equal members of a gang: those of one task group with equal requirements."""

    @property
    def task_group(self) -> str:
        """Name of the task group; empty without one."""
        ...

    @property
    def resource(self) -> Resource:
        """Resources of each member."""
        ...

    @property
    def count(self) -> int:
        """Number of members."""
        ...


class PlacedGang(Protocol):
    """Read-only view of a gang that is being placed."""

    @property
    def app(self) -> Application:
        """Application of the gang."""
        ...

    @property
    def parts(self) -> Sequence[GangPart]:
        """Members of the gang."""
        ...

    @property
    def size(self) -> int:
        """Number of members."""
        ...


class TopologyDomain(Protocol):
    """Read-only view of a domain of the topology, as it is while one gang is being placed."""

    @property
    def level(self) -> str:
        """Name of the level; empty for the whole tree."""
        ...

    @property
    def name(self) -> str:
        """Names of the domain and those above it, joined by `/`; empty for the whole tree."""
        ...

    @property
    def parent(self) -> TopologyDomain | None:
        """Domain above; None for the whole tree."""
        ...

    @property
    def children(self) -> Sequence[TopologyDomain]:
        """Domains below, in the order in which they appeared; nodes that lack the level below are one."""
        ...

    @property
    def nodes(self) -> Sequence[Node]:
        """Nodes of the domain, drained and reserved ones included."""
        ...

    @property
    def size(self) -> int:
        """Number of nodes, drained and reserved ones included."""
        ...

    @property
    def idle(self) -> int:
        """Number of nodes that run nothing and are open to the gang."""
        ...

    @property
    def applications(self) -> int:
        """Number of applications that run in the domain."""
        ...

    def room(self, part: GangPart) -> int:
        """Return how many members of a part fit now, if nothing else is placed in the domain."""
        ...


class GangPlacementPolicy(Plugin):
    """Base class of policies that decide where in the topology a gang is placed.

    The core knows the room of all domains, tries the domains in the order of the policy, and books a gang as
    a whole, so that a mistake of a policy costs a good place, never a node that is allocated twice.
    """

    per_application: ClassVar[bool] = False
    """True if `rank` or `refuses` depend on more of the application than the parts of its gang.

    Otherwise answers are shared by gangs with equal parts and requirements.
    """

    @property
    def compares(self) -> int:
        """Number of plans that the core makes for a gang, to choose the one with the lowest `score`.

        With 1 the first plan is taken, and `score` is not called. Read once, when a configuration is loaded.
        """
        return 1

    def rank(self, gang: PlacedGang, domain: TopologyDomain) -> float | tuple[float, ...]:
        """Return a number, or a tuple of numbers: the domain with the lowest is tried first.

        Called for the domains of one level that have room for every part. Ties go by the name of the domain.
        The answer may depend on the domain, those below, and the one directly above, if that has a level: it
        is asked for again when a node in one of them has changed.
        """
        raise TypeError(f"{type(self).__name__} has no rank(gang, domain)")

    def refuses(self, gang: PlacedGang, domain: TopologyDomain) -> str | None:
        """Return why a gang must not be placed in a domain with room, or None. Called before `rank`."""
        return None

    def split(
        self, gang: PlacedGang, part: GangPart, count: int, room: Mapping[_Domain, int]
    ) -> Mapping[_Domain, int]:
        """Return how many of `count` units of a part go to each of the domains, within their `room`.

        A unit is a member, or a slice of the gang that must be in one domain. The default takes as few
        domains as possible: the largest ones, and of those that can take the rest the smallest.
        """
        found: dict[_Domain, int] = {}
        left = dict(room)
        while count > 0 and left:
            fitting = [domain for domain, most in left.items() if most >= count]
            chosen = min(fitting, key=left.__getitem__) if fitting else max(left, key=left.__getitem__)
            found[chosen] = min(count, left.pop(chosen))
            count -= found[chosen]
        return found

    def score(self, gang: PlacedGang, nodes: Sequence[Node]) -> float:
        """Return a number for a plan, with the node of each member; of several plans the lowest is taken."""
        return 0.0

    def gives_up_after(self, gang: PlacedGang, level: str, wait: float) -> float:
        """Return the seconds from the first attempt on after which a preferred level is given up.

        `wait` is the time that the request gives for the level.
        """
        return wait
