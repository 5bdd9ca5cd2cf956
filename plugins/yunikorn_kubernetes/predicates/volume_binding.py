"""Predicate `volume-binding`: the pod's volumes can be used, or be bound, on the node.

A bound volume must be accessible from the node by its node affinity. A claim that waits for its first
consumer needs a free volume that no other placed pod gets, or a storage class that can make one for the
node. The rules are those of the plugin VolumeBinding of kube-scheduler; see
`docs/decisions/archive/0125-volumes-as-input.md`.

The books contain the claims of placed pods whose volume is still open, with the volumes that suit each. They
decide only whether volumes suffice; the shim chooses the volumes when it binds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import ClassVar

import attrs

from yunikorn.api import Ask, Node, Predicate, Task, hookimpl
from yunikorn_kubernetes.names import LABEL_HOSTNAME, NODE_FREE_VOLUMES, TAG_VOLUME_CANDIDATES
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence
from yunikorn_kubernetes.predicates.volume_choice import (
    Place,
    affinity_refusal,
    place,
    provisioning_refusal,
    shortage,
    suitable,
)
from yunikorn_kubernetes.predicates.volume_matching import Names, VolumeMatching
from yunikorn_kubernetes.predicates.volume_tags import (
    Claim,
    Demand,
    FreeByClass,
    PerNode,
    UnreadableTag,
    free_volumes,
    pod_volumes,
)
from yunikorn_kubernetes.predicates.volume_terms import only_host

Entry = tuple[str, Demand, str, str]
"""A claim in the books: its key and demand; for a claim without a volume also the node of the pod and the
text of the volumes that it may get."""


@attrs.define(eq=False)
class VolumeBinding(Predicate):
    """The volumes of the pod are accessible from the node, and its open claims can get volumes there."""

    name = "volume-binding"
    on_reservation: ClassVar[bool] = False
    _matching: VolumeMatching = attrs.field(init=False, factory=VolumeMatching)
    """Open claims of placed pods for which no volume can be made."""
    _uses: dict[Entry, int] = attrs.field(init=False, factory=dict)
    """Number of placed pods by claim."""
    _nodes_of_claim: dict[str, Counter[str]] = attrs.field(init=False, factory=dict)
    """Nodes of the pods of each claim for which no volume has been chosen yet."""
    _wide: set[Entry] = attrs.field(init=False, factory=set)
    """Claims in the matching that suit volumes of more than one host."""
    _hosts: dict[str, dict[str, None]] = attrs.field(init=False, factory=dict)
    """Nodes by host name."""
    _free: PerNode[FreeByClass | UnreadableTag] = attrs.field(
        init=False, factory=lambda: PerNode(NODE_FREE_VOLUMES, free_volumes)
    )
    _nodes: dict[str, None] = attrs.field(init=False, factory=dict)

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if the pod's volumes can be used or bound on the node, else the reason."""
        volumes = pod_volumes(ask.tags)
        if volumes.unreadable:
            return volumes.unreadable
        if volumes.problems:
            return "; ".join(volumes.problems)
        if volumes.affinity:
            refusal = affinity_refusal(volumes.affinity, node.attributes)
            if refusal is not None:
                return refusal
        if not volumes.claims:
            return None
        where = self._place(ask, node)
        return str(where) if isinstance(where, UnreadableTag) else self._claims_refusal(volumes.claims, where)

    def _place(self, task: Task, node: Node) -> Place | UnreadableTag:
        return place(node.id, node.attributes, task.tags, self._free.get(node.id, node.attributes))

    def _claims_refusal(self, claims: Iterable[Claim], where: Place) -> str | None:
        wanted: list[Names] = []
        demands: list[Demand] = []
        for claim in claims:
            demand = claim.demand
            if claim.shared and not demand.volume and (used_on := self._nodes_of_claim.get(claim.key)):
                if where.node_id not in used_on:
                    return RefusalSentence.NO_VOLUME.because(
                        "another pod with the same claim has been placed on another node"
                    )
                continue
            names = suitable(demand, where)
            if demand.volume and names:
                continue
            refusal = provisioning_refusal(demand, where)
            if refusal is None:
                continue
            if not names:
                return refusal
            wanted.append(names)
            demands.append(demand)
        if wanted and not self._matching.fit(wanted):
            return shortage(demands)
        return None

    # -- what the answer depends on -----------------------------------------------------------------

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the volumes and the demands of the open claims; claims of one pod only have no name."""
        volumes = pod_volumes(ask.tags)
        if volumes.unreadable:
            return volumes.unreadable
        if volumes.problems:
            return volumes.problems
        if not volumes.claims:
            return volumes.affinity or None
        claims = tuple((claim.demand, claim.key if claim.shared else "") for claim in volumes.claims)
        return volumes.affinity, claims, ask.tags.get(TAG_VOLUME_CANDIDATES)

    def domain(self, node: Node) -> str:
        """Return the node."""
        return node.id

    def subjects(self, task: Task) -> Iterable[Hashable]:
        """Return the storage classes of the open claims, and the claims that pods share."""
        volumes = pod_volumes(task.tags)
        found: dict[Hashable, None] = {}
        for claim in volumes.claims:
            found["class", claim.demand.storage_class] = None
            if claim.shared:
                found["claim", claim.key] = None
        return found

    def wanted(self, ask: Ask) -> str | None:
        """Return the volumes that the pod needs."""
        volumes = pod_volumes(ask.tags)
        needed = [f"volume {one.volume}" for one in volumes.affinity]
        needed += [
            f"a volume of {claim.demand.size} bytes of storage class {claim.demand.storage_class or 'none'}"
            for claim in volumes.claims
        ]
        return ", ".join(needed) or None

    # -- books --------------------------------------------------------------------------------------

    def node_added(self, node: Node) -> None:
        """Add a node, in whose domain a returned volume may end a refusal."""
        self._nodes[node.id] = None
        self._free.add(node.id, node.attributes)
        self._hosts.setdefault(_host(node), {})[node.id] = None

    def node_removed(self, node: Node) -> None:
        """Remove a node."""
        del self._nodes[node.id]
        self._free.remove(node.id)
        of_host = self._hosts[_host(node)]
        del of_host[node.id]
        if not of_host:
            del self._hosts[_host(node)]

    def placed(self, task: Task, node: Node) -> Iterable[Hashable] | None:
        """Count the open claims of a pod; another pod with the same claim may then fit on the node."""
        volumes = pod_volumes(task.tags)
        if not volumes.claims:
            return None
        for claim in volumes.claims:
            entry = _entry(claim, task, node)
            if entry in self._uses:
                self._uses[entry] += 1
            else:
                self._uses[entry] = 1
                self._add(entry, claim, task, node)
            if not claim.demand.volume:
                self._nodes_of_claim.setdefault(claim.key, Counter())[node.id] += 1
        return (node.id,) if any(claim.shared for claim in volumes.claims) else None

    def _add(self, entry: Entry, claim: Claim, task: Task, node: Node) -> None:
        where = self._place(task, node)
        if isinstance(where, UnreadableTag):
            return
        demand = claim.demand
        if demand.volume:
            names: Names = (demand.volume,)
            is_wide = only_host(demand.volume_terms) is None
        elif provisioning_refusal(demand, where) is None:
            return
        else:
            names = suitable(demand, where)
            local = {one.name for one in where.local.get(demand.storage_class, ())}
            is_wide = not local.issuperset(names)
        self._matching.add(entry, names)
        if is_wide:
            self._wide.add(entry)

    def released(self, task: Task, node: Node) -> Iterable[Hashable] | None:
        """Count the open claims of a pod no more; return all domains in which a volume became free."""
        volumes = pod_volumes(task.tags)
        everywhere, returned = bool(self._wide), False
        for claim in volumes.claims:
            entry = _entry(claim, task, node)
            if not claim.demand.volume:
                places = self._nodes_of_claim[claim.key]
                places[node.id] -= 1
                if not places[node.id]:
                    del places[node.id]
                    everywhere = everywhere or claim.shared
                if not places:
                    del self._nodes_of_claim[claim.key]
            self._uses[entry] -= 1
            if not self._uses[entry]:
                del self._uses[entry]
                self._wide.discard(entry)
                if entry in self._matching:
                    self._matching.remove(entry)
                    returned = True
        if volumes.claims and everywhere:
            return tuple(self._nodes)
        return tuple(self._hosts.get(_host(node), ())) if returned else None


def _entry(claim: Claim, task: Task, node: Node) -> Entry:
    if claim.demand.volume:
        return claim.key, claim.demand, "", ""
    return claim.key, claim.demand, node.id, task.tags.get(TAG_VOLUME_CANDIDATES, "")


def _host(node: Node) -> str:
    return node.attributes.get(LABEL_HOSTNAME, node.id)


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [VolumeBinding]
