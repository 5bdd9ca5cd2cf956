"""Task groups: the gang that a pod announces in its annotations.

`yunikorn.apache.org/task-groups` is a JSON list of groups of equal members, and
`yunikorn.apache.org/schedulingPolicyParameters` has `NAME=VALUE` entries. Names of JSON fields are compared
without case, as Apache YuniKorn does. A list with any problem is not used at all: the application then runs
without a gang.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from yunikorn.errors import QuantityError, printable
from yunikorn.resources import INT64_MAX, Resource, Tally
from yunikorn.text import listed, suggest
from yunikorn_kubernetes import names
from yunikorn_kubernetes.objects import Json, Pod
from yunikorn_kubernetes.translation.kubernetes_quantities import PODS, amount_name, amount_of

SOFT, HARD, ATOMIC = "Soft", "Hard", "Atomic"
STYLES = {style.lower(): style for style in (SOFT, HARD, ATOMIC)}
"""Gang scheduling styles; `Atomic`, which needs no placeholder pods, is ours."""
TIMEOUT_PARAMETER = "placeholderTimeoutInSeconds"
STYLE_PARAMETER = "gangSchedulingStyle"
PARAMETERS = (TIMEOUT_PARAMETER, STYLE_PARAMETER)
MOST_MEMBERS = 150_000
"""Members of a gang at most: the pods for which Kubernetes is built ("Considerations for large clusters")."""
LONGEST_TIMEOUT = INT64_MAX // 1_000_000_000
"""Largest number of seconds, about 292 years."""


@attrs.frozen
class AnnotatedTaskGroup:
    """Equal members of a gang; the fields are those of the annotation."""

    name: str
    min_member: int
    min_resource: Mapping[str, str]
    """Requests of one member, as Kubernetes quantities."""
    resource: Resource
    """Amount of one member, with `pods: 1`."""
    node_selector: Mapping[str, str] = attrs.field(factory=dict)
    tolerations: Sequence[Json] = ()
    affinity: Json = attrs.field(factory=dict)
    topology_spread_constraints: Sequence[Json] = ()
    labels: Mapping[str, str] = attrs.field(factory=dict)
    annotations: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class AnnotatedGang:
    """All task groups of an application."""

    groups: tuple[AnnotatedTaskGroup, ...]
    total: Resource
    """Amount of all members."""
    timeout_seconds: int = 0
    """Time after which placeholders are given up; 0 for the default of the scheduler."""
    style: str = SOFT
    task_groups: str = ""
    """Text of the annotation, which placeholders repeat."""
    parameters: str = ""

    @property
    def members(self) -> int:
        """Number of members of all groups."""
        return sum(group.min_member for group in self.groups)

    @property
    def has_placeholders(self) -> bool:
        """True if placeholder pods reserve the resources; an Atomic gang is placed as a whole instead."""
        return self.style != ATOMIC


@attrs.frozen
class GangReading:
    """Gang of a pod, or why its task groups cannot be used."""

    gang: AnnotatedGang | None = None
    problems: tuple[str, ...] = ()
    """All problems of the task groups. With any of them, `gang` is None."""
    ignored: tuple[str, ...] = ()
    """Parameters that are ignored, with the reason."""


def read_gang(pod: Pod) -> GangReading:
    """Return the gang that the annotations of a pod announce."""
    annotations = pod.metadata.annotations
    text = annotations.get(names.TASK_GROUPS, "")
    if not text:
        return GangReading()
    parameters = annotations.get(names.SCHEDULING_POLICY_PARAMETERS, "")
    timeout, style, ignored = read_parameters(parameters)
    problems: list[str] = []
    groups = _groups(text, problems)
    total = _total(groups, problems) if not problems else Resource()
    if problems:
        found = tuple(f"{names.TASK_GROUPS}: {printable(problem)}" for problem in problems)
        return GangReading(None, found, tuple(ignored))
    gang = AnnotatedGang(groups, total, timeout, style, text, parameters)
    return GangReading(gang, (), tuple(ignored))


def read_parameters(text: str) -> tuple[int, str, list[str]]:
    """Return placeholder timeout in seconds (0 for the default), style, and texts for what is ignored."""
    timeout, style = 0, SOFT
    ignored = []
    for entry in text.split():
        name, equals, value = entry.partition("=")
        problem = ""
        if not equals or not value:
            problem = "expected NAME=VALUE"
        elif name == TIMEOUT_PARAMETER:
            if value.isascii() and value.isdecimal() and len(value) < 20 and int(value) <= LONGEST_TIMEOUT:
                timeout = int(value)
            else:
                problem = "expected a number of seconds, 0 or more; the default applies"
        elif name == STYLE_PARAMETER:
            if value.lower() in STYLES:
                style = STYLES[value.lower()]
            else:
                problem = f"expected {', '.join(STYLES.values())}; {SOFT} applies"
        else:
            problem = f"unknown parameter{suggest(name, PARAMETERS)}"
        if problem:
            ignored.append(printable(f"{names.SCHEDULING_POLICY_PARAMETERS}: {entry[:80]!r}: {problem}"))
    return timeout, style, ignored


def _groups(text: str, problems: list[str]) -> tuple[AnnotatedTaskGroup, ...]:
    try:
        entries = json.loads(text, parse_float=_Number)
    except (ValueError, RecursionError) as error:
        problems.append(f"not JSON: {error}")
        return ()
    if not isinstance(entries, list) or not entries:
        problems.append("expected a list of task groups")
        return ()
    groups = []
    for index, entry in enumerate(entries):
        reader = _GroupReader(entry, f"[{index}]", problems)
        groups.append(reader.group())
    counts = Counter(group.name for group in groups if group.name)
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        problems.append(f"each task group needs a name of its own: {listed(twice)} given twice")
    return tuple(groups)


def _total(groups: Sequence[AnnotatedTaskGroup], problems: list[str]) -> Resource:
    total: Tally = {}
    for index, group in enumerate(groups):
        for name, value in group.resource.items():
            amount = value * group.min_member
            total[name] = total.get(name, 0) + amount
            if amount > INT64_MAX:
                problems.append(f"[{index}]: minMember times {name} does not fit into 64 bits")
    members = sum(group.min_member for group in groups)
    if members > MOST_MEMBERS:
        problems.append(f"the groups have {members} members, more than {MOST_MEMBERS}")
    if not problems:
        problems += [
            f"{name} of all groups does not fit into 64 bits"
            for name, value in total.items()
            if value > INT64_MAX
        ]
    return Resource(total if not problems else {})


class _Number(str):
    """Number with a fraction or an exponent, as written."""

    __slots__ = ()


class _GroupReader:
    """Reader of one task group, which collects all problems."""

    def __init__(self, entry: object, path: str, problems: list[str]) -> None:
        self._path = path
        self._problems = problems
        self._fields: dict[str, Any] = {}
        if isinstance(entry, dict):
            self._fields = {key.lower(): value for key, value in entry.items() if value is not None}
        else:
            problems.append(f"{path}: expected a task group, a JSON object")
        self._is_object = isinstance(entry, dict)

    def group(self) -> AnnotatedTaskGroup:
        """Return the task group; the problems say where it is incomplete."""
        if not self._is_object:
            return AnnotatedTaskGroup("", 0, {}, Resource())
        requests, resource = self._resources()
        return AnnotatedTaskGroup(
            self._name(),
            self._members(),
            requests,
            resource,
            self._texts("nodeSelector"),
            self._objects("tolerations"),
            canonical(self._object("affinity")),
            self._objects("topologySpreadConstraints"),
            self._texts("labels"),
            self._texts("annotations"),
        )

    def _problem(self, field: str, message: str) -> None:
        self._problems.append(f"{self._path}.{field}: {message}")

    def _name(self) -> str:
        name = self._fields.get("name", "")
        if not isinstance(name, str) or isinstance(name, _Number) or not name:
            self._problem("name", "expected the name of the group")
            return ""
        return name

    def _members(self) -> int:
        count = self._fields.get("minmember", 0)
        if type(count) is not int or not 0 < count <= MOST_MEMBERS:
            self._problem(
                "minMember", f"expected a number of members from 1 to {MOST_MEMBERS}, got {count!r:.40}"
            )
            return 0
        return count

    def _resources(self) -> tuple[dict[str, str], Resource]:
        given = self._fields.get("minresource")
        requests: dict[str, str] = {}
        if not isinstance(given, dict):
            self._problem("minResource", 'expected the requests of one member, such as {"cpu": "1"}')
            return requests, Resource()
        amounts: Tally = {PODS: 1}
        origins = {PODS: "the number of pods, which is always 1"}
        for name, value in given.items():
            text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
            kind = amount_name(name)
            if kind in origins:
                self._problem(f"minResource.{name}", f"means the same as {origins[kind]}: remove one")
                continue
            origins[kind] = name
            try:
                amounts[kind] = amount_of(name, text)
            except QuantityError as error:
                self._problem(f"minResource.{name}", str(error))
                continue
            if amounts[kind] < 0:
                self._problem(f"minResource.{name}", f"expected 0 or more, got {text}")
            requests[name] = text
        return requests, Resource(amounts)

    def _texts(self, field: str) -> dict[str, str]:
        given = self._object(field)
        wrong = [key for key, value in given.items() if type(value) is not str]
        if wrong:
            self._problem(field, f"expected texts in quotes: {listed(wrong)}")
            return {}
        return given

    def _object(self, field: str) -> Json:
        given = self._fields.get(field.lower(), {})
        if not isinstance(given, dict):
            self._problem(field, "expected a JSON object")
            return {}
        return given

    def _objects(self, field: str) -> list[Json]:
        given = self._fields.get(field.lower(), [])
        if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
            self._problem(field, "expected a list of JSON objects")
            return []
        return [canonical(each) for each in given]


_POD_FIELDS = {
    name.lower(): name
    for name in (
        *("key", "operator", "value", "values", "effect", "tolerationSeconds"),
        *("nodeAffinity", "podAffinity", "podAntiAffinity", "weight", "preference", "podAffinityTerm"),
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
        *("nodeSelectorTerms", "matchExpressions", "matchFields", "matchLabels"),
        *("labelSelector", "namespaceSelector", "namespaces", "topologyKey"),
        *("matchLabelKeys", "mismatchLabelKeys", "maxSkew", "whenUnsatisfiable", "minDomains"),
        *("nodeAffinityPolicy", "nodeTaintsPolicy"),
    )
}


def canonical(value: Any) -> Any:
    """Return a part of a pod's specification with the names of the API, whatever their case was.

    Kubernetes compares names with case. Keys of `matchLabels` are labels, and stay.
    """
    if isinstance(value, list):
        return [canonical(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, inner in value.items():
        name = _POD_FIELDS.get(key.lower(), key)
        found[name] = inner if name == "matchLabels" else canonical(inner)
    return found
