"""Configurations by policy group, and the choice of one at a registration (`docs/decisions/0035`).

The owner of the scheduler names a source for each policy group: a text, or a reader that is called for every
registration and reload. Resource managers with the same configuration register with the same `policyGroup`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

from yunikorn.config.load import DEFAULT_TEXT
from yunikorn.errors import UsageError, printable
from yunikorn.text import suggest

if TYPE_CHECKING:
    from yunikorn.interface.messages import RegisterResourceManagerRequest

_log = logging.getLogger("yunikorn.config")

Source = str | bytes | Callable[[], str | bytes]
"""A text, or a function that reads one; a reader may raise `OSError` or `UsageError`."""

DEFAULT_GROUPS = ("", "default", "queues")
"""Names of the default group: no name at all, and the names that YuniKorn's shims send by default."""


class Configurations:
    """Configurations of the scheduler's owner, by policy group."""

    def __init__(self, sources: Mapping[str, Source], *, allow_rm_config: bool = False) -> None:
        self._sources = dict(sources)
        self.allow_rm_config = allow_rm_config
        """True if a resource manager may bring its own configuration, which is ignored otherwise."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups with a configuration, in the given order."""
        return tuple(self._sources)

    def find(self, group: str) -> str:
        """Return the group whose source serves `group`.

        Any default group is served by the default group that has a source. An empty name is also served by
        the only group, if there is just one. Raises `UsageError` with the known groups otherwise.
        """
        if group in self._sources:
            return group
        if group in DEFAULT_GROUPS:
            known = [name for name in DEFAULT_GROUPS if name in self._sources]
            if known:
                return known[0]
            if not group and len(self._sources) == 1:
                return next(iter(self._sources))
        names = [f"'{name}'" if name else "the default group (empty policy_group)" for name in self._sources]
        what = (
            f"no policy group is called '{printable(group)}'" if group else "there is no default policy group"
        )
        hint = suggest(group, [name for name in self._sources if name])
        listed = ", ".join(names) or "none"
        raise UsageError(f"{what}{hint}; known: {listed}. Register with one of these names as policy_group")

    def read(self, group: str) -> str | bytes:
        """Read the configuration of a group; raise `UsageError` if there is none, or if reading fails."""
        name = self.find(group)
        source = self._sources[name]
        if not callable(source):
            return source
        try:
            return source()
        except (OSError, UnicodeError) as error:
            raise UsageError(f"the configuration of policy group '{name}' cannot be read: {error}") from error


@attrs.frozen
class ConfigSource:
    """Configuration of a registration, and its source."""

    text: str | bytes
    """Configuration at the time of the registration."""
    group: str | None = None
    """Policy group of the configuration; None for the RM's own configuration, or if there are no groups."""

    @classmethod
    def of(
        cls, request: RegisterResourceManagerRequest, configurations: Configurations | None
    ) -> ConfigSource:
        """Return the configuration of a registration; raise `UsageError` if its policy group is unknown."""
        if configurations is None:
            return cls(request.config or DEFAULT_TEXT)
        if request.config and configurations.allow_rm_config:
            return cls(request.config)
        group = configurations.find(request.policy_group)
        if request.config:
            _log.warning(
                "resource manager %s sent its own configuration, which is ignored in favour of that of"
                " policy group '%s': set allow_rm_config to accept configurations of resource managers",
                printable(request.rm_id),
                group,
            )
        return cls(configurations.read(group), group)

    def again(self, configurations: Configurations | None) -> str | bytes | None:
        """Read the configuration from its source again, or return None without a source.

        Raises `UsageError` on failure.
        """
        if self.group is None or configurations is None:
            return None
        return configurations.read(self.group)

    def refusal(self, configurations: Configurations | None) -> str:
        """Return the reason why the resource manager may not change its configuration, or an empty text."""
        if self.group is None or configurations is None or configurations.allow_rm_config:
            return ""
        return (
            f"the configuration of policy group '{self.group}' belongs to the scheduler: change it there,"
            " or set allow_rm_config to accept configurations of resource managers"
        )
