"""Properties of queues: inherited free-form texts, and a typed view of the known ones.

An invalid value never invalidates a configuration: the reader uses the default and adds a warning. Only names
of policies are checked strictly, by `yunikorn.config.queue_policy_check`. See `docs/decisions/0009`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import parse_duration
from yunikorn.text import suggest

APP_SORT = "application.sort.policy"
QUEUE_SORT = "queue.sort.policy"
NODE_SORT = "node.sort.policy"
SORT_PRIORITY = "application.sort.priority"
PRIORITY_POLICY = "priority.policy"
PRIORITY_OFFSET = "priority.offset"
PREEMPTION_POLICY = "preemption.policy"
PREEMPTION_DELAY = "preemption.delay"
QUOTA_DELAY = "quota.preemption.delay"
PREEMPTION_BY_PRIORITY = "preemption.by.priority"
PREEMPTION_WITHIN = "preemption.within.queue"
BACKOFF = "application.unschedasks.backoff"
BACKOFF_DELAY = "application.unschedasks.backoff.delay"
STATE = "queue.state"

POLICIES = (APP_SORT, QUEUE_SORT)
"""Properties that name a policy; the options of the policy are properties `POLICY.OPTION`."""

_CHANGED_BELOW = {PRIORITY_POLICY, PRIORITY_OFFSET, PREEMPTION_POLICY}
_RENAMED = {"preemption.quota.delay": QUOTA_DELAY}
_UINT64_MAX = 2**64 - 1
_WHOLE = re.compile(r"([+-]?)(?=[0-9])0*([0-9]*)\Z")

Fault = tuple[str, str]
"""Property, and the problem with its value."""


@attrs.frozen
class QueueSettings:
    """Typed view of the properties of a queue; times in nanoseconds."""

    app_sort: str = "fifo"
    """Application sort policy of a leaf queue."""
    app_sort_options: Mapping[str, str] = attrs.field(factory=dict)
    queue_sort: str = "fair"
    """Queue sort policy of a parent queue."""
    queue_sort_options: Mapping[str, str] = attrs.field(factory=dict)
    node_sort: str = ""
    """Name of one of the partition's node orders; empty for its default order."""
    sort_priority: bool = True
    """True if applications and queues are ordered by priority first; False ignores priorities."""
    priority_fence: bool = False
    """True if the queue's priority is only its offset, whatever the priorities inside."""
    priority_offset: int = 0
    preemption_policy: str = "default"
    """`default`, `fence` (no preemption outside of the queue) or `disabled` (never preempted)."""
    preemption_delay: int = 30 * SECOND
    """Time that a request waits before it may preempt (ns)."""
    preempts_by_priority: bool = False
    """True if requests without a guarantee may preempt lower priorities in other queues."""
    preempts_within: bool = False
    """True if requests may preempt lower priorities in the queue itself."""
    quota_preemption_delay: int = 0
    """Delay before preempting the usage above a lowered quota (ns); 0 means never."""
    backoff_count: int = 0
    """Number of requests without a node after which an application backs off; 0 means never."""
    backoff_delay: int = 30 * SECOND
    stopped: bool = False
    """True if the queue gets no new allocations."""


DEFAULTS = QueueSettings()


def effective_properties(parent: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a configured queue: those inherited from its parent, overlaid by its own.

    `parent` has the effective properties of the parent. Fences, offsets and a stopped state are not
    inherited; of the preemption policy only `disabled` is. Options of a policy are inherited only together
    with its name: a queue that names a policy starts without options.
    """
    merged = {
        key: _handed_down(key, value) if key in _CHANGED_BELOW else value
        for key, value in parent.items()
        if key != STATE
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
    values: dict[str, object] = {}
    for key, text in properties:
        known = _READERS.get(key)
        if known is None:
            faults.extend(_stray(key))
            continue
        field, read = known
        try:
            values[field] = read(text)
        except ValueError as error:
            faults.append((key, f"{error}; the default is used"))
    for policy, field in ((APP_SORT, "app_sort_options"), (QUEUE_SORT, "queue_sort_options")):
        values[field] = MappingProxyType(policy_options(dict(properties), policy))
    return QueueSettings(**values), tuple(faults)  # type: ignore[arg-type]


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
    hint = suggest(key, _READERS)
    return [(key, f"unknown property, ignored{hint}")] if hint else []


def _one_of(**meanings: object) -> Callable[[str], object]:
    def read(text: str) -> object:
        try:
            return meanings[text.lower()]
        except KeyError:
            raise ValueError(f"expected {' or '.join(meanings)}, got {text!r}") from None

    return read


def _policy(default: str) -> Callable[[str], object]:
    return lambda text: text or default


def _integer(low: int, high: int) -> Callable[[str], object]:
    def read(text: str) -> int:
        match = _WHOLE.match(text)
        if match and (low < 0 or not match[1]):
            number = int(match[1] + (match[2][:25] or "0"))
            if low <= number <= high:
                return number
        raise ValueError(f"expected a whole number from {low} to {high}, got {text!r}")

    return read


def _delay(*, off: bool = False) -> Callable[[str], object]:
    def read(text: str) -> int:
        delay = parse_duration(text)
        if delay < 0 or (delay == 0 and not off):
            raise ValueError(f"expected a duration above 0, got {text!r}")
        return delay

    return read


_preemption_policy = _one_of(default="default", fence="fence", disabled="disabled")

_READERS: dict[str, tuple[str, Callable[[str], object]]] = {
    APP_SORT: ("app_sort", _policy(DEFAULTS.app_sort)),
    QUEUE_SORT: ("queue_sort", _policy(DEFAULTS.queue_sort)),
    NODE_SORT: ("node_sort", _policy(DEFAULTS.node_sort)),
    SORT_PRIORITY: ("sort_priority", _one_of(enabled=True, disabled=False)),
    PRIORITY_POLICY: ("priority_fence", lambda text: bool(text) and _one_of(default=False, fence=True)(text)),
    PRIORITY_OFFSET: ("priority_offset", _integer(-(2**31), 2**31 - 1)),
    PREEMPTION_POLICY: ("preemption_policy", lambda text: _preemption_policy(text or "default")),
    PREEMPTION_DELAY: ("preemption_delay", _delay()),
    PREEMPTION_BY_PRIORITY: ("preempts_by_priority", _one_of(enabled=True, disabled=False)),
    PREEMPTION_WITHIN: ("preempts_within", _one_of(enabled=True, disabled=False)),
    QUOTA_DELAY: ("quota_preemption_delay", _delay(off=True)),
    BACKOFF: ("backoff_count", _integer(0, _UINT64_MAX)),
    BACKOFF_DELAY: ("backoff_delay", _delay()),
    STATE: ("stopped", _one_of(active=False, stopped=True)),
}

KNOWN = tuple(_READERS)
"""Names of all known properties, without options of policies."""
