"""Configuration from the two ConfigMaps: read at the start, and followed while the shim runs."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping

from yunikorn.errors import ConfigError, YunikornError
from yunikorn_kubernetes.api_server.access_reviews import all_at_once
from yunikorn_kubernetes.api_server.api_resources import CONFIG_MAPS
from yunikorn_kubernetes.api_server.calls import ApiServer
from yunikorn_kubernetes.api_server.pod_events import LONGEST_NOTE, PodEvents, reference
from yunikorn_kubernetes.api_server.reflector import ChangeKind, ObjectChange
from yunikorn_kubernetes.config_maps import CONFIGS, NAMES
from yunikorn_kubernetes.objects import ConfigMap
from yunikorn_kubernetes.shim_config_maps import CheckQueues, ClusterConfig, read_config
from yunikorn_kubernetes.shim_settings import ShimLogLevels

_log = logging.getLogger("yunikorn.kubernetes.config")

USED = "the configuration is in use"
REFUSED = "the new configuration is refused, the old one stays in use"
STOPPED = "the configuration is refused, nothing is scheduled"
MOST_NOTES = 10
"""Events for the problems of one configuration."""

Use = Callable[[str], Awaitable[None]]
"""Function that makes the core use a text of queues; raises `YunikornError`."""
SetLevels = Callable[[ShimLogLevels], object]
"""Function that sets the levels of logs."""


UseSettings = Callable[[Mapping[str, str]], Awaitable[None]]
"""Function that makes the core use other settings besides the queues."""


async def _no_settings(_: Mapping[str, str]) -> None:
    pass


class Configuration:
    """Configuration in force, and its changes.

    A change with any problem is refused as a whole: an event on the ConfigMap lists all problems, and the
    configuration in force stays.
    """

    def __init__(
        self,
        check_queues: CheckQueues,
        use: Use,
        events: PodEvents,
        set_levels: SetLevels = lambda _: None,
        use_settings: UseSettings = _no_settings,
    ) -> None:
        """Create an empty configuration.

        `use` is called with queues that have changed, then `use_settings` with settings of the core.
        """
        self._check_queues, self._use, self._events = check_queues, use, events
        self._set_levels, self._use_settings = set_levels, use_settings
        self._maps: dict[str, ConfigMap] = {}
        self._current = read_config({})
        self._changed = asyncio.Event()
        self._refused: str = ""

    @property
    def current(self) -> ClusterConfig:
        """Configuration in force; the defaults before `load`."""
        return self._current

    @property
    def has_configs(self) -> bool:
        """True if the ConfigMap of the administrator exists."""
        return CONFIGS in self._maps

    async def load(self, server: ApiServer, namespace: str) -> ClusterConfig:
        """Read both ConfigMaps; one that does not exist is empty.

        Raises `ConfigError` with all problems, which are also an event of the ConfigMap, and `ApiError` if
        they cannot be read.
        """
        given = await all_at_once(server.find(CONFIG_MAPS, namespace, name) for name in NAMES)
        self._maps = {name: one for name, one in zip(NAMES, given, strict=True) if one is not None}
        read = functools.partial(read_config, dict(self._maps), check_queues=self._check_queues)
        try:
            self._current = found = await asyncio.to_thread(read)
        except ConfigError as error:
            problems = [str(problem) for problem in error.problems]
            self._tell_all(dict(self._maps), "ConfigurationRefused", STOPPED, problems)
            raise
        if not self._maps:
            _log.warning(
                "there is no ConfigMap %s in the namespace %s: defaults apply, and each namespace of pods is"
                " a queue below root",
                " or ".join(NAMES),
                namespace,
            )
        for warning in found.warnings:
            _log.warning("%s", warning)
        self._set_levels(found.settings.logs)
        return found

    def changed(self, change: ObjectChange[ConfigMap]) -> None:
        """Note a change of a ConfigMap of the namespace."""
        name = change.object.metadata.name
        if name not in NAMES:
            return
        known = self._maps.get(name)
        if change.kind is ChangeKind.DELETED:
            self._maps.pop(name, None)
        else:
            self._maps[name] = change.object
            if known is not None and _content(known) == _content(change.object):
                return
        self._changed.set()

    async def follow(self) -> None:
        """Use changes until this is cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._reload()

    async def _reload(self) -> None:
        maps = dict(self._maps)
        read = functools.partial(read_config, maps, current=self.current, check_queues=self._check_queues)
        try:
            found = await asyncio.to_thread(read)
            if found.queues != self.current.queues:
                await self._use(found.queues)
            if found.extra != self.current.extra:
                await self._use_settings(found.extra)
        except YunikornError as error:
            self._refuse(maps, error)
            return
        self._refused = ""
        is_new = found.entries != self.current.entries
        is_told = not is_new and found.warnings == self.current.warnings
        self._current = found
        for warning in found.warnings:
            _log.warning("%s", warning)
        if is_new:
            self._set_levels(found.settings.logs)
            _log.info("the configuration was reloaded from %s", _sources(maps))
        if is_told:
            return
        if found.warnings:
            self._tell_all(maps, "ConfigurationUpdated", USED, [*found.warnings])
        else:
            self._tell(maps, "ConfigurationUpdated", USED, warning=False)

    def _refuse(self, maps: dict[str, ConfigMap], error: YunikornError) -> None:
        found = error.problems if isinstance(error, ConfigError) else [error]
        problems = [str(problem) for problem in found]
        note = f"{REFUSED}: {'; '.join(problems)}"
        if note != self._refused:
            self._refused = note
            _log.error("%s", note)
            self._tell_all(maps, "ConfigurationRefused", REFUSED, problems)

    def _tell_all(self, maps: dict[str, ConfigMap], reason: str, head: str, texts: list[str]) -> None:
        for note in notes_of(head, texts):
            self._tell(maps, reason, note, warning=True)

    def _tell(self, maps: dict[str, ConfigMap], reason: str, note: str, *, warning: bool) -> None:
        told = maps.get(CONFIGS) or next(iter(maps.values()), None)
        if told is not None:
            self._events.report(reference(CONFIG_MAPS, told), reason, "Reload", note, warning=warning)


def _sources(maps: Mapping[str, ConfigMap]) -> str:
    """Return the ConfigMaps with their versions, so that a log shows which change is in use."""
    found = [(name, maps[name].metadata.resource_version) for name in NAMES if name in maps]
    if not found:
        return "no ConfigMap: the defaults apply"
    return ", ".join(f"ConfigMap {name} (version {version})" for name, version in found)


def notes_of(head: str, texts: list[str]) -> list[str]:
    """Return notes that fit into events, each a head and as many whole texts as have room.

    Texts behind the last note are in the log only; that note has their number.
    """
    room = LONGEST_NOTE - len(f"{head} (99 of 99): ; and 9999 more in the log".encode())
    groups: list[list[str]] = []
    used = room
    for text in texts:
        length = len(text.encode()) + len("; ")
        if used + length > room:
            groups.append([])
            used = 0
        groups[-1].append(text)
        used += length
    kept, left = groups[:MOST_NOTES], sum(map(len, groups[MOST_NOTES:]))
    if left:
        kept[-1].append(f"and {left} more in the log")
    if len(kept) == 1:
        return [f"{head}: {'; '.join(kept[0])}"]
    return [f"{head} ({number} of {len(kept)}): {'; '.join(one)}" for number, one in enumerate(kept, 1)]


def _content(config_map: ConfigMap) -> object:
    return (config_map.data or {}, config_map.binary_data or {})
