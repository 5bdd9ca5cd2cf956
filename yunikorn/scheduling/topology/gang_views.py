"""Views of gangs and domains that gang placement policies receive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yunikorn.api import GangPart
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.gang import Members
    from yunikorn.model.gang_topology import GroupTopology
    from yunikorn.model.node import Node
    from yunikorn.resources import Resource
    from yunikorn.scheduling.topology.domain_rooms import DomainRooms, RoomCounts
    from yunikorn.scheduling.topology.topology_tree import TreeDomain


@attrs.frozen(eq=False)
class EqualMembers:
    """Members of one task group and one ask class."""

    task_group: str
    asks: Members
    """Asks in order, each with the number of its replicas that are members."""
    rooms: RoomCounts
    """Number of members that fit."""
    whole: RoomCounts
    """The same in whole slices."""
    count: int
    """Number of members."""

    @property
    def ask(self) -> Ask:
        """The first ask."""
        return self.asks[0][0]

    @property
    def resource(self) -> Resource:
        """Resources of each member."""
        return self.ask.resource

    @property
    def each(self) -> list[Ask]:
        """The ask of each member, in order."""
        return [ask for ask, count in self.asks for _ in range(count)]


@attrs.frozen(eq=False)
class MemberGroup:
    """Members of a gang that must be in one domain: all of them, or those of a task group."""

    app: Application
    parts: Sequence[EqualMembers]
    topology: GroupTopology

    @property
    def size(self) -> int:
        """Number of members."""
        return sum(part.count for part in self.parts)


class DomainView:
    """A domain of a tree, as policies see it."""

    __slots__ = ("_known", "_rooms", "domain")

    def __init__(self, domain: TreeDomain, rooms: DomainRooms, known: dict[TreeDomain, DomainView]) -> None:
        self.domain = domain
        self._rooms = rooms
        self._known = known

    @classmethod
    def of(cls, domain: TreeDomain, rooms: DomainRooms, known: dict[TreeDomain, DomainView]) -> DomainView:
        """Return the view of a domain, always the same one for one mapping of `known` views."""
        view = known.get(domain)
        if view is None:
            view = known[domain] = cls(domain, rooms, known)
        return view

    @property
    def level(self) -> str:
        """Name of the level; empty for the whole tree."""
        number = self.domain.level
        return self._rooms.tree.levels[number] if number >= 0 else ""

    @property
    def name(self) -> str:
        """Names of the domain and those above it."""
        return self.domain.path

    @property
    def parent(self) -> DomainView | None:
        """Domain above."""
        above = self.domain.parent
        if above is None:
            return None
        return self._known.get(above) or DomainView.of(above, self._rooms, self._known)

    @property
    def children(self) -> list[DomainView]:
        """Domains below."""
        below = self.domain.children
        return [DomainView.of(one, self._rooms, self._known) for one in below.values()] if below else []

    @property
    def nodes(self) -> list[Node]:
        """Nodes of the domain."""
        return list(self.domain.nodes)

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.domain.nodes)

    @property
    def idle(self) -> int:
        """Number of nodes that run nothing and are open."""
        return self._rooms.idle.get(self.domain, 0)

    @property
    def applications(self) -> int:
        """Number of applications that run in the domain; counted again only after a change there."""
        return len(self._rooms.running(self.domain))

    def room(self, part: GangPart) -> int:
        """Return how many members of a part fit now."""
        rooms: RoomCounts = part.rooms  # type: ignore[attr-defined]
        return rooms.by_domain.get(self.domain, 0)
