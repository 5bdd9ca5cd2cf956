"""Reading of slices and device classes from the JSON of the API.

A slice that cannot be read makes its pool invalid, with the reasons, and concerns no other pool. The API
server checks most of this, but not in recordings and simulations, nor for fields of a later version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from sys import intern
from typing import Any, TypeVar

from yunikorn_kubernetes.devices.cel.exact_quantity import ExactQuantity, InvalidQuantity, read_quantity
from yunikorn_kubernetes.devices.cel.semantic_version import InvalidVersion, read_version
from yunikorn_kubernetes.devices.device_objects import (
    AttributeNames,
    AttributeValue,
    CapacityPolicy,
    CounterSet,
    CounterUse,
    Device,
    DeviceCapacity,
    DeviceClass,
    DeviceTraits,
    Json,
    NodeChoice,
    ResourceSlice,
    UnsupportedValue,
    VersionValue,
)
from yunikorn_kubernetes.predicates.node_affinity import parse_node_term
from yunikorn_kubernetes.predicates.tag_reading import (
    UnreadableText,
    entries_of,
    table_of,
    tables_of,
    text_of,
    texts_of,
    whole_of,
)
from yunikorn_kubernetes.predicates.taints import parse_taints

MOST_DEVICES = 1024
"""Number of devices of a slice that is read; Kubernetes allows 128."""
MOST_ATTRIBUTES = 256
"""Number of attributes, and of capacities, of a device that is read; Kubernetes allows 32 together."""
SHOWN_PROBLEMS = 5
INT64 = 2**63
_LISTS = ("ints", "bools", "strings", "versions")
_OWN_KEYS = ("name", "attributes")
"""Keys in which devices of one model differ."""
_KEPT = 65_536
"""Number of distinct objects of a kind that are kept in order to share them."""

_Value = TypeVar("_Value")


class SliceReader:
    """Reads slices; parts that are equal in several devices become one object."""

    def __init__(self) -> None:
        """Create a reader that has read nothing."""
        self._names: dict[tuple[str, ...], AttributeNames] = {}
        self._traits: dict[DeviceTraits, DeviceTraits] = {}
        self._known: dict[str, DeviceTraits] = {}
        """Traits by the text of what a device has beside its own keys."""
        self._values: dict[AttributeValue, AttributeValue] = {}

    def read(self, found: Json) -> ResourceSlice:
        """Return a slice; one that cannot be read has a problem, and as much of its name as can be read.

        Raises `UnreadableText` if not even driver and pool can be read.
        """
        name = text_of(table_of(found.get("metadata"), "metadata"), "name")
        spec = table_of(found.get("spec"), "spec")
        pool = table_of(spec.get("pool"), "spec.pool")
        driver, pool_name = intern(text_of(spec, "driver")), intern(text_of(pool, "name"))
        if not driver or not pool_name:
            raise UnreadableText(f"slice {name or '(without a name)'} names no driver or no pool")
        generation, count, nodes, problem = 0, 1, None, ""
        is_per_device = spec.get("perDeviceNodeSelection") is True
        devices: tuple[Device, ...] = ()
        counter_sets: tuple[CounterSet, ...] = ()
        try:
            generation = whole_of(pool, "generation", 0)
            count = whole_of(pool, "resourceSliceCount", 0)
            nodes = node_choice(spec)
            devices = self._devices(spec.get("devices"))
            counter_sets = tuple(
                _counter_set(one) for one in tables_of(spec.get("sharedCounters"), "counters")
            )
        except UnreadableText as error:
            problem = f"slice {name}: {error}"
        return ResourceSlice(
            name, driver, pool_name, generation, count, nodes, is_per_device, devices, counter_sets, problem
        )

    def _devices(self, value: Any) -> tuple[Device, ...]:
        entries = entries_of(value, "devices")
        if len(entries) > MOST_DEVICES:
            raise UnreadableText(f"{len(entries)} devices, at most {MOST_DEVICES} are read")
        devices, problems = [], []
        for entry in entries:
            try:
                devices.append(self._device(table_of(entry, "a device")))
            except UnreadableText as error:
                problems.append(str(error))
        if problems:
            more = len(problems) - SHOWN_PROBLEMS
            shown = "; ".join(problems[:SHOWN_PROBLEMS])
            raise UnreadableText(f"{shown}; and {more} more" if more > 0 else shown)
        return tuple(devices)

    def _device(self, entry: Json) -> Device:
        name = text_of(entry, "name")
        if not name:
            raise UnreadableText("a device has no name")
        try:
            # In order of their names, so that the order in which a driver writes them has no effect.
            found = sorted(_bounded(entry, "attributes").items())
            values = tuple(self._shared_value(attribute_value(key, one)) for key, one in found)
            names = self._shared_names(tuple(intern(key) for key, _ in found))
            traits = self._traits_of(entry)
        except UnreadableText as error:
            raise UnreadableText(f"device {name}: {error}") from None
        return Device(intern(name), names, values, traits)

    # -- equal parts ----------------------------------------------------------------------------------

    def _shared_names(self, names: tuple[str, ...]) -> AttributeNames:
        found = self._names.get(names)
        if found is None:
            found = AttributeNames(names, {name: number for number, name in enumerate(names)})
            _keep(self._names, names, found)
        return found

    def _traits_of(self, entry: Json) -> DeviceTraits:
        # The text tells the number 1 from the truth value.
        text = repr([pair for pair in entry.items() if pair[0] not in _OWN_KEYS])
        found = self._known.get(text)
        if found is None:
            traits = _traits(entry)
            found = self._traits.get(traits) or _keep(self._traits, traits, traits)
            _keep(self._known, text, found)
        return found

    def _shared_value(self, value: AttributeValue) -> AttributeValue:
        if type(value) is str:
            return intern(value)
        if type(value) is VersionValue:
            return self._values.get(value) or _keep(self._values, value, value)
        return value


def _keep(kept: dict[Any, _Value], key: Any, value: _Value) -> _Value:
    if len(kept) >= _KEPT:  # What devices in use refer to stays, and is shared no longer.
        kept.clear()
    kept[key] = value
    return value


def _bounded(entry: Json, key: str) -> Json:
    table = table_of(entry.get(key), key)
    if len(table) > MOST_ATTRIBUTES:
        raise UnreadableText(f"{len(table)} {key}, at most {MOST_ATTRIBUTES} are read")
    return table


# -- nodes -----------------------------------------------------------------------------------------------


def node_choice(table: Mapping[str, Any]) -> NodeChoice | None:
    """Return the nodes that a slice or a device names; None if it names none in a known way."""
    name = text_of(table, "nodeName")
    selector = table.get("nodeSelector")
    if name or table.get("allNodes") is True:
        return NodeChoice(name, not name)
    if selector is None:
        return None
    terms = list(tables_of(table_of(selector, "nodeSelector").get("nodeSelectorTerms"), "nodeSelectorTerms"))
    if len(terms) != 1:
        raise UnreadableText(f"a node selector with {len(terms)} terms; exactly 1 is possible")
    term = parse_node_term(terms[0])
    if term.fault:
        raise UnreadableText(f"node selector: {term.fault}")
    return NodeChoice(
        # A term without requirements matches no node.
        term=term if term.labels or term.fields else None,
        fields=tuple(compact(one) for one in tables_of(terms[0].get("matchFields"), "matchFields")),
        expressions=tuple(
            compact(one) for one in tables_of(terms[0].get("matchExpressions"), "matchExpressions")
        ),
        has_selector=True,
    )


def compact(value: Any) -> str:
    """Return JSON without spaces and with sorted keys: equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


# -- parts of devices ------------------------------------------------------------------------------------


def attribute_value(name: str, value: Any) -> AttributeValue:
    """Return the value of an attribute. Raises `UnreadableText`."""
    table = table_of(value, f"attribute {name}")
    if type(number := table.get("int")) is int and -INT64 <= number < INT64:
        return number
    if type(truth := table.get("bool")) is bool:
        return truth
    if type(text := table.get("string")) is str:
        return text
    if type(version := table.get("version")) is str:
        try:
            return VersionValue(intern(version), read_version(version))
        except InvalidVersion as error:
            raise UnreadableText(f"attribute {name}: {error}") from None
    if any(table.get(kind) is not None for kind in _LISTS):
        return UnsupportedValue(name)
    raise UnreadableText(f"attribute {name} has no value of a known type (int, bool, string, version)")


def _traits(entry: Json) -> DeviceTraits:
    conditions = entry.get("bindingConditions")
    return DeviceTraits(
        capacity=tuple(
            (intern(name), _capacity(name, table_of(one, f"capacity {name}")))
            for name, one in sorted(_bounded(entry, "capacity").items())
        ),
        consumes=tuple(_counter_use(one) for one in tables_of(entry.get("consumesCounters"), "counters")),
        taints=parse_taints(entry.get("taints")),
        binding_conditions=None if conditions is None else tuple(texts_of(conditions, "bindingConditions")),
        binding_failure_conditions=tuple(
            texts_of(entry.get("bindingFailureConditions"), "bindingFailureConditions")
        ),
        binds_to_node=entry.get("bindsToNode") is True,
        is_shared=entry.get("allowMultipleAllocations") is True,
        nodes=node_choice(entry) or NodeChoice(),
    )


def quantity_of(table: Mapping[str, Any], key: str, what: str) -> ExactQuantity | None:
    """Return a quantity of an object; None without it. Raises `UnreadableText`."""
    value = table.get(key)
    if value is None:
        return None
    if type(value) is not str and type(value) is not int:
        raise UnreadableText(f"{what} is no quantity")
    try:
        return read_quantity(str(value).strip())
    except InvalidQuantity as error:
        raise UnreadableText(f"{what}: {error}") from None


def needed_quantity(table: Mapping[str, Any], key: str, what: str) -> ExactQuantity:
    """Return a quantity of an object. Raises `UnreadableText` also without it."""
    found = quantity_of(table, key, what)
    if found is None:
        raise UnreadableText(f"{what} is missing")
    return found


def _capacity(name: str, table: Json) -> DeviceCapacity:
    what = f"capacity {name}"
    value = needed_quantity(table, "value", what)
    policy = table.get("requestPolicy")
    return DeviceCapacity(value, None if policy is None else _policy(table_of(policy, what), what))


def _policy(table: Json, what: str) -> CapacityPolicy:
    bounds = table_of(table.get("validRange"), f"{what}: validRange")
    minimum, maximum, step = (quantity_of(bounds, key, f"{what}: {key}") for key in ("min", "max", "step"))
    if step is not None and (step.nanos <= 0 or minimum is None):
        raise UnreadableText(f"{what}: a step needs to be positive, and to have a min")
    valid = tuple(
        needed_quantity({"value": one}, "value", f"{what}: a valid value")
        for one in entries_of(table.get("validValues"), f"{what}: validValues")
    )
    default = quantity_of(table, "default", f"{what}: default")
    return CapacityPolicy(default, valid, minimum, maximum, step, table.get("validRange") is not None)


def _counters(table: Json, what: str) -> Iterator[tuple[str, int]]:
    for name, one in sorted(table_of(table.get("counters"), f"the counters of {what}").items()):
        counter = table_of(one, f"counter {name} of {what}")
        yield intern(name), needed_quantity(counter, "value", f"counter {name} of {what}").nanos


def _counter_use(table: Json) -> CounterUse:
    name = intern(text_of(table, "counterSet"))
    return CounterUse(name, tuple(_counters(table, name)))


def _counter_set(table: Json) -> CounterSet:
    name = intern(text_of(table, "name"))
    return CounterSet(name, dict(_counters(table, name)))


# -- device classes --------------------------------------------------------------------------------------


def read_device_class(found: Json) -> DeviceClass:
    """Return a device class; an unreadable one has a problem. Raises `UnreadableText` without a name."""
    name = text_of(table_of(found.get("metadata"), "metadata"), "name")
    if not name:
        raise UnreadableText("a device class has no name")
    try:
        spec = table_of(found.get("spec"), "spec")
        return DeviceClass(
            name,
            read_selectors(spec, f"class {name}"),
            tuple(tables_of(spec.get("config"), "config")),
            text_of(spec, "extendedResourceName"),
        )
    except UnreadableText as error:
        return DeviceClass(name, problem=f"device class {name} cannot be read: {error}")


def read_selectors(table: Mapping[str, Any], what: str) -> tuple[str, ...]:
    """Return the expressions of selectors. Raises `UnreadableText` for selectors of another kind."""
    found = []
    for number, one in enumerate(tables_of(table.get("selectors"), "selectors")):
        expression = text_of(table_of(one.get("cel"), "cel"), "expression")
        if not expression:
            raise UnreadableText(
                f"{what}, selector #{number}: only selectors with a CEL expression are known"
            )
        found.append(intern(expression))
    return tuple(found)
