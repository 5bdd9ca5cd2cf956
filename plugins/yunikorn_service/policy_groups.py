"""Configurations of the scheduler's owner by policy group: texts, or functions that read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from yunikorn.errors import UsageError, printable
from yunikorn.framework.plugin_code import CodeSource
from yunikorn.text import listed, suggest

Source = str | bytes | Callable[[], str | bytes]
"""A text, or a function that reads one; a reader may raise `OSError` or `UsageError`."""

DEFAULT_GROUPS = ("", "default", "queues")
"""Names of the default group: no name at all, and the names that YuniKorn's shims send by default."""


class Configurations:
    """Configurations of the scheduler's owner, by policy group."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        *,
        allow_rm_config: bool = False,
        code: Mapping[str, CodeSource] | None = None,
    ) -> None:
        """Create from a source per policy group, with what the configurations of groups may load."""
        self._sources = dict(sources)
        self._code = dict(code or {})
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
        raise UsageError(
            f"{what}{hint}; known: {listed(names)}. Register with one of these names as policy_group"
        )

    def code(self, group: str) -> CodeSource | None:
        """Return what a group's configuration may load; None if that is nothing."""
        return self._code.get(self.find(group))

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
