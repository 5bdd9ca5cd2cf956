"""Requirements of a gang on the topology: in which domains its members must be, and should be."""

from __future__ import annotations

import attrs

GANG_TOPOLOGY_TAG = "yunikorn.apache.org/gang-topology"
"""Tag of applications with the requirements; the service has the reader of its text."""


@attrs.frozen(slots=True)
class PreferredLevel:
    """A level that a gang should be within."""

    level: str
    wait: int = 0
    """Time from the first attempt on after which the level is given up (ns)."""


@attrs.frozen(slots=True)
class GangSlice:
    """A number of consecutive members that must be in one domain."""

    size: int
    level: str


@attrs.frozen(slots=True)
class GroupTopology:
    """Requirements of a task group, or of a gang as a whole."""

    required: str = ""
    """Level of which one domain must have all members; empty for none."""
    preferred: tuple[PreferredLevel, ...] = ()
    """Levels to try before, the closest first."""
    slices: tuple[GangSlice, ...] = ()
    """Slices of each task group, the outermost and largest first."""


@attrs.frozen(slots=True)
class GangTopology(GroupTopology):
    """Requirements of a gang."""

    groups: tuple[tuple[str, GroupTopology], ...] = ()
    """Requirements of single task groups, by name, inside the domain of the gang."""
    exclusive: str = ""
    """Level of which the domain with the members has no other work, the required one or a wider one."""

    def of(self, task_group: str) -> GroupTopology:
        """Return the requirements of a task group inside the domain of the gang."""
        group = dict(self.groups).get(task_group)
        if group is None:
            return GroupTopology(slices=self.slices)
        return group if group.slices else attrs.evolve(group, slices=self.slices)

    @property
    def levels(self) -> list[str]:
        """Names of all levels of the request, in the order in which it names them."""
        found: list[str] = []
        for one in self._all:
            found += [each.level for each in one.preferred]
            found += [each.level for each in one.slices]
            found += [one.required] if one.required else []
        found += [self.exclusive] if self.exclusive else []
        return list(dict.fromkeys(found))

    @property
    def is_timed(self) -> bool:
        """True if the levels to try depend on the time that the gang has waited."""
        return any(each.wait for one in self._all for each in one.preferred)

    @property
    def _all(self) -> tuple[GroupTopology, ...]:
        return (self, *(group for _, group in self.groups))
