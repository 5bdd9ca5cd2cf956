"""Hold of a placement by a permit policy: booked, and not announced to the RM (docs/decisions/0069)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.gang import AtomicGang


class PlacementHold:
    """One placement that policies hold, or those of all members of an atomic gang."""

    __slots__ = (
        "asked",
        "at",
        "before",
        "deadlines",
        "gang",
        "member",
        "members",
        "number",
        "place",
        "policy",
        "since",
        "until",
        "why",
    )

    def __init__(
        self,
        members: Sequence[Allocation],
        number: int,
        before: tuple[int, int],
        gang: AtomicGang | None = None,
    ) -> None:
        self.members = members
        self.number = number
        """Number in the order of placement."""
        self.before = before
        """`waiting_since` and `misses` of the application before the placement."""
        self.gang = gang
        """The gang whose members these are; None for a single placement."""
        self.since = members[0].placed
        """Time of placement (ns)."""
        self.member = self.at = 0
        """Positions of the member and of the policy to be asked next; earlier ones are permitted."""
        self.policy = self.why = ""
        """Name and reason of the policy that holds the placement; empty before the first answer."""
        self.deadlines: dict[str, int] = {}
        """Time (ns) at which the placement is taken back unless permitted, by the name of the policy."""
        self.place: tuple[int, str] | None = None
        """Position of the policy that holds the placement, and its group; None without a group."""
        self.until = self.since
        """Time at which the policy is asked again (ns)."""
        self.asked = 0
        """Number of changes of groups when the policy was last asked."""

    @property
    def app(self) -> Application:
        """The application of all members."""
        return self.members[0].app

    @property
    def message(self) -> str:
        """Message that names the policy and its reason."""
        return f"held by permit policy {self.policy}: {self.why}"


class Unpermitted(dict[str, int]):
    """Refusal of a placement by a permit policy, in place of the refusals by nodes: the reason, once."""
