"""Gang placement policy of a partition: the plugin's answers, checked, with its failures contained.

Where the policy fails, domains are tried by name, and members are split by the rule of the base class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from yunikorn.api import GangPlacementPolicy
from yunikorn.clock import SECOND
from yunikorn.containment import (
    WrongAnswer,
    contained,
    items_of,
    number_of,
    number_or_none,
    numbers_or_none,
    read_attribute,
    safe_repr,
    text_or_none,
)
from yunikorn.framework.plugin_failures import read_flag

if TYPE_CHECKING:
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.node import Node
    from yunikorn.scheduling.topology.gang_views import DomainView, EqualMembers, MemberGroup

LAST = (float("inf"),)
"""Rank of a domain whose rank cannot be computed."""
MOST_COMPARED = 16
"""Largest number of plans to compare."""
LONGEST_WAIT = 1e9
"""Longest time for which a level is preferred (s)."""
_DEFAULT = GangPlacementPolicy()


class GangPlacementRules:
    """The gang placement policy of one partition."""

    def __init__(self, plugin: GangPlacementPolicy, name: str, origin: str, failures: PluginFailures) -> None:
        self.name = name
        self._origin, self._failures = origin, failures
        self._rank = read_attribute(plugin, "rank")
        self._split = read_attribute(plugin, "split")
        self._score = read_attribute(plugin, "score")
        self._refuses = None
        if type(plugin).refuses is not GangPlacementPolicy.refuses:
            self._refuses = read_attribute(plugin, "refuses")
        self._wait = read_attribute(plugin, "gives_up_after")
        self.per_application = read_flag(plugin, "per_application", origin, failures)
        """True if answers depend on more of the application than the parts of its gang."""
        self.compares = self._compares(plugin)
        """Number of plans to compare."""

    def _compares(self, plugin: GangPlacementPolicy) -> int:
        try:
            number = number_or_none(plugin.compares)
            if not isinstance(number, int) or number < 1:
                raise WrongAnswer(f"{safe_repr(plugin.compares)} is no whole number of 1 or more")
            return min(number, MOST_COMPARED)
        except contained() as error:
            self._failures.report(self._origin, "reading its compares", error)
            return 1

    def rank(self, group: MemberGroup, domain: DomainView) -> tuple[float, ...]:
        """Return the rank of a domain; the lowest is tried first."""
        try:
            answer = self._rank(group, domain)
            found = numbers_or_none(answer)
            if found is None:
                raise WrongAnswer(f"{safe_repr(answer)} is neither a number nor a tuple of numbers")
            return found
        except contained() as error:
            self._report("ranking domains", error, group, domain)
            return LAST

    def refusal(self, group: MemberGroup, domain: DomainView) -> str | None:
        """Return why the policy refuses a domain, or None; a policy that fails refuses the domain."""
        if self._refuses is None:
            return None
        try:
            answer = self._refuses(group, domain)
            text = text_or_none(answer)
            if answer is not None and text is None:
                raise WrongAnswer(f"{safe_repr(answer)} is neither None nor a text")
            return text
        except contained() as error:
            self._report("checking domains", error, group, domain)
            return f"gang placement policy {self.name} failed"

    def split(
        self, group: MemberGroup, part: EqualMembers, count: int, room: Mapping[DomainView, int]
    ) -> Mapping[DomainView, int]:
        """Return how many units go to each domain: within its room, in total `count` if possible."""
        wanted = min(count, sum(room.values()))
        try:
            answer = items_of(self._split(group, part, count, MappingProxyType(room)))
            given = [(domain, share) for domain, share in answer if share]
            valid = [type(share) is int and 0 < share <= room.get(domain, 0) for domain, share in given]
            if not all(valid) or sum(share for _, share in given) != wanted:
                shares = safe_repr([share for _, share in given])
                raise WrongAnswer(f"{shares} are not {wanted} in total, within {[*room.values()]}")
            return dict(given)
        except contained() as error:
            self._report("splitting", error, group, None)
            return _DEFAULT.split(group, part, count, room)

    def score(self, group: MemberGroup, nodes: Sequence[Node]) -> float:
        """Return the score of a plan; the lowest is taken."""
        try:
            return number_of(self._score(group, nodes))
        except contained() as error:
            self._report("scoring a plan of", error, group, None)
            return LAST[0]

    def wait(self, group: MemberGroup, level: str, wait: int) -> int:
        """Return the time after which a preferred level is given up (ns)."""
        try:
            answer = self._wait(group, level, wait / SECOND)
            fault = "is no number of seconds between 0 and 1e9"
            return round(number_of(answer, fault, 0, LONGEST_WAIT) * SECOND)
        except contained() as error:
            self._report("deciding when to give up a level for", error, group, None)
            return wait

    def _report(self, operation: str, cause: Any, group: MemberGroup, domain: DomainView | None) -> None:
        where = group.app.label if domain is None else f"{group.app.label}: {domain.level} {domain.name}"
        self._failures.report(self._origin, operation, cause, where)
