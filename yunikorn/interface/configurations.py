"""Which configuration a resource manager runs on: by its policy group, or its own (decision 35).

Whoever owns the scheduler names a source for each policy group: a text, or a reader that is called each
time the text is wanted, as at every reload. Resource managers whose configuration is the same name the same
group (seed: scheduler interface, `policyGroup`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

from yunikorn.config.load import DEFAULT_TEXT
from yunikorn.errors import UsageError, printable
from yunikorn.suggestions import suggest

if TYPE_CHECKING:
    from yunikorn.interface.messages import RegisterResourceManagerRequest

_log = logging.getLogger("yunikorn.config")

Source = str | bytes | Callable[[], str | bytes]
"""A text, or what reads it; a reader may raise `OSError` or `UsageError`."""

DEFAULT_GROUPS = ("", "default", "queues")
"""Names of the default group: for who names none, and what YuniKorn's shims send unasked (facts §16.3)."""


class Configurations:
    """The configurations of a scheduler's owner, by policy group."""

    def __init__(self, sources: Mapping[str, Source], *, allow_rm_config: bool = False) -> None:
        self._sources = dict(sources)
        self.allow_rm_config = allow_rm_config
        """Whether a resource manager may bring a configuration of its own; otherwise it is passed over."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that have a configuration, in the order they were given."""
        return tuple(self._sources)

    def find(self, group: str) -> str:
        """The group whose source serves `group`.

        A default group is served by whichever default group there is, and who names none also by the only
        one there is. Raises `UsageError` with the known groups where nothing serves it.
        """
        if group in self._sources:
            return group
        if group in DEFAULT_GROUPS:
            known = [name for name in DEFAULT_GROUPS if name in self._sources]
            if known:
                return known[0]
            if not group and len(self._sources) == 1:
                return next(iter(self._sources))
        names = [f"'{name}'" if name else "the default, by naming none" for name in self._sources]
        what = (
            f"no policy group is called '{printable(group)}'" if group else "there is no default policy group"
        )
        hint = suggest(group, [name for name in self._sources if name])
        listed = ", ".join(names) or "none"
        raise UsageError(f"{what}{hint}; known: {listed}. Register with one of these as policy_group")

    def read(self, group: str) -> str | bytes:
        """The configuration of a group, read anew; raises `UsageError` without one, or if reading fails."""
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
    """What a registration runs on, and where that came from."""

    text: str | bytes
    """The configuration at the registration."""
    group: str | None = None
    """The policy group it is of; None if the resource manager brought its own, or there are no groups."""

    @classmethod
    def of(
        cls, request: RegisterResourceManagerRequest, configurations: Configurations | None
    ) -> ConfigSource:
        """What a registration runs on (decision 35); raises `UsageError` if its policy group is unknown."""
        if configurations is None:
            return cls(request.config or DEFAULT_TEXT)
        if request.config and configurations.allow_rm_config:
            return cls(request.config)
        group = configurations.find(request.policy_group)
        if request.config:
            _log.warning(
                "resource manager %s brings a configuration of its own, which is passed over for that of"
                " policy group '%s': it has to be allowed to (allow_rm_config)",
                printable(request.rm_id),
                group,
            )
        return cls(configurations.read(group), group)

    def again(self, configurations: Configurations | None) -> str | bytes | None:
        """What its source says now; None if there is none to ask. Raises `UsageError` if that fails."""
        if self.group is None or configurations is None:
            return None
        return configurations.read(self.group)

    def refusal(self, configurations: Configurations | None) -> str:
        """Why the resource manager may not change its configuration; empty if it may."""
        if self.group is None or configurations is None or configurations.allow_rm_config:
            return ""
        return (
            f"the configuration of policy group '{self.group}' is the scheduler's own: change it there,"
            " or let resource managers bring theirs (allow_rm_config)"
        )
