"""Owners of applications: user and groups of a submission, validated, resolved and cached.

Groups in a submission are accepted as given. Otherwise a resolver is asked, and its answer cached. Unlike
YuniKorn 1.9, user names are validated in both cases, failures expire from the cache, and each partition has
its own resolver.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import attrs

from yunikorn.clock import SECOND, Clock
from yunikorn.config.acl import is_user_name
from yunikorn.config.queues_yaml import ResolverCache, ResolverRef
from yunikorn.containment import (
    LONGEST_NAME,
    contained,
    describe_error,
    entries_of,
    exact_text,
    read_attribute,
    safe_repr,
)
from yunikorn.framework.kinds import RESOLVER
from yunikorn.framework.plugin_failures import PluginFailures
from yunikorn.framework.policy_calls import PolicyAnswer, calls_at_once, may_block, safe
from yunikorn.scheduling.policy_questions import AskedPolicy
from yunikorn.scheduling.policy_steps import PolicyQuestion, Steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from yunikorn.api import UserGroupResolver
    from yunikorn.config.queues_yaml import PluginRef
    from yunikorn.framework.instances import InstancePlan

DEFAULT_CACHE = ResolverCache()
SWEEP_EVERY = 60 * SECOND

NOBODY = "nobody"
NO_GROUP = "nogroup"

FORCE_TAG = "application.create.force"
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})


def is_forced(tags: Mapping[str, str]) -> bool:
    """Return True if the RM forces the application: it already runs and is being recovered."""
    return bool(tags) and any(value in _TRUE and name.lower() == FORCE_TAG for name, value in tags.items())


@attrs.frozen(slots=True)
class Owner:
    """Owner of an application, or the `refusal` if it cannot be determined."""

    user: str
    groups: tuple[str, ...] = ()
    """Groups of the user, the primary group first."""
    refusal: str = ""


class UserGroups:
    """Groups of users, for one partition.

    `origin` names the resolver in reports to `failures`. Without a resolver, every user is the only member of
    a group with the same name.
    """

    def __init__(
        self,
        clock: Clock,
        resolver: UserGroupResolver | None = None,
        origin: str = "",
        failures: PluginFailures | None = None,
        cache: ResolverCache = DEFAULT_CACHE,
    ) -> None:
        self._clock = clock
        self._cache = cache
        self.origin = origin
        self._failures = PluginFailures() if failures is None else failures
        self._known: dict[str, tuple[int, Owner]] = {}
        self._swept = clock.now()
        self.resolver = resolver
        self._groups = read_attribute(resolver, "groups")
        self.asked: AskedPolicy | None = None
        """The resolver, if workers call it; set by `use_workers`."""

    @classmethod
    def make(
        cls,
        ref: PluginRef | None,
        plan: InstancePlan,
        clock: Clock,
        failures: PluginFailures | None = None,
    ) -> UserGroups:
        """Create with the resolver that the configuration names, taken from `plan`.

        Raises `UnknownPlugin`, `OptionError` or `PluginError` if the resolver cannot be used and is required
        (`docs/decisions/0052`).
        """
        if ref is None or ref.name in ("", "none"):
            return cls(clock)
        made = plan.make_if_usable(RESOLVER, ref.name, ref.options, required=ref.required)
        if made is None:
            return cls(clock)
        cache = ref.cache if isinstance(ref, ResolverRef) else DEFAULT_CACHE
        return cls(clock, made.plugin, made.origin, failures, cache)

    @property
    def remembered(self) -> int:
        """Number of users in the cache."""
        return len(self._known)

    def identify(self, user: str, groups: Sequence[str] = (), *, forced: bool = False) -> Owner:
        """Return the owner for a submission by `user` with these groups.

        A forced application always has an owner; a default user or group is used if necessary.
        """
        if not user:
            if forced:
                return Owner(NOBODY, (NO_GROUP,))
            return Owner(user, refusal="empty user cannot resolve: an application needs a user")
        if not is_user_name(user):
            return Owner(user, refusal=f"invalid username '{user}', it contains invalid characters")
        if groups:
            owner = Owner(user, tuple(groups))
            self._remember(owner)
            return owner
        owner = self._look_up(user)
        return owner_of_forced(owner) if forced else owner

    def use_workers(self) -> None:
        """Let workers call the resolver if it may block; called before its first use."""
        resolver = self.resolver
        if resolver is not None and may_block(resolver, self.origin, self._failures):
            at_once = calls_at_once(resolver, self.origin, self._failures)
            title = "the user-group resolver"
            self.asked = AskedPolicy(resolver, title, self.origin, self._call, at_once)

    def steps(self, user: str, groups: Sequence[str], *, forced: bool) -> Steps[Owner]:
        """Return the owner as `identify` does; workers call the resolver if it may block."""
        asked = self.asked
        if asked is None or groups or not is_user_name(user) or self._find(user) is not None:
            return self.identify(user, groups, forced=forced)
        owner: Owner = yield PolicyQuestion(asked, lambda: user, user, partial(self._learn, user))
        return owner_of_forced(owner) if forced else owner

    def _learn(self, user: str, answer: PolicyAnswer) -> Owner:
        """Remember and return the owner that a worker's answer describes; report a failure."""
        owner = self._owner(user, answer)
        self._remember(owner)
        return owner

    def _find(self, user: str) -> Owner | None:
        known = self._known.get(user)
        return known[1] if known is not None and self._clock.now() < known[0] else None

    def _look_up(self, user: str) -> Owner:
        owner = self._find(user)
        if owner is None:
            owner = self._resolve(user)
            self._remember(owner)
        return owner

    def _resolve(self, user: str) -> Owner:
        if self.resolver is None:
            return Owner(user, (user,))
        try:
            found = self._groups(user)
            groups = None if found is None else _checked(found)
        except contained() as error:
            return self._failed(user, error)
        return _found(user, groups)

    def _call(self, user: str) -> PolicyAnswer:
        """Call the resolver in a worker."""
        try:
            found = self._groups(user)
            return PolicyAnswer(None if found is None else [safe(name) for name in _checked(found)])
        except contained() as error:
            return PolicyAnswer(failed=safe(describe_error(error)))

    def _owner(self, user: str, answer: PolicyAnswer) -> Owner:
        if answer.failed is not None:
            return self._failed(user, answer.failed)
        return _found(user, None if answer.groups is None else tuple(answer.groups))

    def _failed(self, user: str, cause: BaseException | str) -> Owner:
        blame = self._failures.report(self.origin, "finding the groups of", cause, f"user '{user}'")
        return Owner(user, refusal=f"user resolution failed: {blame}")

    def _remember(self, owner: Owner) -> None:
        now = self._clock.now()
        if now - self._swept >= SWEEP_EVERY:
            self._known = {user: entry for user, entry in self._known.items() if now < entry[0]}
            self._swept = now
        duration = self._cache.failed if owner.refusal else self._cache.found
        if duration:
            self._known[owner.user] = (now + duration, owner)
        else:
            self._known.pop(owner.user, None)


def owner_of_forced(owner: Owner) -> Owner:
    """Return the owner of a forced application, which has a default group if its user has none."""
    return Owner(owner.user, (NO_GROUP,)) if owner.refusal else owner


def _found(user: str, groups: tuple[str, ...] | None) -> Owner:
    if groups is None:
        return Owner(user, refusal=f"user resolution failed: there is no user '{user}'")
    return Owner(user, groups)


def _checked(found: Iterable[str]) -> tuple[str, ...]:
    groups = () if isinstance(found, str) else entries_of(found)
    if isinstance(found, str) or not all(issubclass(type(group), str) for group in groups):
        raise TypeError(f"it returned {safe_repr(found)} instead of a list of names")
    names = tuple(map(exact_text, groups))
    if any(len(name) > LONGEST_NAME for name in names):
        raise ValueError(f"it returned a name with more than {LONGEST_NAME} characters")
    return names
