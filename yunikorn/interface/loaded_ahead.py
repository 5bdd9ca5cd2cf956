"""Configurations that other threads load ahead of their use, so that a large one does not block the core."""

from __future__ import annotations

from yunikorn.config.load import load_config
from yunikorn.config.schema import SchedulerConfig
from yunikorn.errors import ConfigError
from yunikorn.framework.registry import Registry

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
        # A session with its own plugins may have more offers than the registry that `prepare` used.
        if ahead is None or len(registry.offers()) != len(self._registry.offers()):
            return load_config(text, registry)
        if isinstance(ahead, ConfigError):
            raise ahead
        return ahead
