"""Properties of queues: inherited free-form texts, and a typed view of the known ones.

An invalid value never invalidates a configuration: the reader uses the default and adds a warning. Only names
of policies are checked strictly, by `yunikorn.config.plugin_refs`. See `docs/decisions/archive/0009`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import attrs

from yunikorn.clock import SECOND
from yunikorn.config import values
from yunikorn.config.keys import OPTION, key, keys_of
from yunikorn.config.values import plugin
from yunikorn.framework import kinds
from yunikorn.text import suggest

APP_SORT = "application.sort.policy"
QUEUE_SORT = "queue.sort.policy"
NODE_SORT = "node.sort.policy"
QUOTA_POLICY = "quota.policy"
PRIORITY_POLICY = "priority.policy"
PRIORITY_OFFSET = "priority.offset"
PREEMPTION_POLICY = "preemption.policy"
QUOTA_DELAY = "quota.preemption.delay"
STATE = "queue.state"

POLICIES = (APP_SORT, QUEUE_SORT, QUOTA_POLICY)
"""Properties that name a policy; the options of the policy are properties `POLICY.OPTION`."""

_QUOTA_OPTIONS = f"{QUOTA_POLICY}."
_CHANGED_BELOW = {PRIORITY_POLICY, PRIORITY_OFFSET, PREEMPTION_POLICY}
_RENAMED = {"preemption.quota.delay": QUOTA_DELAY}

Fault = tuple[str, str]
"""Property, and the problem with its value."""


def _options_of(policy: str) -> Any:
    """Return the attribute of the options of a policy, each of which is a property."""
    return key(values.TEXT, attrs.Factory(dict), name=policy + OPTION, ours=True)


@attrs.frozen
class QueueSettings:
    """Typed view of the properties of a queue; times in nanoseconds."""

    app_sort: str = key(plugin(kinds.APP_SORT), "fifo", name=APP_SORT)
    app_sort_options: Mapping[str, str] = _options_of(APP_SORT)
    queue_sort: str = key(plugin(kinds.QUEUE_SORT), "fair", name=QUEUE_SORT, ours=True)
    queue_sort_options: Mapping[str, str] = _options_of(QUEUE_SORT)
    node_sort: str = key(values.TEXT, "", name=NODE_SORT, ours=True)
    sort_priority: bool = key(values.SWITCH, True, name="application.sort.priority")
    priority_fence: bool = key(values.FENCE, False, name=PRIORITY_POLICY)
    priority_offset: int = key(values.INTEGER_TEXT, 0, name=PRIORITY_OFFSET)
    preemption_policy: str = key(values.PREEMPTION, "default", name=PREEMPTION_POLICY)
    preemption_delay: int = key(values.DELAY_TEXT, 30 * SECOND, name="preemption.delay")
    preempts_by_priority: bool = key(values.SWITCH, False, name="preemption.by.priority", ours=True)
    preempts_within: bool = key(values.SWITCH, False, name="preemption.within.queue", ours=True)
    quota_preemption_delay: int = key(values.DURATION, 0, name=QUOTA_DELAY)
    quota_policy: str = key(plugin(kinds.QUOTA), "", name=QUOTA_POLICY, ours=True)
    quota_policy_options: Mapping[str, str] = _options_of(QUOTA_POLICY)
    backoff_count: int = key(values.COUNT_TEXT, 0, name="application.unschedasks.backoff")
    backoff_delay: int = key(values.DELAY_TEXT, 30 * SECOND, name="application.unschedasks.backoff.delay")
    stopped: bool = key(values.ACTIVITY, False, name=STATE, ours=True)


DEFAULTS = QueueSettings()
_KEYS = {each.name: each for each in keys_of(QueueSettings) if not each.name.endswith(OPTION)}
KNOWN = tuple(_KEYS)
"""Names of all known properties, without options of policies."""


def effective_properties(parent: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a configured queue: those inherited from its parent, overlaid by its own.

    `parent` has the effective properties of the parent. Fences, offsets, a stopped state and a quota policy
    are not inherited; of the preemption policy only `disabled` is. Options of a policy are inherited only
    together with its name: a queue that names a policy starts without options.
    """
    merged = {
        key: _handed_down(key, value) if key in _CHANGED_BELOW else value
        for key, value in parent.items()
        if key != STATE and key != QUOTA_POLICY and not key.startswith(_QUOTA_OPTIONS)
    }
    for policy in POLICIES:
        if policy in own:
            prefix = policy + "."
            merged = {key: value for key, value in merged.items() if not key.startswith(prefix)}
    merged.update(own)
    return merged


class InForce:
    """Effective properties of a configured queue, and their typed view.

    Children without own properties share one object, because most queues of a large tree have none.
    """

    __slots__ = ("_plain", "properties", "settings")

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.properties = properties
        self.settings = read_settings(properties)[0]
        self._plain: InForce | None = None

    def below(self, own: Mapping[str, str]) -> InForce:
        """Return the effective properties of a child whose own properties are `own`."""
        if own:
            return InForce(effective_properties(self.properties, own))
        if self._plain is None:
            self._plain = InForce(effective_properties(self.properties, own))
        return self._plain


def policy_options(properties: Mapping[str, str], policy: str) -> dict[str, str]:
    """Return the options of the policy named by the property `policy`: all `POLICY.OPTION`."""
    prefix = policy + "."
    return {key[len(prefix) :]: value for key, value in properties.items() if key.startswith(prefix)}


def read_settings(properties: Mapping[str, str]) -> tuple[QueueSettings, list[Fault]]:
    """Return the typed view of `properties`, and the invalid values that the default replaces."""
    if not properties:
        return DEFAULTS, []
    settings, faults = _read(tuple(properties.items()))
    return settings, list(faults)


@lru_cache(maxsize=256)  # Most queues of a tree have equal properties, and each is read several times.
def _read(properties: tuple[tuple[str, str], ...]) -> tuple[QueueSettings, tuple[Fault, ...]]:
    faults: list[Fault] = []
    read: dict[str, object] = {}
    for name, text in properties:
        known = _KEYS.get(name)
        if known is None:
            faults.extend(_stray(name))
        elif text or not known.value.plugins:
            try:
                read[known.field] = known.value.parse(text)
            except ValueError as error:
                faults.append((name, f"{error}; the default is used"))
    for policy, field in _OPTIONS:
        read[field] = MappingProxyType(policy_options(dict(properties), policy))
    return QueueSettings(**read), tuple(faults)  # type: ignore[arg-type]


_OPTIONS = (
    (APP_SORT, "app_sort_options"),
    (QUEUE_SORT, "queue_sort_options"),
    (QUOTA_POLICY, "quota_policy_options"),
)


def _handed_down(key: str, value: str) -> str:
    if key == PRIORITY_POLICY:
        return "default"
    if key == PRIORITY_OFFSET:
        return "0"
    if key == PREEMPTION_POLICY and value.lower() != "disabled":
        return "default"
    return value


def _stray(key: str) -> list[Fault]:
    # Unknown properties are valid, but those similar to a known name are probably mistakes.
    if key in _RENAMED:
        return [(key, f"unknown property, ignored: the property is now called '{_RENAMED[key]}'")]
    if any(key.startswith(policy + ".") for policy in POLICIES):
        return []
    hint = suggest(key, KNOWN)
    return [(key, f"unknown property, ignored{hint}")] if hint else []
