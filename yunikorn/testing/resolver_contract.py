"""Contract test of user-group resolvers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar

from yunikorn.api import UserGroupResolver
from yunikorn.framework.kinds import RESOLVER
from yunikorn.testing.answers_contract import DIFFERENT, KEPT_SLACK, Question, calling
from yunikorn.testing.plugin_contract import Yaml
from yunikorn.testing.retained_objects import count_retained
from yunikorn.testing.worker_contract import WorkerContract


class UserGroupResolverContract(WorkerContract):
    """Tests that a user-group resolver must pass; set `resolver = Mine(...)`."""

    kind = RESOLVER
    subject = "resolver"
    uses_external_state = True
    resolver: ClassVar[UserGroupResolver]
    different_users: ClassVar[int] = DIFFERENT
    """Number of users of whom the resolver must not remember all; fewer for a slow directory."""

    def name_in(self, document: Yaml) -> None:
        """Add the resolver to the partition."""
        document["partitions"][0]["usergroupresolver"] = self.named("type")

    def users(self) -> Sequence[str]:
        """Return known and unknown users; extend the list with users that the resolver knows."""
        return ["root", "ann", "ann.lee", "ann@example.org", "no-such-user-anywhere", "ä ö", "x" * 300, ""]

    def questions(self) -> Sequence[Question]:
        """Return a question for the groups of each user; the external source must not change meanwhile."""
        return [Question(f"groups({user!r})", calling("groups", user)) for user in self.users()]

    def test_memory_is_independent_of_earlier_calls(self) -> None:
        """Check that the resolver does not keep something of every user; the scheduler remembers groups."""
        resolver = self.fresh()
        kept = []
        for stop in (self.different_users, 2 * self.different_users):
            for number in range(stop - self.different_users, stop):
                with suppress(Exception):  # another test refuses exceptions
                    resolver.groups(f"no-such-user-{number}")
            kept.append(count_retained(resolver))
        first, second = kept
        assert second <= first + KEPT_SLACK, (
            f"the resolver keeps {first} objects after {self.different_users} different users, and {second} "
            "after twice as many: the scheduler runs for months, and remembers groups itself for the time of "
            "`cache`, so remember none, or a limited number of them"
        )

    def test_resolver_returns_groups_or_none(self) -> None:
        """Check that an answer is None or a list of distinct group names."""
        resolver = self.fresh()
        for user in self.users():
            groups = resolver.groups(user)
            what = f"the groups of {user!r} are {groups!r}"
            if groups is None:
                continue
            fits = isinstance(groups, Sequence) and not isinstance(groups, str)
            assert fits, f"{what}: return a list of names, or None for an unknown user"
            assert all(isinstance(group, str) and group for group in groups), (
                f"{what}: each group must be non-empty text"
            )
            assert len(set(groups)) == len(groups), f"{what}: a group is listed twice; remove duplicates"
