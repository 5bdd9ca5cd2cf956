"""The contract of a user-group resolver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from yunikorn.api import UserGroupResolver
from yunikorn.kinds import RESOLVER
from yunikorn.testing.plugin_contract import PluginContract, Yaml


class UserGroupResolverContract(PluginContract):
    """What a user-group resolver keeps: `resolver = Mine(...)`."""

    kind = RESOLVER
    subject = "resolver"
    resolver: ClassVar[UserGroupResolver]

    def name_in(self, document: Yaml) -> None:
        """As the resolver of the partition."""
        document["partitions"][0]["usergroupresolver"] = self.named("type")

    def users(self) -> Sequence[str]:
        """Users, known and unknown; add to it whom yours knows."""
        return ["root", "ann", "ann.lee", "ann@example.org", "no-such-user-anywhere", "ä ö", "x" * 300, ""]

    def test_it_answers_with_groups_or_none(self) -> None:
        """The primary group first, each once; None is "there is no such user"."""
        resolver = self.fresh()
        for user in self.users():
            groups = resolver.groups(user)
            what = f"the groups of {user!r} are {groups!r}"
            if groups is None:
                continue
            fits = isinstance(groups, Sequence) and not isinstance(groups, str)
            assert fits, f"{what}: a list of names is wanted, or None"
            assert all(isinstance(group, str) and group for group in groups), f"{what}: a group has no name"
            assert len(set(groups)) == len(groups), f"{what}: one is named twice"

    def test_asking_twice_gives_the_same_groups(self) -> None:
        """As long as what it asks says the same."""
        resolver, users = self.fresh(), self.users()
        forth = [resolver.groups(user) for user in users]
        assert [resolver.groups(user) for user in users[::-1]][::-1] == forth
