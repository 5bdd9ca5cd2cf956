"""Plugins of installed packages: found by their entry points, imported when they are needed.

A plugin that is disabled by its name is never imported. The environment variable `YUNIKORN_PLUGINS` restricts
the installed plugins of a process: `off`, or names of plugins and distributions, separated by commas.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata

import attrs

from yunikorn.errors import UsageError, printable
from yunikorn.framework.kinds import KINDS
from yunikorn.text import suggest

_log = logging.getLogger("yunikorn.plugins")

Load = Callable[["InstalledPlugin", Callable[[], float] | None], None]
"""Function that imports and registers a plugin, and measures the import with a stopwatch."""

GROUP = "yunikorn"
"""Group of entry points by which packages announce plugins."""
VARIABLE = "YUNIKORN_PLUGINS"
OFF = "off"
SLOW = 2.0
"""Seconds after which an import is reported."""


@contextmanager
def timed(what: str, stopwatch: Callable[[], float] | None, advice: str = "") -> Iterator[None]:
    """Log `what` if it takes long; measure nothing without a stopwatch."""
    before = 0.0 if stopwatch is None else stopwatch()
    try:
        yield
    finally:
        seconds = 0.0 if stopwatch is None else stopwatch() - before
        if seconds > SLOW:
            _log.warning("%s took %.1f s%s", what, seconds, advice)


@attrs.frozen
class InstalledPlugin:
    """Plugin of an installed package."""

    name: str
    distribution: str
    version: str
    load: Callable[[], object] = attrs.field(eq=False, repr=False)

    @property
    def names(self) -> set[str]:
        """Names that disable the whole plugin."""
        return {self.name, f"{self.name}@{self.distribution}"}

    def load_timed(self, stopwatch: Callable[[], float] | None) -> object:
        """Import the plugin, and log an import that takes long; raises what the import raises."""
        name, distribution, version = map(printable, (self.name, self.distribution, self.version))
        what = f"importing plugin {name} ({distribution} {version})"
        with timed(what, stopwatch, "; YUNIKORN_PLUGINS can leave it out"):
            return self.load()


def installed_plugins() -> list[InstalledPlugin]:
    """Return the installed plugins by name, without importing them."""
    found = []
    for entry in metadata.entry_points(group=GROUP):
        # Damaged metadata has no name and version, but the plugin may still work.
        origin = (entry.dist.name or "", entry.dist.version or "") if entry.dist else ("", "")
        found.append((entry.value, InstalledPlugin(entry.name, *origin, entry.load)))
    found.sort(key=lambda one: (one[1].name, one[0], one[1].distribution))
    return [plugin for _, plugin in found]


def selected_plugins(
    plugins: Collection[InstalledPlugin], only: Collection[str] | None
) -> list[InstalledPlugin]:
    """Return the plugins of these names or distributions, or all if `only` is None.

    Raises `UsageError` for a name that is not installed.
    """
    if only is None:
        return list(plugins)
    known = sorted({name for plugin in plugins for name in (plugin.name, plugin.distribution) if name})
    for name in only:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise UsageError(
                f"{VARIABLE}: no plugin or distribution is called '{name}'{suggest(name, known)};"
                f" installed: {listed}"
            )
    return [plugin for plugin in plugins if plugin.name in only or plugin.distribution in only]


def chosen_plugins(environment: Mapping[str, str]) -> list[str] | None:
    """Return the plugins that the environment restricts a process to; None for all."""
    text = environment.get(VARIABLE, "").strip()
    if not text:
        return None
    return [] if text.lower() == OFF else [name.strip() for name in text.split(",") if name.strip()]


class PendingPlugins:
    """Installed plugins that have not been imported yet, and those that this process leaves out."""

    def __init__(
        self,
        plugins: Collection[InstalledPlugin] = (),
        left_out: Collection[InstalledPlugin] = (),
        load: Load | None = None,
        stopwatch: Callable[[], float] | None = None,
    ) -> None:
        self.names = {name for plugin in (*plugins, *left_out) for name in plugin.names}
        self.left_out = sorted({plugin.name for plugin in left_out})
        self._sources = {plugin.distribution or plugin.name for plugin in left_out}
        self._plugins = list(plugins)
        self._load, self._stopwatch = load, stopwatch
        self._lock = threading.RLock()

    @classmethod
    def found(
        cls, only: Collection[str] | None, load: Load, stopwatch: Callable[[], float] | None
    ) -> PendingPlugins:
        """Find the installed plugins, and leave out all but those of the names or distributions in `only`.

        Raises `UsageError` for a name that is not installed.
        """
        plugins = installed_plugins()
        selected = selected_plugins(plugins, only)
        return cls(selected, [one for one in plugins if one not in selected], load, stopwatch)

    def means_unimported(self, name: str) -> bool:
        """Return True if a name in `plugins.disable` is known without importing a plugin.

        It is the name of an installed plugin, or `NAME@SOURCE` with the source of a plugin that is left out.
        """
        return name in self.names or self.may_offer_left_out(name)

    def may_offer_left_out(self, name: str) -> bool:
        """Return True if a name is `NAME@SOURCE` or `KIND:NAME@SOURCE` of a plugin that is left out."""
        kind_id, colon, rest = name.rpartition(":")
        plain, _, source = rest.partition("@")
        is_kind = not colon or any(kind.id == kind_id for kind in KINDS)
        return is_kind and bool(plain) and source in self._sources

    def load(self, disabled: frozenset[str]) -> None:
        """Import all plugins but the `disabled` ones, once."""
        if not self._plugins or self._load is None:
            return
        with self._lock:
            plugins, self._plugins = self._plugins, []
            for plugin in plugins:
                if disabled.isdisjoint(plugin.names):
                    self._load(plugin, self._stopwatch)
                else:
                    self._plugins.append(plugin)
