"""Slices, classes and claims of the API group `resource.k8s.io/v1`, reduced to the fields that decide.

A cluster has many slices of equal devices. So a device has only its name and attributes of its own;
everything else that devices of one model have in common is one object, and so are the names of attributes.
`slice_reading.py` and `claim_reading.py` make these objects from the JSON of the API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import attrs

from yunikorn_kubernetes.devices.cel.exact_quantity import ExactQuantity
from yunikorn_kubernetes.devices.cel.semantic_version import SemanticVersion
from yunikorn_kubernetes.predicates.node_affinity import NodeTerm
from yunikorn_kubernetes.predicates.taints import Taint, Toleration

Json = dict[str, Any]
MOST_RESULTS = 32
"""Number of devices that one claim can have."""
EXACT_COUNT, ALL = "ExactCount", "All"
"""Allocation modes."""
NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
"""Effects of taints that keep a device from being allocated."""
NODE_NAME = "metadata.name"


class DeviceId(NamedTuple):
    """Name of a device in the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


# -- what drivers offer --------------------------------------------------------------------------------


class VersionValue(NamedTuple):
    """Attribute with a semantic version."""

    text: str
    version: SemanticVersion


class UnsupportedValue(NamedTuple):
    """Attribute of a type that selectors cannot read, such as a list."""

    name: str


AttributeValue = bool | int | str | VersionValue | UnsupportedValue


@attrs.frozen(eq=False)
class AttributeNames:
    """Names of the attributes of devices of one model; one object for all of them."""

    names: tuple[str, ...]
    """Qualified names, `DOMAIN/NAME`; names of the driver's domain have no domain."""
    positions: Mapping[str, int]


class CapacityPolicy(NamedTuple):
    """Amounts of a capacity that a claim can consume."""

    default: ExactQuantity | None = None
    valid_values: tuple[ExactQuantity, ...] = ()
    minimum: ExactQuantity | None = None
    maximum: ExactQuantity | None = None
    step: ExactQuantity | None = None
    has_range: bool = False


class DeviceCapacity(NamedTuple):
    """An amount of a device, which is consumed where the device is shared."""

    value: ExactQuantity
    policy: CapacityPolicy | None = None


class CounterUse(NamedTuple):
    """Amounts that a device takes from a set of counters while it is allocated, in billionths."""

    counter_set: str
    counters: tuple[tuple[str, int], ...]


class NodeChoice(NamedTuple):
    """Nodes that can use a device: one, all, or those that a selector matches."""

    name: str = ""
    everywhere: bool = False
    term: NodeTerm | None = None
    fields: tuple[str, ...] = ()
    """The selector's requirements on fields, as JSON texts."""
    expressions: tuple[str, ...] = ()
    """The selector's requirements on labels, as JSON texts."""
    has_selector: bool = False

    def admits(self, name: str, attributes: Mapping[str, str]) -> bool:
        """Return True if the node with this name and these attributes can use the device."""
        if self.name:
            return self.name == name
        return self.everywhere or (self.term is not None and self.term.matches(name, attributes))


class DeviceTraits(NamedTuple):
    """Properties that devices of one model have in common; one object for all of them."""

    capacity: tuple[tuple[str, DeviceCapacity], ...] = ()
    consumes: tuple[CounterUse, ...] = ()
    taints: tuple[Taint, ...] = ()
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] = ()
    binds_to_node: bool = False
    is_shared: bool = False
    """True if several claims can use the device at the same time."""
    nodes: NodeChoice = NodeChoice()
    """Nodes of this device, in slices whose devices have nodes of their own."""


@attrs.frozen(eq=False)
class Device:
    """A device that a driver offers."""

    name: str
    attributes: AttributeNames
    values: tuple[AttributeValue, ...]
    """Values of the attributes, in the order of their names."""
    traits: DeviceTraits

    def attribute(self, driver: str, name: str) -> AttributeValue | None:
        """Return the value of a fully qualified attribute; None without it."""
        position = self.attributes.positions.get(name)
        if position is None:
            domain, _, short = name.partition("/")
            position = self.attributes.positions.get(short) if domain == driver else None
        return None if position is None else self.values[position]


class CounterSet(NamedTuple):
    """Amounts that the devices of a pool share, in billionths."""

    name: str
    counters: Mapping[str, int]


@attrs.frozen(eq=False)
class ResourceSlice:
    """A part of a pool of devices."""

    name: str
    driver: str
    pool: str
    generation: int
    slice_count: int
    """Number of slices of the pool in this generation."""
    nodes: NodeChoice | None
    """Nodes that can use the devices; None if each device has its own, or for a way that is unknown."""
    is_per_device: bool = False
    devices: tuple[Device, ...] = ()
    counter_sets: tuple[CounterSet, ...] = ()
    problem: str = ""
    """Reason why nothing of the pool can be used."""


@attrs.frozen(eq=False)
class DeviceClass:
    """Selectors and settings that an administrator gives a name."""

    name: str
    selectors: tuple[str, ...] = ()
    config: tuple[Json, ...] = ()
    extended_resource: str = ""
    problem: str = ""


# -- what claims want ----------------------------------------------------------------------------------


@attrs.frozen
class DeviceRequest:
    """Devices that a claim wants, or one of the alternatives for them."""

    name: str
    """Name of the request; of an alternative also that of its request, `REQUEST/ALTERNATIVE`."""
    device_class: str
    selectors: tuple[str, ...] = ()
    mode: str = EXACT_COUNT
    count: int = 1
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    toleration_json: tuple[Json, ...] = attrs.field(default=(), eq=False)
    capacity: tuple[tuple[str, ExactQuantity], ...] = ()


@attrs.frozen
class RequestChoice:
    """A request of a claim: what it wants, or alternatives of which the first that is possible is taken."""

    name: str
    alternatives: tuple[DeviceRequest, ...]
    is_prioritized: bool = False


class DeviceConstraint(NamedTuple):
    """Attribute whose value must be equal, or different, for all devices of some requests."""

    requests: frozenset[str]
    """Names of requests and alternatives; empty for all of the claim."""
    attribute: str
    is_distinct: bool

    def concerns(self, request: str, name: str) -> bool:
        """Return True if devices of the request, or of its alternative `name`, are concerned."""
        return not self.requests or request in self.requests or name in self.requests


@attrs.frozen
class ResourceClaim:
    """A claim to devices, allocated or not."""

    namespace: str
    name: str
    uid: str = ""
    requests: tuple[RequestChoice, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[Json, ...] = attrs.field(default=(), eq=False)
    allocation: DeviceAllocation | None = None
    problems: tuple[str, ...] = ()
    """Reasons why the claim cannot be allocated."""

    @property
    def key(self) -> str:
        """Name with namespace; without one for a claim that its pod names."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


# -- allocations ---------------------------------------------------------------------------------------


@attrs.frozen
class DeviceResult:
    """A device that a claim has, or a share of it."""

    request: str
    device: DeviceId
    admin_access: bool = False
    is_share: bool = False
    """True if others can use the device at the same time; the share needs an id."""
    consumed: tuple[tuple[str, ExactQuantity], ...] = ()
    """Amounts of a share."""
    tolerations: tuple[Json, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()

    def to_json(self, share_id: Callable[[], str]) -> Json:
        """Return the result as the API has it."""
        found: Json = {"request": self.request} | self.device._asdict()
        if self.admin_access:
            found["adminAccess"] = True
        if self.tolerations:
            found["tolerations"] = list(self.tolerations)
        if self.is_share:
            found["shareID"] = share_id()
        if self.consumed:
            found["consumedCapacity"] = {name: str(amount) for name, amount in self.consumed}
        if self.binding_conditions:
            found["bindingConditions"] = list(self.binding_conditions)
        if self.binding_failure_conditions:
            found["bindingFailureConditions"] = list(self.binding_failure_conditions)
        return found


@attrs.frozen
class DeviceAllocation:
    """The devices of an allocated claim, and the nodes that can use them."""

    results: tuple[DeviceResult, ...] = ()
    config: tuple[Json, ...] = ()
    node_selector: Json | None = None
    """Node selector of the API; None if all nodes can use the devices."""

    def to_json(self, share_id: Callable[[], str]) -> Json:
        """Return the allocation as the API has it; `share_id` draws the id of a share."""
        devices: Json = {}
        if self.results:
            devices["results"] = [result.to_json(share_id) for result in self.results]
        if self.config:
            devices["config"] = list(self.config)
        found: Json = {"devices": devices}
        if self.node_selector is not None:
            found["nodeSelector"] = self.node_selector
        return found
