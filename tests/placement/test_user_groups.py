"""Users and groups of applications."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from yunikorn.api import UserGroupResolver, hookimpl
from yunikorn.clock import SECOND, ManualClock
from yunikorn.config.queues_yaml import PluginRef, ResolverCache
from yunikorn.errors import UnknownPlugin
from yunikorn.framework.instances import InstancePlan
from yunikorn.framework.plugin_failures import PluginFailures
from yunikorn.framework.registry import Registry
from yunikorn.scheduling.user_groups import Owner, UserGroups


def owner_in(groups: UserGroups, user: str, named: Sequence[str] = (), *, forced: bool = False) -> Owner:
    """Return the owner for a submission, without workers."""
    with pytest.raises(StopIteration) as end:
        next(groups.steps(user, named, forced=forced))
    found: Owner = end.value.value
    return found


class MappingResolver(UserGroupResolver):
    """A resolver that reads from a mapping and counts its calls."""

    name = "book"

    def __init__(self, **members: Sequence[str]) -> None:
        self.members = members
        self.asked: list[str] = []

    def groups(self, user: str) -> Sequence[str] | None:
        """Return the groups from the mapping."""
        self.asked.append(user)
        if user == "broken":
            raise OSError("no line to the directory")
        return self.members.get(user)


def test_given_groups_are_used_unchanged() -> None:
    resolver = MappingResolver(ann=["staff"])
    owner = owner_in(UserGroups(ManualClock(), resolver), "ann", ["dev", "ops"])
    assert (owner.user, owner.groups, owner.refusal) == ("ann", ("dev", "ops"), "")
    assert resolver.asked == []


def test_user_name_is_the_group_without_a_resolver() -> None:
    assert owner_in(UserGroups(ManualClock()), "ann").groups == ("ann",)


def test_given_groups_are_cached_for_submissions_without_groups() -> None:
    clock = ManualClock()
    groups = UserGroups(clock)
    owner_in(groups, "ann", ["dev"])
    clock.advance(299)
    assert owner_in(groups, "ann").groups == ("dev",)
    clock.advance(1)
    assert owner_in(groups, "ann").groups == ("ann",)


def test_resolved_groups_are_cached_for_five_minutes() -> None:
    clock, resolver = ManualClock(), MappingResolver(ann=["dev"])
    groups = UserGroups(clock, resolver)
    owner_in(groups, "ann")
    resolver.members["ann"] = ["ops"]
    clock.advance(299)
    assert owner_in(groups, "ann").groups == ("dev",)
    clock.advance(1)
    assert owner_in(groups, "ann").groups == ("ops",)
    assert resolver.asked == ["ann", "ann"]


def test_failure_is_cached_for_thirty_seconds() -> None:
    clock, resolver = ManualClock(), MappingResolver()
    groups = UserGroups(clock, resolver)
    assert owner_in(groups, "ann").refusal == "user resolution failed: there is no user 'ann'"
    resolver.members["ann"] = ["dev"]
    clock.advance(29)
    assert owner_in(groups, "ann").refusal
    clock.advance(1)
    assert owner_in(groups, "ann").groups == ("dev",)


def test_times_of_the_cache_are_configurable() -> None:
    clock, resolver = ManualClock(), MappingResolver(ann=["dev"])
    groups = UserGroups(clock, resolver, cache=ResolverCache(found=7 * SECOND, failed=3 * SECOND))
    owner_in(groups, "ann"), owner_in(groups, "bob")
    clock.advance(2)
    owner_in(groups, "ann"), owner_in(groups, "bob")
    assert resolver.asked == ["ann", "bob"]
    clock.advance(1)
    owner_in(groups, "ann"), owner_in(groups, "bob")
    assert resolver.asked == ["ann", "bob", "bob"]
    clock.advance(4)
    owner_in(groups, "ann")
    assert resolver.asked[3:] == ["ann"]


def test_time_of_zero_remembers_nothing() -> None:
    resolver = MappingResolver(ann=["dev"])
    groups = UserGroups(ManualClock(), resolver, cache=ResolverCache(found=0, failed=0))
    for user in ("ann", "bob", "ann", "bob"):
        owner_in(groups, user)
    assert owner_in(groups, "ann", ["ops"]).groups == ("ops",)
    assert owner_in(groups, "ann").groups == ("dev",)
    assert resolver.asked == ["ann", "bob", "ann", "bob", "ann"]
    assert groups.remembered == 0


def test_resolver_that_raises_is_reported_once_and_rejects_the_submission() -> None:
    failures = PluginFailures()
    groups = UserGroups(ManualClock(), MappingResolver(), "book of theirs (dist 1.0)", failures)
    first, second = owner_in(groups, "broken"), owner_in(groups, "broken")
    blame = (
        "plugin book of theirs (dist 1.0): finding the groups of user 'broken': "
        "OSError: no line to the directory"
    )
    assert first.refusal == second.refusal == f"user resolution failed: {blame}"
    assert [(failure.message, failure.count) for failure in failures] == [(blame, 1)]


def test_a_text_is_no_list_of_groups() -> None:
    owner = owner_in(UserGroups(ManualClock(), MappingResolver(ann="dev"), "book"), "ann")
    assert "it returned 'dev' instead of a list of names" in owner.refusal


def test_missing_user_is_rejected_unless_the_application_is_forced() -> None:
    groups = UserGroups(ManualClock())
    assert owner_in(groups, "").refusal.startswith("empty user cannot resolve")
    owner = owner_in(groups, "", forced=True)
    assert (owner.user, owner.groups) == ("nobody", ("nogroup",))


def test_a_forced_application_of_an_unknown_user_is_in_no_group() -> None:
    owner = owner_in(UserGroups(ManualClock(), MappingResolver()), "ann", forced=True)
    assert (owner.user, owner.groups, owner.refusal) == ("ann", ("nogroup",), "")


@pytest.mark.parametrize("groups", [[], ["dev"]])
@pytest.mark.parametrize("user", ["a b", "1st", "a!", "ann,bob", "-x"])
def test_invalid_user_names_are_rejected(user: str, groups: list[str]) -> None:
    refusal = owner_in(UserGroups(ManualClock()), user, groups).refusal
    assert refusal == f"invalid username '{user}', it contains invalid characters"


@pytest.mark.parametrize("user", ["ann", "_x", "a.b@c.d", "sys:serviceaccount:ns:sa", "a/b", "host$", "A-1"])
def test_valid_user_names(user: str) -> None:
    assert owner_in(UserGroups(ManualClock()), user).groups == (user,)


def test_expired_entries_are_removed() -> None:
    clock, resolver = ManualClock(), MappingResolver()
    groups = UserGroups(clock, resolver)
    for number in range(100):
        owner_in(groups, f"user{number}")
    assert groups.remembered == 100
    clock.advance(61)
    owner_in(groups, "ann")
    assert groups.remembered == 1


class RMState:
    """A plugin that offers `Book`."""

    @hookimpl
    def yunikorn_user_group_resolvers(self) -> list[type[UserGroupResolver]]:
        """Return the resolver."""
        return [MappingResolver]


def test_the_configuration_names_the_resolver() -> None:
    registry = Registry.load(third_party=False)
    registry.register(RMState(), "books")
    clock, plan = ManualClock(), InstancePlan(registry)
    assert isinstance(UserGroups.make(PluginRef("book"), plan, clock).resolver, MappingResolver)
    for nothing in (None, PluginRef(""), PluginRef("none"), PluginRef("test", required=False)):
        assert UserGroups.make(nothing, plan, clock).resolver is None
    for missing in ("radius", "test"):
        with pytest.raises(UnknownPlugin, match=f"no user-group resolver is called '{missing}'"):
            UserGroups.make(PluginRef(missing), plan, clock)
