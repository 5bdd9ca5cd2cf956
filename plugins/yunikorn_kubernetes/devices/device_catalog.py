"""Slices, classes and claims of a cluster, as texts that a resource manager sends to the core.

A watcher of the API server reports objects as JSON, by `set_slice`, `set_class`, `set_claim` and their
opposites; the result says whose texts may differ now. `node_attributes` are attributes of a node, and
`claims_text` is the tag `resource-claims` of a request; the predicate `dynamic-resources` decides by these
texts alone, so that it decides the same in replays and simulations. When the core has allocated a request,
the tag `device-allocations` of the allocation says what to write to the status of each claim, see
`read_device_allocations` in `device_tags.py`. For a task that already runs, `allocations_text` makes this tag
from the claims. Nothing here calls the API server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from sys import intern
from types import MappingProxyType
from typing import NamedTuple

import attrs

from yunikorn_kubernetes import names
from yunikorn_kubernetes.devices.device_objects import Device, Json, ResourceSlice
from yunikorn_kubernetes.devices.device_taint_rules import DeviceTaintRule, read_taint_rule, with_taints
from yunikorn_kubernetes.devices.node_pools import concerns
from yunikorn_kubernetes.devices.slice_reading import SliceReader, compact
from yunikorn_kubernetes.predicates.tag_reading import UnreadableText, table_of, tables_of, text_of

_PoolId = tuple[str, str]


class PodClaim(NamedTuple):
    """A claim of a pod."""

    name: str
    """Name in `spec.resourceClaims` of the pod."""
    claim: str
    """`NAMESPACE/NAME` of the claim."""
    is_own: bool = False
    """True if the claim was made from a template for this pod alone."""


class Affected(NamedTuple):
    """Texts that a change may have changed."""

    nodes: frozenset[str] = frozenset()
    """Names of nodes whose attributes may differ."""
    all_nodes: bool = False
    """True if the attributes of any node may differ."""
    pods: bool = False
    """True if the texts of pods with claims may differ."""


UNCHANGED = Affected()
NO_CLAIMS: Mapping[str, Json] = MappingProxyType({})


@attrs.define(eq=False)
class _Pool:
    """Slices of a pool."""

    slices: dict[str, ResourceSlice] = attrs.Factory(dict)
    texts: dict[str, str] = attrs.Factory(dict)
    """JSON of the slices, by name."""
    text: str | None = None
    """JSON of all slices with the taints of rules, without brackets; None before it is needed."""

    @property
    def only_node(self) -> str:
        """Name of the node that alone can use the pool; empty if there are several or none."""
        found = {one.nodes.name if one.nodes is not None else "" for one in self.slices.values()}
        return found.pop() if len(found) == 1 else ""

    def concerns(self, node: str, labels: Mapping[str, str]) -> bool:
        """Return True if a slice has devices for a node."""
        return any(not one.counter_sets and concerns(one, node, labels) for one in self.slices.values())


class DeviceCatalog:
    """Slices, classes and claims of one cluster."""

    def __init__(self) -> None:
        """Create a catalog without objects."""
        self._reader = SliceReader()
        self._pools: dict[_PoolId, _Pool] = {}
        self._local: dict[str, dict[_PoolId, None]] = {}
        """Pools that one node alone can use, by its name."""
        self._home: dict[_PoolId, str] = {}
        """The node of each of these pools."""
        self._shared: dict[_PoolId, None] = {}
        """All other pools."""
        self._pool_of: dict[str, _PoolId] = {}
        """Pool of a slice."""
        self._taint_rules: dict[str, DeviceTaintRule] = {}
        """Rules by name that select devices."""
        self._classes: dict[str, Json] = {}
        """Specifications of classes that decide."""
        self._claims: dict[str, Json] = {}
        self._claimed: dict[_PoolId, dict[str, None]] = {}
        """Allocated claims that no pod consumes, by pool."""

    # -- slices ---------------------------------------------------------------------------------------

    def set_slice(self, found: Json) -> Affected:
        """Add or replace a ResourceSlice. Raises `UnreadableText` if it names no driver or no pool.

        Every other problem is a refusal of the pods that want its devices.
        """
        read = self._reader.read(found)
        key = (read.driver, read.pool)
        text = compact({"metadata": {"name": read.name}, "spec": found.get("spec")})
        before = self._pool_of.get(read.name)
        pool = self._pools.get(key)
        if before == key and pool is not None and pool.texts.get(read.name) == text:
            return UNCHANGED
        affected = UNCHANGED if before is None or before == key else self.remove_slice(read.name)
        left = self._nodes_of(key)
        pool = self._pools.setdefault(key, _Pool())
        pool.slices[read.name], pool.texts[read.name], pool.text = read, text, None
        self._pool_of[read.name] = key
        self._sort(key)
        return _union(affected, left, self._nodes_of(key))

    def remove_slice(self, name: str) -> Affected:
        """Remove a ResourceSlice."""
        key = self._pool_of.pop(name, None)
        if key is None:
            return UNCHANGED
        left, pool = self._nodes_of(key), self._pools[key]
        del pool.slices[name], pool.texts[name]
        pool.text = None
        if not pool.slices:
            del self._pools[key]
        self._sort(key)
        return _union(left, self._nodes_of(key))

    def _sort(self, key: _PoolId) -> None:
        """Find out again whether a pool is that of one node."""
        self._shared.pop(key, None)
        home = self._home.pop(key, "")
        if home:
            del self._local[home][key]
            if not self._local[home]:
                del self._local[home]
        pool = self._pools.get(key)
        if pool is None:
            return
        if home := pool.only_node:
            self._home[key] = home
            self._local.setdefault(home, {})[key] = None
        else:
            self._shared[key] = None

    def _nodes_of(self, key: _PoolId) -> Affected:
        """Return the nodes that can use a pool."""
        if home := self._home.get(key):
            return Affected(frozenset((home,)))
        return Affected(all_nodes=key in self._shared)

    def node_attributes(self, name: str, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the attributes of a node that concern devices; absent where empty."""
        found: dict[str, str] = {}
        local = sorted(self._local.get(name, ()))
        shared = [key for key in sorted(self._shared) if self._pools[key].concerns(name, labels)]
        for attribute, keys in ((names.NODE_SLICES, local), (names.NODE_SHARED_SLICES, shared)):
            if keys:
                found[attribute] = f"[{','.join(self._text(key) for key in keys)}]"
        claims = {claim: None for key in (*local, *shared) for claim in self._claimed.get(key, ())}
        if claims:
            found[names.NODE_CLAIMED_DEVICES] = compact(
                [_committed(self._claims[key], _identity(self._claims[key])) for key in sorted(claims)]
            )
        return found

    def _text(self, key: _PoolId) -> str:
        """Return the JSON of the slices of a pool, with the taints of rules."""
        pool = self._pools[key]
        if pool.text is None:
            texts = [pool.texts[name] for name in sorted(pool.texts)]
            rules = [one for _, one in sorted(self._taint_rules.items()) if one.concerns(*key)]
            if rules:
                texts = [compact(with_taints(json.loads(one), rules)) for one in texts]
            pool.text = ",".join(texts)
        return pool.text

    def has_devices(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return True if a node can use a pool."""
        return name in self._local or any(self._pools[key].concerns(name, labels) for key in self._shared)

    def most_devices(self, admits: Callable[[str, Device], bool]) -> int:
        """Return the largest number of devices of one node that a function of driver and device admits."""
        counts = {
            key: sum(admits(key[0], one) for part in pool.slices.values() for one in part.devices)
            for key, pool in self._pools.items()
        }
        local = (sum(counts[key] for key in keys) for keys in self._local.values())
        return sum(counts[key] for key in self._shared) + max(local, default=0)

    def set_taint_rule(self, name: str, spec: Json | None) -> Affected:
        """Add or replace a DeviceTaintRule, or remove it without `spec`. Raises `UnreadableText`."""
        rule = None if spec is None else read_taint_rule(spec)
        before = self._taint_rules.pop(name, None)
        if rule is not None:
            self._taint_rules[name] = rule
        affected = UNCHANGED
        for key, pool in self._pools.items() if rule != before else ():
            if any(one is not None and one.concerns(*key) for one in (before, rule)):
                pool.text = None
                affected = _union(affected, self._nodes_of(key))
        return affected

    # -- classes --------------------------------------------------------------------------------------

    def set_class(self, found: Json) -> Affected:
        """Add or replace a DeviceClass. Raises `UnreadableText` if it has no name."""
        name = text_of(table_of(found.get("metadata"), "metadata"), "name")
        if not name:
            raise UnreadableText("a device class has no name")
        spec = table_of(found.get("spec"), "spec")
        if self._classes.get(name) == spec:
            return UNCHANGED
        self._classes[name] = spec
        return Affected(pods=True)

    def remove_class(self, name: str) -> Affected:
        """Remove a DeviceClass."""
        return UNCHANGED if self._classes.pop(name, None) is None else Affected(pods=True)

    # -- claims ---------------------------------------------------------------------------------------

    def set_claim(self, found: Json) -> Affected:
        """Add or replace a ResourceClaim. Raises `UnreadableText` if it has no name, or none of a namespace.

        Devices of an allocated claim that no pod consumes are attributes of nodes; those of other claims
        belong to the tasks that consume them.
        """
        metadata = table_of(found.get("metadata"), "metadata")
        namespace, name = text_of(metadata, "namespace"), text_of(metadata, "name")
        if not namespace or not name:
            raise UnreadableText("a resource claim has no name or no namespace")
        key = f"{namespace}/{name}"
        claim = {
            "metadata": {"namespace": namespace, "name": name, "uid": text_of(metadata, "uid")},
            "spec": table_of(found.get("spec"), "spec"),
            "status": table_of(found.get("status"), "status"),
        }
        before = self._claims.get(key)
        if before == claim:
            return UNCHANGED
        self._claims[key] = claim
        left = UNCHANGED if before is None else self._claim(key, before, is_added=False)
        return _union(left, self._claim(key, claim, is_added=True), Affected(pods=True))

    def remove_claim(self, namespace: str, name: str) -> Affected:
        """Remove a ResourceClaim."""
        claim = self._claims.pop(f"{namespace}/{name}", None)
        if claim is None:
            return UNCHANGED
        return _union(self._claim(f"{namespace}/{name}", claim, is_added=False), Affected(pods=True))

    def _claim(self, key: str, claim: Json, *, is_added: bool) -> Affected:
        """Add or remove an allocated claim without consumers to its pools."""
        affected = UNCHANGED
        if _has_pods(claim):
            return affected
        for pool in _pools_of(claim):
            claims = self._claimed.setdefault(pool, {})
            if is_added:
                claims[key] = None
            else:
                claims.pop(key, None)
            if not claims:
                del self._claimed[pool]
            affected = _union(affected, self._nodes_of(pool))
        return affected

    def claim(self, key: str) -> Json | None:
        """Return a claim by `NAMESPACE/NAME`: metadata with uid, spec and status; None if it is unknown."""
        return self._claims.get(key)

    # -- texts of tasks -------------------------------------------------------------------------------

    def claims_text(self, claims: Iterable[PodClaim], planned: Mapping[str, Json] = NO_CLAIMS) -> str:
        """Return the tag `resource-claims` of a request; empty without claims.

        Specifications of claims that are `planned`, by the pod's name of each, have no object yet.

        Claims from equal templates have equal texts, unless they are allocated. A claim or class that does
        not exist is in the text, too, and the predicate refuses the request with that reason.
        """
        entries: list[Json] = []
        classes: dict[str, Json] = {}
        for one in claims:
            claim = self._claims.get(one.claim)
            if claim is None:
                entries.append({"podClaim": one.name, "problem": f"the claim {one.claim} does not exist"})
                continue
            allocation = claim["status"].get("allocation")
            entry: Json = {"podClaim": one.name}
            if allocation is not None or not one.is_own:
                entry["claim"] = claim["metadata"]
            if allocation is not None:
                entry["allocation"] = allocation
            entries.append(entry | {"spec": claim["spec"]})
            for name in _classes_of(claim["spec"]):
                if name in self._classes:
                    classes[name] = self._classes[name]
        for name, spec in planned.items():
            entries.append({"podClaim": name, "spec": spec})
            classes.update({one: self._classes[one] for one in _classes_of(spec) if one in self._classes})
        return intern(compact({"claims": entries, "classes": classes})) if entries else ""

    def allocations_text(self, claims: Iterable[PodClaim]) -> str:
        """Return the tag `device-allocations` of a task that runs; empty if no claim is allocated."""
        found = []
        for one in claims:
            claim = self._claims.get(one.claim)
            if claim is not None and claim["status"].get("allocation") is not None:
                found.append(_committed(claim, {"podClaim": one.name, "claim": claim["metadata"]}))
        return compact(found) if found else ""


def _committed(claim: Json, identity: Json) -> Json:
    return identity | {"allocation": claim["status"]["allocation"]}


def _identity(claim: Json) -> Json:
    return {"claim": claim["metadata"]}


def _union(*parts: Affected) -> Affected:
    return Affected(
        frozenset().union(*(one.nodes for one in parts)),
        any(one.all_nodes for one in parts),
        any(one.pods for one in parts),
    )


def _has_pods(claim: Json) -> bool:
    """Return True if a pod consumes a claim; groups of pods do not count, which may have none."""
    try:
        consumers = tables_of(claim["status"].get("reservedFor"), "reservedFor")
        return any(one.get("resource") == "pods" for one in consumers)
    except UnreadableText:
        return False


def _pools_of(claim: Json) -> dict[_PoolId, None]:
    """Return the pools of the devices of a claim."""
    try:
        allocation = table_of(claim["status"].get("allocation"), "status.allocation")
        devices = table_of(allocation.get("devices"), "devices")
        return {
            (text_of(one, "driver"), text_of(one, "pool")): None
            for one in tables_of(devices.get("results"), "results")
        }
    except UnreadableText:
        return {}


def _classes_of(spec: Json) -> Iterable[str]:
    """Yield the names of the classes of all requests, as far as they can be read."""
    try:
        for request in tables_of(table_of(spec.get("devices"), "devices").get("requests"), "requests"):
            exactly = request.get("exactly")
            alternatives = tables_of(request.get("firstAvailable"), "firstAvailable")
            for one in (*(() if exactly is None else (table_of(exactly, "exactly"),)), *alternatives):
                yield text_of(one, "deviceClassName")
    except UnreadableText:
        return
