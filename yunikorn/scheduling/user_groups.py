"""Owners of applications: user and groups of a submission, validated, resolved and cached.

Groups in a submission are accepted as given. Otherwise a resolver is asked, and its answer cached. Unlike
YuniKorn 1.9, user names are validated in both cases, failures expire from the cache, and each partition has
its own resolver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.clock import SECOND, Clock
from yunikorn.config.acl import is_user_name
from yunikorn.config.queues_yaml import ResolverCache, ResolverRef
from yunikorn.containment import (
    LONGEST_NAME,
    entries_of,
    exact_text,
    safe_repr,
)
from yunikorn.framework.kinds import RESOLVER
from yunikorn.framework.plugin_failures import PluginFailures
from yunikorn.framework.policy_calls import PolicyAnswer, safe
from yunikorn.scheduling.admission.asked_policies import AskedPolicy, PolicyMethod

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from yunikorn.api import UserGroupResolver
    from yunikorn.config.queues_yaml import PluginRef
    from yunikorn.framework.instances import InstancePlan
    from yunikorn.scheduling.admission.asked_policies import Steps

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
        self._known: dict[str, tuple[int, Owner]] = {}
        self._swept = clock.now()
        self.resolver = resolver
        failures = PluginFailures() if failures is None else failures
        self.asked = None if resolver is None else AskedPolicy(resolver, "", origin, RESOLVE, failures)
        """The resolver, and how it is asked."""

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

    def steps(self, user: str, groups: Sequence[str] = (), *, forced: bool = False) -> Steps[Owner]:
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
        known = self._find(user)
        if known is None:
            if self.asked is None:
                known = Owner(user, (user,))
            else:
                known = _owner(user, (yield from self.asked.ask(user, key=user)))
            self._remember(known)
        return Owner(user, (NO_GROUP,)) if forced and known.refusal else known

    def _find(self, user: str) -> Owner | None:
        known = self._known.get(user)
        return known[1] if known is not None and self._clock.now() < known[0] else None

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


def _owner(user: str, answer: PolicyAnswer) -> Owner:
    if answer.failed is not None:
        return Owner(user, refusal=f"user resolution failed: {answer.failed}")
    if answer.groups is None:
        return Owner(user, refusal=f"user resolution failed: there is no user '{user}'")
    return Owner(user, tuple(answer.groups))


def _read_groups(user: str, found: Any) -> PolicyAnswer:
    """Return the names of groups of an answer. Raises `TypeError` or `ValueError` for a wrong one."""
    groups = () if isinstance(found, str) else entries_of(found)
    if isinstance(found, str) or not all(issubclass(type(group), str) for group in groups):
        raise TypeError(f"it returned {safe_repr(found)} instead of a list of names")
    names = tuple(map(exact_text, groups))
    if any(len(name) > LONGEST_NAME for name in names):
        raise ValueError(f"it returned a name with more than {LONGEST_NAME} characters")
    return PolicyAnswer([safe(name) for name in names])


RESOLVE = PolicyMethod(
    "the user-group resolver", "groups", "finding the groups of", "user '{0}'", _read_groups
)
