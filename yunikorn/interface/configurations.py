"""Configurations of resource managers: sources, loading ahead, plans of changes, and refusals in the log.

The owner of the scheduler may have a configuration for each policy group (`PolicyGroups`), which is read for
every registration and reload. Resource managers with the same configuration register with the same
`policyGroup` (`docs/decisions/archive/0035`).

`LoadedAhead` has the configurations that other threads load before their use, so that a large one does not
block the core. `ReloadPlan` has everything that a new configuration needs, before anything is changed.

The configuration of an RM is secret: the log gets the place and kind of each problem, but neither keys nor
values. The caller gets the complete problems in the `ConfigError`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

import attrs

from yunikorn.config.load import DEFAULT_TEXT, load_config
from yunikorn.config.queues_yaml import SchedulerConfig
from yunikorn.errors import ConfigError, printable
from yunikorn.framework.plugin_code import NO_CODE, CodeSource
from yunikorn.framework.registry import Registry

if TYPE_CHECKING:
    from yunikorn.errors import Problem
    from yunikorn.framework.instances import InstancePlan
    from yunikorn.interface.messages import RegisterResourceManagerRequest
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler
    from yunikorn.scheduling.reload import Reload


@attrs.frozen
class ReloadPlan:
    """Objects that a new configuration needs, complete before the change is applied."""

    config: SchedulerConfig
    plan: Reload
    made: Mapping[str, PartitionScheduler]
    """Partitions that did not exist before, by name."""
    sinks: InstancePlan
    enabled: Registry
    """Plugins of the configuration."""
    since: int
    """Number of changes of the session's configuration when the plan was made."""

    def discard(self, reason: str) -> None:
        """Close the new partitions and the new plugins: the plan is not used."""
        self.plan.discard()
        discard(self.made, reason)


def discard(made: Mapping[str, PartitionScheduler], reason: str) -> None:
    """Close partitions that were made but are not used."""
    for unused in made.values():
        unused.close(reason)


KEPT = 4
"""Maximum number of configurations that wait for the call that uses them; the oldest one is dropped."""


class LoadedAhead:
    """Loaded configurations by their texts, each for the next call that uses it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._kept: dict[str | bytes, SchedulerConfig | ConfigError] = {}

    def prepare(self, text: str) -> None:
        """Load a configuration in any thread; its problems are raised by `load`."""
        try:
            self._kept[text] = load_config(text, self._registry)
        except ConfigError as error:
            self._kept[text] = error
        while len(self._kept) > KEPT:
            # Another thread may have removed the same entry.
            self._kept.pop(next(iter(self._kept)), None)

    def load(self, text: str | bytes, registry: Registry) -> SchedulerConfig:
        """Return the configuration of this text, with the plugins of a session; raise `ConfigError`."""
        ahead = self._kept.pop(text, None)
        # A session with its own plugins may have more offers than the registry that `prepare` used, and a
        # configuration of the operator may load plugins.
        if ahead is None or registry.code is not NO_CODE or registry.has_own_plugins:
            return load_config(text, registry)
        if isinstance(ahead, ConfigError):
            raise ahead
        return ahead


_log = logging.getLogger("yunikorn.config")


class PolicyGroups(Protocol):
    """Configurations of the scheduler's owner by policy group, as in `yunikorn_service.policy_groups`."""

    @property
    def allow_rm_config(self) -> bool:
        """True if a resource manager may bring its own configuration, which is ignored otherwise."""
        ...

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups with a configuration, in the given order."""
        ...

    def find(self, group: str) -> str:
        """Return the group that serves `group`; raise `UsageError` if there is none."""
        ...

    def code(self, group: str) -> CodeSource | None:
        """Return what a group's configuration may load; None if that is nothing."""
        ...

    def read(self, group: str) -> str | bytes:
        """Read the configuration of a group; raise `UsageError` if there is none, or if reading fails."""
        ...


@attrs.frozen
class ConfigSource:
    """Configuration of a registration, and its source."""

    text: str | bytes
    """Configuration at the time of the registration."""
    group: str | None = None
    """Policy group of the configuration; None for the RM's own configuration, or if there are no groups."""

    owner: PolicyGroups | None = None
    """Source of the configuration; None without a group."""

    @classmethod
    def of(cls, request: RegisterResourceManagerRequest, owner: PolicyGroups | None) -> ConfigSource:
        """Return the configuration of a registration; raise `UsageError` if its policy group is unknown."""
        if owner is None or (request.config and owner.allow_rm_config):
            return cls(request.config or DEFAULT_TEXT)
        group = owner.find(request.policy_group)
        if request.config:
            _log.warning(
                "resource manager %s sent its own configuration, which is ignored in favour of that of"
                " policy group '%s': set allow_rm_config to accept configurations of resource managers",
                printable(request.rm_id),
                group,
            )
        return cls(owner.read(group), group, owner)

    @property
    def code(self) -> CodeSource | None:
        """Plugins that the configuration may load; None if that is only up to the registry."""
        return None if self.owner is None else self.owner.code(self.group or "")

    def again(self) -> str | bytes:
        """Read the configuration from its source again. Raises `UsageError` on failure."""
        assert self.owner is not None
        return self.owner.read(self.group or "")

    @property
    def refusal(self) -> str:
        """Reason why the resource manager may not change its configuration, or an empty text."""
        if self.owner is None or self.owner.allow_rm_config:
            return ""
        return (
            f"the configuration of policy group '{self.group}' belongs to the scheduler: change it there,"
            " or set allow_rm_config to accept configurations of resource managers"
        )


LOGGED = 20
"""Maximum number of logged problems per refused configuration; of the others only the number is logged."""
KINDS = {
    "this is not valid YAML": "not valid YAML",
    "unknown key": "an unknown key",
    "is given twice": "a key is given twice",
    "required, but missing": "a key is missing",
    "expected a ": "a value of another type",
}
"""Kinds of problems, by a text that their messages contain."""
OTHER = "a value that cannot be used"

_caller_logs = ContextVar("caller_logs", default=False)
"""True while the caller of the registration logs the reason of its failure."""


def log_refusal(label: str, error: ConfigError, *, secret: bool = True) -> None:
    """Log that the configuration of `label` stays in use, since the new one cannot be used."""
    problems = places_and_kinds(error) if secret else str(error)
    _log.error(
        "%s: the new configuration cannot be used, the current one stays in use: %s",
        printable(label),
        problems,
    )


@contextlib.contextmanager
def refused_registration_logged(rm_id: str, *, secret: bool) -> Iterator[None]:
    """Log a `ConfigError` raised within this context as the reason of a refused registration."""
    try:
        yield
    except ConfigError as error:
        if not _caller_logs.get():
            problems = places_and_kinds(error) if secret else str(error)
            text = "resource manager %s: the registration was refused, the configuration cannot be used: %s"
            _log.error(text, printable(rm_id), problems)
        raise


@contextlib.contextmanager
def refused_registration_logged_by_caller() -> Iterator[None]:
    """Leave the logging of refused registrations in this context to the caller, which has more details."""
    before = _caller_logs.set(True)
    try:
        yield
    finally:
        _caller_logs.reset(before)


def places_and_kinds(error: ConfigError) -> str:
    """Return the place and kind of each problem, without any text of the configuration."""
    shown = [_place_and_kind(problem) for problem in error.problems[:LOGGED]]
    if len(error.problems) > LOGGED:
        shown.append(f"and {len(error.problems) - LOGGED} more")
    return "; ".join(shown)


def _place_and_kind(problem: Problem) -> str:
    place = f"line {problem.line}, column {problem.column}: " if problem.line else ""
    kind = next((kind for mark, kind in KINDS.items() if mark in problem.message), OTHER)
    return place + kind
