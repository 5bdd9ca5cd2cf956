"""Plugins of installed packages: found by their entry points, imported when they are needed.

A plugin that is disabled by its name is never imported. The environment variable `YUNIKORN_PLUGINS` restricts
the installed plugins of a process: `off`, or names of plugins and distributions, separated by commas.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from importlib import metadata

import attrs

from yunikorn.errors import UsageError, printable
from yunikorn.text import suggest

_log = logging.getLogger("yunikorn.plugins")

GROUP = "yunikorn"
"""Group of entry points by which packages announce plugins."""
VARIABLE = "YUNIKORN_PLUGINS"
OFF = "off"
SLOW = 2.0
"""Seconds after which an import is reported."""


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
        if stopwatch is None:
            return self.load()
        before = stopwatch()
        try:
            return self.load()
        finally:
            seconds = stopwatch() - before
            if seconds > SLOW:
                text = "importing plugin %s (%s %s) took %.1f s; YUNIKORN_PLUGINS can leave it out"
                shown = (printable(one) for one in (self.name, self.distribution, self.version))
                _log.warning(text, *shown, seconds)


def installed_plugins(only: Collection[str] | None = None) -> list[InstalledPlugin]:
    """Return the installed plugins by name; with `only`, those of these names or distributions.

    Raises `UsageError` for a name that is not installed.
    """
    found = []
    for entry in metadata.entry_points(group=GROUP):
        # Damaged metadata has no name and version, but the plugin may still work.
        origin = (entry.dist.name or "", entry.dist.version or "") if entry.dist else ("", "")
        found.append((entry.value, InstalledPlugin(entry.name, *origin, entry.load)))
    found.sort(key=lambda one: (one[1].name, one[0], one[1].distribution))
    plugins = [plugin for _, plugin in found]
    if only is None:
        return plugins
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
    """Installed plugins that have not been imported yet."""

    def __init__(
        self,
        plugins: Collection[InstalledPlugin],
        load: Callable[[InstalledPlugin, Callable[[], float] | None], None],
        stopwatch: Callable[[], float] | None,
    ) -> None:
        self.names = {name for plugin in plugins for name in plugin.names}
        self._plugins = list(plugins)
        self._load, self._stopwatch = load, stopwatch
        self._lock = threading.RLock()

    def load(self, disabled: frozenset[str]) -> None:
        """Import all plugins but the `disabled` ones, once."""
        if not self._plugins:
            return
        with self._lock:
            plugins, self._plugins = self._plugins, []
            for plugin in plugins:
                if disabled.isdisjoint(plugin.names):
                    self._load(plugin, self._stopwatch)
                else:
                    self._plugins.append(plugin)
