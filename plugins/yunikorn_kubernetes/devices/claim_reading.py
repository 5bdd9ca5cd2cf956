"""Reading of resource claims from the JSON of the API.

A claim that cannot be read, or that wants something in a way that is unknown here, has problems and is never
allocated: a guess could give away a device that another pod relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from yunikorn_kubernetes.devices.cel.exact_quantity import ExactQuantity
from yunikorn_kubernetes.devices.device_objects import (
    ALL,
    EXACT_COUNT,
    DeviceAllocation,
    DeviceConstraint,
    DeviceId,
    DeviceRequest,
    DeviceResult,
    Json,
    RequestChoice,
    ResourceClaim,
)
from yunikorn_kubernetes.devices.slice_reading import needed_quantity, read_selectors
from yunikorn_kubernetes.predicates.tag_reading import (
    UnreadableText,
    table_of,
    tables_of,
    text_of,
    texts_of,
    whole_of,
)
from yunikorn_kubernetes.predicates.taints import parse_tolerations

_Entry = TypeVar("_Entry")


def read_claim(found: Json) -> ResourceClaim:
    """Return a claim with all problems. Raises `UnreadableText` if it has no name."""
    metadata = table_of(found.get("metadata"), "metadata")
    namespace, name = text_of(metadata, "namespace"), text_of(metadata, "name")
    if not name:
        raise UnreadableText("a resource claim has no name")
    problems: list[str] = []
    try:
        spec = table_of(table_of(found.get("spec"), "spec").get("devices"), "spec.devices")
        status = table_of(found.get("status"), "status").get("allocation")
        return ResourceClaim(
            namespace,
            name,
            text_of(metadata, "uid"),
            _entries(spec, "requests", _request, problems),
            _entries(spec, "constraints", _constraint, problems),
            tuple(tables_of(spec.get("config"), "config")),
            None if status is None else read_allocation(table_of(status, "status.allocation")),
            tuple(problems),
        )
    except UnreadableText as error:
        return ResourceClaim(namespace, name, problems=(*problems, str(error)))


def _entries(spec: Json, key: str, read: Callable[[Json], _Entry], problems: list[str]) -> tuple[_Entry, ...]:
    found = []
    for number, one in enumerate(tables_of(spec.get(key), key)):
        try:
            found.append(read(one))
        except UnreadableText as error:
            problems.append(f"{key}[{number}]: {error}")
    return tuple(found)


def _request(entry: Json) -> RequestChoice:
    name = text_of(entry, "name")
    if not name:
        raise UnreadableText("a request has no name")
    exactly = entry.get("exactly")
    alternatives = list(tables_of(entry.get("firstAvailable"), "firstAvailable"))
    if (exactly is None) is (not alternatives):
        raise UnreadableText(
            f"request {name}: either `exactly` or `firstAvailable` is needed, and nothing else is known"
        )
    if exactly is not None:
        return RequestChoice(name, (_wanted(name, table_of(exactly, "exactly"), has_admin=True),))
    return RequestChoice(
        name,
        tuple(_wanted(f"{name}/{text_of(one, 'name')}", one, has_admin=False) for one in alternatives),
        is_prioritized=True,
    )


def _wanted(name: str, table: Json, *, has_admin: bool) -> DeviceRequest:
    device_class = text_of(table, "deviceClassName")
    mode = text_of(table, "allocationMode") or EXACT_COUNT
    admin = table.get("adminAccess") if has_admin else None
    if not device_class:
        raise UnreadableText(f"request {name}: deviceClassName is missing")
    if mode not in (EXACT_COUNT, ALL):
        raise UnreadableText(f"request {name}: the allocation mode {mode!r} is not known")
    if admin is not None and type(admin) is not bool:
        raise UnreadableText(f"request {name}: adminAccess is neither true nor false")
    # The API server leaves out a count of 0, which means 1.
    count = whole_of(table, "count", 0) or 1
    if count < 0:
        raise UnreadableText(f"request {name}: the count is negative")
    tolerations = table.get("tolerations")
    return DeviceRequest(
        name,
        device_class,
        read_selectors(table, f"request {name}"),
        mode,
        count,
        admin,
        parse_tolerations(tolerations),
        tuple(tolerations or ()),
        tuple(_amounts(table_of(table.get("capacity"), "capacity").get("requests"), f"request {name}")),
    )


def _amounts(value: Any, what: str) -> list[tuple[str, ExactQuantity]]:
    table = table_of(value, f"{what}: capacity")
    return [(name, needed_quantity(table, name, f"{what}: capacity {name}")) for name in sorted(table)]


def _constraint(entry: Json) -> DeviceConstraint:
    requests = frozenset(texts_of(entry.get("requests"), "requests"))
    for key, is_distinct in (("matchAttribute", False), ("distinctAttribute", True)):
        if name := text_of(entry, key):
            return DeviceConstraint(requests, name, is_distinct)
    raise UnreadableText("only constraints with matchAttribute or distinctAttribute are known")


# -- allocations -----------------------------------------------------------------------------------------


def read_allocation(table: Json) -> DeviceAllocation:
    """Return the allocation of a claim. Raises `UnreadableText`."""
    devices = table_of(table.get("devices"), "devices")
    selector = table.get("nodeSelector")
    return DeviceAllocation(
        tuple(read_result(one) for one in tables_of(devices.get("results"), "results")),
        tuple(tables_of(devices.get("config"), "config")),
        None if selector is None else table_of(selector, "nodeSelector"),
    )


def read_result(table: Mapping[str, Any]) -> DeviceResult:
    """Return a result of an allocation. Raises `UnreadableText`."""
    device = DeviceId(*(text_of(table, key) for key in DeviceId._fields))
    if not all(device):
        raise UnreadableText(f"a result of an allocation names no device: {device}")
    return DeviceResult(
        text_of(table, "request"),
        device,
        table.get("adminAccess") is True,
        table.get("shareID") is not None,
        tuple(_amounts(table.get("consumedCapacity"), f"the share of {device}")),
        tuple(tables_of(table.get("tolerations"), "tolerations")),
        tuple(texts_of(table.get("bindingConditions"), "bindingConditions")),
        tuple(texts_of(table.get("bindingFailureConditions"), "bindingFailureConditions")),
    )
