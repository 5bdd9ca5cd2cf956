"""Configuration of the shim and of the core, from the two ConfigMaps of Apache YuniKorn.

Their entries are merged as `yunikorn_kubernetes.config_maps` describes. Of the queue configurations, the
policy group chooses one; the core receives all other keys as they are.

An update is used completely or not at all: with any problem, the configuration in force stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from yunikorn.errors import ConfigError, Problem, printable
from yunikorn.text import suggest
from yunikorn_kubernetes.config_maps import CONFIGS, YAML, Entry, merge
from yunikorn_kubernetes.objects import ConfigMap
from yunikorn_kubernetes.shim_settings import (
    LONGEST,
    ShimSetting,
    ShimSettings,
    all_settings,
    bad_values_for_the_core,
    is_known,
    nearest,
    read_settings,
)

HOT_REFRESH = "service.enableConfigHotRefresh"

CheckQueues = Callable[[str], Iterable[Problem]]
"""Function that returns the problems of a queue configuration."""


@attrs.frozen
class ClusterConfig:
    """Configuration in force, or to be used."""

    settings: ShimSettings
    queues: str
    """Queue configuration of the policy group; empty if there is none."""
    entries: Mapping[str, Entry]
    """All entries in force, as merged."""
    warnings: tuple[str, ...] = ()
    """Texts for the administrator: unknown keys, and changes that need a restart."""

    @property
    def extra(self) -> dict[str, str]:
        """Entries for the core besides the queue configuration."""
        return {key: entry.text for key, entry in self.entries.items() if not key.endswith(YAML)}


def read_config(
    maps: Mapping[str, ConfigMap | None],
    *,
    current: ClusterConfig | None = None,
    check_queues: CheckQueues | None = None,
) -> ClusterConfig:
    """Return the configuration of ConfigMaps, at the start or, with `current`, as an update.

    Changes of keys that need a restart are left out of an update, with a warning each. While hot refresh is
    off, an update changes nothing. Raises `ConfigError` with all problems of settings, compressed entries and
    the queue configuration; each has the ConfigMap and the key as its path.
    """
    if current is not None and not current.settings.service.hot_refresh:
        ignored = f"{HOT_REFRESH} is false: changes of the ConfigMaps are ignored until a restart"
        return attrs.evolve(current, warnings=(ignored,))
    entries, problems, warnings = merge(maps)
    settings, wrong = read_settings(_texts(entries))
    problems += [_placed(problem, entries) for problem in wrong]
    if current is not None:
        warnings += _keep(entries, current)
        settings, _ = read_settings(_texts(entries))
    values = _texts(entries)
    chosen = f"{settings.service.policy_group}{YAML}"
    queues = values.get(chosen, "")
    if check_queues is not None and queues:
        at = f"{entries[chosen].source}: {chosen}"
        problems += [_inside(problem, at) for problem in check_queues(queues)]
    if problems:
        raise ConfigError(problems)
    warnings += _unused(entries, chosen)
    warnings += [f"{entries[key].source}: {key}: {what}" for key, what in bad_values_for_the_core(values)]
    return ClusterConfig(settings, queues, entries, tuple(warnings))


def _texts(entries: Mapping[str, Entry]) -> dict[str, str]:
    return {key: entry.text for key, entry in entries.items()}


def _keep(entries: dict[str, Entry], current: ClusterConfig) -> list[str]:
    """Restore the entries that only a restart changes; return a warning for each."""
    warnings = []
    kept = [setting for setting in all_settings().values() if not setting.reloadable]
    for setting in kept:
        key = setting.key
        before, after = current.entries.get(key), entries.get(key)
        if before is None:
            entries.pop(key, None)
        else:
            entries[key] = before
        if not _is_same(setting, before, after):
            old, new = (_shown(setting, entry) for entry in (before, after))
            source = (after or before or Entry("", CONFIGS)).source
            warnings.append(f"{source}: {key}: the change from {old} to {new} needs a restart")
    return warnings


def _is_same(setting: ShimSetting, before: Entry | None, after: Entry | None) -> bool:
    """Return True for texts with the same meaning, such as the default and no text."""

    def value(entry: Entry | None) -> object:
        if entry is None:
            return setting.default
        try:
            return setting.kind.parse(entry.text.strip())
        except ValueError:
            return entry.text

    return value(before) == value(after)


def _shown(setting: ShimSetting, entry: Entry | None) -> str:
    if entry is None:
        return f"the default ({setting.shown_default or 'none'})"
    return printable(repr(entry.text[:LONGEST]))


def _placed(problem: Problem, entries: Mapping[str, Entry]) -> Problem:
    return problem._replace(path=f"{entries[problem.path].source}: {problem.path}")


def _inside(problem: Problem, at: str) -> Problem:
    return problem._replace(path=f"{at}: {problem.path}" if problem.path else at)


def _unused(entries: Mapping[str, Entry], chosen: str) -> list[str]:
    warnings = []
    for key, entry in entries.items():
        place = f"{entry.source}: {printable(key)}"
        if key.endswith(YAML):
            if key != chosen:
                hint = "" if chosen in entries else suggest(key, [chosen])
                warnings.append(f"{place} is not used: the policy group reads {chosen}{hint}")
        elif not is_known(key):
            warnings.append(f"{place} is an unknown key{nearest(key)}")
    return warnings
