"""Settings in the ConfigMaps: every key with type, default, unit and whether a change needs a restart.

Names, defaults and syntax are those of Apache YuniKorn 1.9: booleans and durations are written as in Go. The
attributes below are the one description of a key. Reader, checks and the table of the reference page follow
from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import parse_duration, spell_duration
from yunikorn.errors import Problem, printable
from yunikorn.text import suggest
from yunikorn_kubernetes import names
from yunikorn_kubernetes.patterns import compiled

T = TypeVar("T")
S = TypeVar("S", "ServiceSettings", "AdmissionSettings")
_METADATA = "setting"
LONGEST = 80
"""Number of characters of a bad value that a message shows."""
LONGEST_TEXT = 1024
"""Number of bytes of the longest text, which is that of the longest name in the core."""
INT32_MAX = 2**31 - 1
UINT64_MAX = 2**64 - 1
UNSET_ID = -1
"""Number that means an unset user or group, as in YuniKorn."""
TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))
LEVELS = {
    **{"debug": "debug", "info": "info", "warn": "warning", "warning": "warning", "error": "error"},
    **{"dpanic": "critical", "panic": "critical", "fatal": "critical"},
    **{"-1": "debug", "0": "info", "1": "warning", "2": "error", "3": "critical", "4": "critical"},
    "5": "critical",
}
"""Levels of logs by name and number, as levels of Python."""
LOG_LEVEL = "log.level"
_LOG_AREA = re.compile(r"log\.([\w.-]+)\.level\Z")
_READER = re.compile(r"-?[A-Za-z0-9_][A-Za-z0-9_.-]*(@[A-Za-z0-9_.-]+)?\Z")
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}\Z")
DNS_LABEL = "1 to 63 lower-case letters of ASCII, digits and dashes, with no dash at either end"
"""Form of the names of services and namespaces, which are parts of host names."""
OVER_TLS = "https://"
"""Start of an address whose server is asked over TLS."""
_DNS_LABEL = re.compile("[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
HEALTH_CHECK = "health.checkInterval"
"""Key without effect: the health of the core is checked whenever it is asked for."""


@attrs.frozen(eq=False)
class SettingKind:
    """Kind of values: description, reader, and the text of a default."""

    words: str
    parse: Callable[[str], Any]
    """Reader. Raises `ValueError` with the expected form."""
    spell: Callable[[Any], str] = str


def _text(text: str) -> str:
    if not 0 < len(text.encode()) <= LONGEST_TEXT:
        raise ValueError(f"expected a text of 1 to {LONGEST_TEXT} bytes")
    return text


def is_dns_label(text: str) -> bool:
    """Return True for a name that can be a part of a host name."""
    return _DNS_LABEL.fullmatch(text) is not None


def _service(text: str) -> str:
    if not is_dns_label(text):
        raise ValueError(f"expected the name of a service: {DNS_LABEL}")
    return text


def _scheduler_address(text: str) -> str:
    if not (address := _text(text).removeprefix(OVER_TLS)) or "/" in address:
        raise ValueError(f"expected HOST:PORT, or {OVER_TLS}HOST:PORT for a scheduler with --tls-cert")
    return text


def _boolean(text: str) -> bool:
    if text not in TRUE | FALSE:
        raise ValueError("expected true or false")
    return text in TRUE


def _integer(text: str) -> int:
    if not _INTEGER.match(text) or abs(int(text)) > INT32_MAX:
        raise ValueError(f"expected a whole number of at most {INT32_MAX}")
    return int(text)


def _id(text: str) -> int | None:
    number = _integer(text)
    if number < UNSET_ID:
        raise ValueError(f"expected the number of a user or group, or {UNSET_ID} for none")
    return None if number == UNSET_ID else number


def _duration(text: str) -> int:
    duration = parse_duration(text)
    if duration < 0:
        raise ValueError("expected a duration of 0 or more")
    return duration


def _patterns(text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    for pattern in found:
        try:
            compiled(pattern)
        except ValueError as error:
            raise ValueError(
                f"{pattern!r} is no regular expression in the syntax of RE2 ({error});"
                " expected expressions, separated by commas"
            ) from None
    return found


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:LONGEST]) <= UINT64_MAX):
        raise ValueError("expected a whole number of 0 or more")
    return int(text)


def _kinds(text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found or not all(map(_READER.match, found)):
        raise ValueError("expected all, none, or kinds such as Job, separated by commas")
    if len(found) > 1 and "none" in found:
        raise ValueError("expected none alone, without kinds")
    if "all" not in found and any(part.startswith("-") for part in found):
        raise ValueError("-NAME leaves a kind out of all: write all, -NAME")
    return found


def _pairs(text: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, sign, resource = (one.strip() for one in part.partition("="))
        if not (sign and name and resource) or "=" in resource or " " in resource or name in found:
            raise ValueError("expected device classes, each once, with a resource: CLASS=RESOURCE")
        found[name] = resource
    return MappingProxyType(found)


def _spell_pairs(pairs: Mapping[str, str]) -> str:
    return ",".join(f"{name}={resource}" for name, resource in pairs.items())


TEXT = SettingKind("text", _text)
DEVICE_CLASS_RESOURCES = SettingKind("`CLASS=RESOURCE` with commas", _pairs, _spell_pairs)
WORKLOAD_KINDS = SettingKind("`all`, `none`, or kinds with commas; `all, -NAME`", _kinds, ",".join)
SERVICE = SettingKind("name of a service", _service)
SCHEDULER_ADDRESS = SettingKind("`HOST:PORT` or `https://HOST:PORT`", _scheduler_address)
BOOLEAN = SettingKind("`true`, `false`", _boolean, lambda value: str(value).lower())
INTEGER = SettingKind("whole number", _integer)
ID = SettingKind("whole number", _id)
DURATION = SettingKind("duration", _duration, spell_duration)
PATTERNS = SettingKind("regular expressions with commas", _patterns, ",".join)
COUNT = SettingKind("whole number", _count)

FOR_THE_CORE = {
    "event.trackingEnabled": BOOLEAN,
    "event.ringBufferCapacity": COUNT,
    "event.maxStreams": COUNT,
    "event.maxStreamsPerHost": COUNT,
    "event.requestCapacity": COUNT,
    "event.RESTResponseSize": COUNT,
    HEALTH_CHECK: DURATION,
}
"""Keys that only the core reads. A bad value is a warning, and a default applies, as in YuniKorn."""


@attrs.frozen(eq=False)
class ShimSetting:
    """Key of the ConfigMaps."""

    key: str
    kind: SettingKind
    meaning: str
    """Meaning in Markdown."""
    default: Any = None
    reloadable: bool = True
    """False if a change needs a restart."""
    effective: bool = True
    """False if the key is only checked, because this shim works without such a setting."""
    field: str = ""

    @property
    def shown_default(self) -> str:
        """Text of the default in the ConfigMap; empty for none."""
        return "" if self.default is None else self.kind.spell(self.default)


def _setting(
    key: str, kind: SettingKind, default: T, meaning: str, *, reloadable: bool = True, effective: bool = True
) -> T:
    about = ShimSetting(key, kind, meaning, default, reloadable, effective)
    return attrs.field(default=default, metadata={_METADATA: about})


def _fixed(key: str, kind: SettingKind, default: T, meaning: str) -> T:
    """Return a field of a key whose change needs a restart."""
    return _setting(key, kind, default, meaning, reloadable=False)


def _unused(key: str, kind: SettingKind, default: T, meaning: str) -> T:
    """Return a field of a key that is only checked."""
    return _setting(key, kind, default, meaning, reloadable=False, effective=False)


@attrs.frozen
class ServiceSettings:
    """Settings of the scheduler; times in nanoseconds."""

    cluster_id: str = _fixed("service.clusterId", TEXT, "mycluster", "id under which the cluster registers")
    policy_group: str = _fixed(
        "service.policyGroup", TEXT, "queues", "the queue configuration is the key of this name with `.yaml`"
    )
    scheduling_interval: int = _unused(
        "service.schedulingInterval", DURATION, SECOND, "pause between rounds of YuniKorn's shim"
    )
    volume_bind_timeout: int = _fixed(
        "service.volumeBindTimeout",
        DURATION,
        600 * SECOND,
        "time for the volumes of a pod to be bound; then the pod is placed again",
    )
    event_channel_capacity: int = _unused(
        "service.eventChannelCapacity", INTEGER, 1024 * 1024, "size of a channel of YuniKorn's shim"
    )
    dispatch_timeout: int = _unused(
        "service.dispatchTimeout", DURATION, 300 * SECOND, "time limit of that channel"
    )
    disable_gang_scheduling: bool = _fixed(
        "service.disableGangScheduling", BOOLEAN, False, "ignores task groups"
    )
    workload_kinds: tuple[str, ...] = _fixed(
        "service.workloadKinds",
        WORKLOAD_KINDS,
        ("all",),
        "**ours**: [kinds of work](workloads.md) whose gangs are taken from the owner of the pods",
    )
    workload_bypass_queues: tuple[str, ...] = _fixed(
        "service.workloadBypassQueues",
        PATTERNS,
        (),
        "**ours**: queues, as pods name them, in which no such gang is recognised",
    )
    workload_gang_timeout: int = _fixed(
        "service.workloadGangTimeout",
        DURATION,
        30 * SECOND,
        "**ours**: time without a further pod after which such a gang is made of the pods that exist",
    )
    device_class_resources: Mapping[str, str] = _fixed(
        "service.deviceClassResources",
        DEVICE_CLASS_RESOURCES,
        MappingProxyType({}),
        "**ours**: resources of quotas that count the devices of [device classes](devices.md#quotas); the"
        " others count as their extended resource, or as `deviceclass/CLASS`",
    )
    hot_refresh: bool = _setting(
        "service.enableConfigHotRefresh",
        BOOLEAN,
        True,
        "applies changes of the ConfigMaps; `false` ignores all later changes",
    )
    placeholder_image: str = _fixed(
        "service.placeholderImage", TEXT, "registry.k8s.io/pause:3.7", "image of placeholder pods"
    )
    placeholder_run_as_user: int | None = _fixed(
        "service.placeholderRunAsUser", ID, None, "user of placeholder pods"
    )
    placeholder_run_as_group: int | None = _fixed(
        "service.placeholderRunAsGroup", ID, None, "group of placeholder pods"
    )
    placeholder_fs_group: int | None = _fixed(
        "service.placeholderFsGroup", ID, None, "group of the volumes of placeholder pods"
    )
    instance_type_label: str = _fixed(
        "service.nodeInstanceTypeNodeLabelKey",
        TEXT,
        names.LABEL_INSTANCE_TYPE,
        "label of nodes that becomes the attribute `si/instance-type`",
    )
    qps: int = _fixed(
        "kubernetes.qps", INTEGER, 1000, "requests a second to the API server; 0 or less: no limit"
    )
    burst: int = _fixed("kubernetes.burst", INTEGER, 1000, "requests at once beyond that rate")
    unique_app_ids: bool = _fixed(
        "admissionController.filtering.generateUniqueAppId",
        BOOLEAN,
        False,
        "makes each pod without application id an application of its own",
    )


DEFAULT_SETTINGS = ServiceSettings()


@attrs.frozen
class AdmissionSettings:
    """Settings of the admission controller. Patterns match anywhere in a name unless anchored."""

    webhook_service: str = _setting(
        "admissionController.webHook.amServiceName",
        SERVICE,
        "yunikorn-admission-controller-service",
        "service of the admission controller",
    )
    scheduler_address: str = _setting(
        "admissionController.webHook.schedulerServiceAddress",
        SCHEDULER_ADDRESS,
        "yunikorn-service:9080",
        "address of the scheduler's REST interface, which validates configurations",
    )
    require_validation: bool = _setting(
        "admissionController.webHook.requireValidation",
        BOOLEAN,
        False,
        "refuses a `queues.yaml` while the scheduler cannot be asked, instead of accepting it with a warning",
    )
    process_namespaces: tuple[str, ...] = _setting(
        "admissionController.filtering.processNamespaces",
        PATTERNS,
        (),
        "namespaces whose pods get this scheduler; empty: all",
    )
    bypass_namespaces: tuple[str, ...] = _setting(
        "admissionController.filtering.bypassNamespaces",
        PATTERNS,
        ("^kube-system$",),
        "namespaces among them whose pods are left as they are",
    )
    label_namespaces: tuple[str, ...] = _setting(
        "admissionController.filtering.labelNamespaces",
        PATTERNS,
        (),
        "namespaces whose pods get an application id; empty: all",
    )
    no_label_namespaces: tuple[str, ...] = _setting(
        "admissionController.filtering.noLabelNamespaces",
        PATTERNS,
        (),
        "namespaces among them whose pods get none",
    )
    unique_app_ids: bool = _setting(
        "admissionController.filtering.generateUniqueAppId",
        BOOLEAN,
        False,
        "makes each pod without application id an application of its own",
    )
    bypass_auth: bool = _setting(
        "admissionController.accessControl.bypassAuth", BOOLEAN, False, "accepts owners of pods from everyone"
    )
    trust_controllers: bool = _setting(
        "admissionController.accessControl.trustControllers",
        BOOLEAN,
        True,
        "accepts owners of pods from `systemUsers`",
    )
    system_users: tuple[str, ...] = _setting(
        "admissionController.accessControl.systemUsers",
        PATTERNS,
        ("^system:serviceaccount:kube-system:",),
        "users that are controllers of the cluster",
    )
    external_users: tuple[str, ...] = _setting(
        "admissionController.accessControl.externalUsers",
        PATTERNS,
        (),
        "users that may submit pods for others",
    )
    external_groups: tuple[str, ...] = _setting(
        "admissionController.accessControl.externalGroups",
        PATTERNS,
        (),
        "groups whose members may submit pods for others",
    )


@attrs.frozen
class ShimLogLevels:
    """Levels of logs: one for all, and others for areas such as `core.rest`, by the names of YuniKorn."""

    root: str = "info"
    areas: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class ShimSettings:
    """All settings, as a set of ConfigMaps has them."""

    service: ServiceSettings = attrs.field(factory=ServiceSettings)
    admission: AdmissionSettings = attrs.field(factory=AdmissionSettings)
    logs: ShimLogLevels = attrs.field(factory=ShimLogLevels)


def settings_in(cls: type[Any]) -> Iterator[ShimSetting]:
    """Yield the keys that set the attributes of a class of settings, in their order."""
    for field in attrs.fields(cls):
        found = field.metadata.get(_METADATA)
        if isinstance(found, ShimSetting):
            yield attrs.evolve(found, field=field.name)


@cache
def all_settings() -> Mapping[str, ShimSetting]:
    """Return all keys with a value of their own, by name.

    Of a key that both processes read, the description is that of the scheduler.
    """
    both = (*settings_in(ServiceSettings), *settings_in(AdmissionSettings))
    return {setting.key: setting for setting in both} | {
        setting.key: setting for setting in settings_in(ServiceSettings)
    }


def is_known(key: str) -> bool:
    """Return True for a key that the scheduler, the core or the admission controller reads."""
    return key in _names() or bool(_LOG_AREA.match(key))


def nearest(key: str) -> str:
    """Return `, did you mean 'x'?` for a misspelled key, or an empty text."""
    return suggest(key, _names())


def _names() -> tuple[str, ...]:
    return (*all_settings(), *FOR_THE_CORE, LOG_LEVEL)


def read_settings(values: Mapping[str, str]) -> tuple[ShimSettings, list[Problem]]:
    """Return the settings among these values, and all problems; the default stands in for a bad value.

    Blanks around a value do not count. Unknown keys are left to the caller.
    """
    problems: dict[str, Problem] = {}  # by key, since both processes read some of them
    service = _read(ServiceSettings, values, problems)
    admission = _read(AdmissionSettings, values, problems)
    settings = ShimSettings(service, admission, _logs(values, problems))
    return settings, [problems[key] for key in sorted(problems)]


def bad_values_for_the_core(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the keys of the core that have a bad value, and what is wrong with each."""
    for key, kind in FOR_THE_CORE.items():
        if key not in values:
            continue
        try:
            kind.parse(values[key].strip())
        except ValueError as error:
            yield key, f"{_shown(values[key])}: {error}; a default applies"


def _read(cls: type[S], values: Mapping[str, str], problems: dict[str, Problem]) -> S:
    found: dict[str, Any] = {}
    for setting in settings_in(cls):
        text = values.get(setting.key)
        if text is None:
            continue
        try:
            found[setting.field] = setting.kind.parse(text.strip())
        except ValueError as error:
            advice = (
                f"correct the value, or remove the key for the default ({setting.shown_default or 'none'})"
            )
            problems[setting.key] = Problem(setting.key, f"{_shown(text)}: {error}; {advice}")
    return cls(**found)


def _logs(values: Mapping[str, str], problems: dict[str, Problem]) -> ShimLogLevels:
    levels: dict[str, str] = {}
    for key in sorted(values):
        match = _LOG_AREA.match(key)
        if key != LOG_LEVEL and not match:
            continue
        level = LEVELS.get(values[key].strip().lower())
        if level is None:
            expected = "debug, info, warn, error or fatal, or a number from -1 (debug) to 5 (fatal)"
            problems[key] = Problem(key, f"{_shown(values[key])}: expected {expected}")
        else:
            levels[match[1] if match else ""] = level
    return ShimLogLevels(levels.pop("", "info"), levels)


def _shown(text: str) -> str:
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return printable(repr(cut))
