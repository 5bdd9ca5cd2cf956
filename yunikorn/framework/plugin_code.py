"""Code that a configuration loads as plugins: `plugins: {load: [./mine.py, package.module]}`.

Data never runs code (`docs/decisions/0195`): the core itself loads nothing. The owner of a scheduler says
what a configuration may load, by the `CodeSource` of its registry.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

import attrs

from yunikorn.errors import UnknownPlugin


@attrs.frozen
class LoadedPlugin:
    """Plugin that a configuration has loaded; equal if nothing has changed."""

    name: str
    """File or module, as written."""
    digest: str
    """SHA-256 of a file; empty for a module."""
    module: object = attrs.field(eq=False, repr=False)
    path: str = attrs.field(default="", eq=False)
    """Absolute path of a file, with links and `..` as written; empty for a module."""


_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\Z")


def is_file(name: str) -> bool:
    """Return True if an entry of `plugins.load` names a file, and False for a module."""
    return name.endswith(".py") or "/" in name or "\\" in name


def is_module(name: str) -> bool:
    """Return True for the name of a module, such as `package.module`."""
    return _MODULE.match(name) is not None


def check_form(name: str) -> None:
    """Raise `UnknownPlugin` for an entry of `plugins.load` that is neither a file nor a module."""
    if not is_file(name) and not is_module(name):
        raise UnknownPlugin(
            f"{name!r} is neither a file nor a module: write a path such as ./mine.py, or package.module"
        )


FROM_RM = (
    "only a configuration file of the operator may load plugins, not a configuration that a resource manager"
    " sends"
)


class NotLoaded(UnknownPlugin):
    """A plugin that a configuration must not load; the message says why, and what to do."""


class CodeSource(Protocol):
    """Source of the plugins that a configuration loads."""

    @property
    def may_skip(self) -> bool:
        """True if a plugin that must not be loaded is left out, because the configuration is only read."""
        ...

    def load(self, name: str, stopwatch: Callable[[], float] | None = None) -> LoadedPlugin:
        """Import a module, or execute a file. Raises `UnknownPlugin`, or `NotLoaded` if that is not allowed.

        With a stopwatch, an import that takes long is logged.
        """
        ...

    def with_loaded(self, in_use: tuple[LoadedPlugin, ...]) -> CodeSource:
        """Return a source that has these plugins as they were loaded before."""
        ...


@attrs.frozen
class NoNewCode:
    """Source of plugins that were loaded before, and of no others."""

    in_use: tuple[LoadedPlugin, ...] = ()
    may_skip: bool = False

    def load(self, name: str, stopwatch: Callable[[], float] | None = None) -> LoadedPlugin:
        """Return the plugin of this name, as it was loaded before. Raises `UnknownPlugin` or `NotLoaded`."""
        check_form(name)
        found = next((one for one in self.in_use if one.name == name), None)
        if found is None:
            raise NotLoaded(FROM_RM)
        return found

    def with_loaded(self, in_use: tuple[LoadedPlugin, ...]) -> CodeSource:
        """Return the source of these plugins."""
        return NoNewCode(in_use, self.may_skip)


NO_CODE = NoNewCode()
"""Source of a configuration that may load nothing."""
