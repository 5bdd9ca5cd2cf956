"""Configurations that other threads load ahead, so that the core does not stand still for large ones."""

from __future__ import annotations

from yunikorn.config.load import load_config
from yunikorn.config.schema import SchedulerConfig
from yunikorn.errors import ConfigError
from yunikorn.registry import Registry

KEPT = 4
"""Configurations that are kept for the call that uses them; of more the oldest is forgotten."""


class LoadedAhead:
    """Configurations by their texts, each for the next call that uses it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._kept: dict[str | bytes, SchedulerConfig | ConfigError] = {}

    def prepare(self, text: str) -> None:
        """Load a configuration, in any thread; its problems are raised by `load`."""
        try:
            self._kept[text] = load_config(text, self._registry)
        except ConfigError as error:
            self._kept[text] = error
        while len(self._kept) > KEPT:
            # Another thread may have taken the same one meanwhile.
            self._kept.pop(next(iter(self._kept)), None)

    def load(self, text: str | bytes, registry: Registry) -> SchedulerConfig:
        """The configuration of this text, with the plugins of a session; raises `ConfigError`."""
        ahead = self._kept.pop(text, None)
        # A session with plugins of its own may find others than those that were known before.
        if ahead is None or len(registry.offers()) != len(self._registry.offers()):
            return load_config(text, registry)
        if isinstance(ahead, ConfigError):
            raise ahead
        return ahead
