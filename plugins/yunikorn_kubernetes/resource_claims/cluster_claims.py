"""Claims to devices as the shim uses them: tags of pods, attributes of nodes, and what a change concerns."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
from msgspec.structs import force_setattr

from yunikorn.resources import Tally, grow
from yunikorn_kubernetes import names
from yunikorn_kubernetes.devices.cel.cel_syntax import SelectorError
from yunikorn_kubernetes.devices.device_catalog import UNCHANGED, Affected, DeviceCatalog, PodClaim
from yunikorn_kubernetes.devices.device_objects import Device, DeviceRequest
from yunikorn_kubernetes.devices.device_tags import read_device_allocations
from yunikorn_kubernetes.devices.selected_devices import SelectorResults
from yunikorn_kubernetes.devices.slice_reading import read_device_class
from yunikorn_kubernetes.objects import Json, Node, Pod
from yunikorn_kubernetes.predicates.tag_reading import UnreadableText
from yunikorn_kubernetes.resource_claims.claim_objects import (
    EXTENDED_CLAIM,
    MOST_CONSUMERS,
    ClaimReference,
    DeviceClassObject,
    DeviceTaintRuleObject,
    ResourceClaimObject,
    ResourceSliceObject,
    claims_of,
    consumer_of,
    results_of,
)
from yunikorn_kubernetes.resource_claims.device_amounts import PLENTY, DeviceAmounts
from yunikorn_kubernetes.resource_claims.extended_resources import (
    IMPLICIT,
    PLUGIN_CLASS,
    ExtendedResources,
    may_be_extended,
    plugin_slice,
)
from yunikorn_kubernetes.translation.compact_json import compact_json
from yunikorn_kubernetes.translation.pod_applications import is_ours
from yunikorn_kubernetes.volumes.stores import Index
from yunikorn_kubernetes.workloads.pod_groups import POD_GROUPS, PodGroup, group_name

_log = logging.getLogger("yunikorn.kubernetes.claims")
DeviceObject = DeviceClassObject | ResourceSliceObject | DeviceTaintRuleObject | ResourceClaimObject
NOT_SERVED = (
    "the pod has resource claims (spec.resourceClaims), but the API server has no resource.k8s.io/v1, or this"
    " process may not read it"
)

NONE_NEEDED = compact_json({"claims": [], "classes": {}})
"""Tag of a pod whose templates make no claims."""


@attrs.frozen
class ClaimTags:
    """Tags of a pod's claims, and the reasons why the pod cannot be scheduled before its claims change."""

    tags: Mapping[str, str] = attrs.field(factory=dict)
    problems: tuple[str, ...] = ()


NO_CLAIMS = ClaimTags()


@attrs.frozen
class ClaimChanges:
    """Pods by uid and nodes by name whose tags and attributes may differ."""

    pods: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


class ClusterClaims:
    """Devices and claims of a cluster.

    Call `update` for every change of an object, `add_pod` and `add_node` for every version of a pod that is
    not terminated and of a node, and then `changes` for what has to be sent to the core. `on_change` is
    called when something has changed for other pods without such a call.
    """

    def __init__(
        self,
        on_change: Callable[[], object] = lambda: None,
        *,
        is_served: bool = True,
        groups: Mapping[str, PodGroup] | None = None,
        resources: Mapping[str, str] | None = None,
    ) -> None:
        """Create without objects.

        `groups` are the PodGroups by `namespace/name`, None without any; `resources` the names of the
        resources that count the devices of classes.
        """
        self._on_change, self._is_served = on_change, is_served
        self._groups: Mapping[str, PodGroup] = {} if groups is None else groups
        self._catalog = DeviceCatalog()
        self._catalog.set_class(PLUGIN_CLASS)
        self.extended = ExtendedResources()
        self._selectors = SelectorResults()
        self._classes: dict[str, tuple[str, ...]] = {}
        """Selectors of the device classes."""
        self._most: dict[tuple[str, ...], int] = {}
        """Largest numbers of devices of one node that selectors admit."""
        self.amounts = DeviceAmounts(resources or {}, self.extended.resource_of, self._count_all)
        self._payers: dict[str, str] = {}
        """Pods by uid that each of the claims counts for that several pods can use."""
        self.written: Callable[[ResourceClaimObject], object] = self.update
        """Called with each version of a claim that a write has made, of which its watch may tell late.

        Until then, the devices would look free. A watch puts a function of its own here.
        """
        self.claims: dict[str, ResourceClaimObject] = {}
        """Claims by `namespace/name`."""
        self._pods: dict[str, Pod] = {}
        """Pods with claims, by uid."""
        self._pods_of_claim: Index[str] = Index()
        self._assumed: dict[str, None] = {}
        """Uids of pods whose devices the core has allocated; they have no node yet."""
        self._nodes: dict[str, Node] = {}
        self._returning: dict[str, int] = {}
        """Claims whose devices are being given back, with the number of those who do."""
        self._watches: dict[str, Callable[[], object]] = {}
        """Functions to call after a change of the claims of a pod, by its uid."""
        self._stale_pods: dict[str, None] = {}
        self._stale_nodes: dict[str, None] = {}

    # -- objects ----------------------------------------------------------------------------------------

    def use_groups(self, groups: Mapping[str, PodGroup]) -> None:
        """Use the PodGroups of a reflector."""
        self._groups = groups

    def update(self, thing: DeviceObject, *, exists: bool = True) -> None:
        """Add an object, or replace its earlier version; remove it if it does not exist any more."""
        try:
            self._update(thing, exists=exists)
        except UnreadableText as error:
            _log.warning("%s %s is not used: %s", type(thing).__name__, thing.metadata.name, error)

    def _update(self, thing: DeviceObject, *, exists: bool) -> None:
        meta = thing.metadata
        match thing:
            case ResourceClaimObject():
                self._set_claim(f"{meta.namespace}/{meta.name}", thing if exists else None)
            case DeviceClassObject():
                found = {"metadata": {"name": meta.name}, "spec": thing.spec}
                self._set_class(thing, read_device_class(found).selectors if exists else None)
                self._apply(
                    self._catalog.set_class(found) if exists else self._catalog.remove_class(meta.name)
                )
                self._touch(self._pods)
            case DeviceTaintRuleObject():
                self._apply(self._catalog.set_taint_rule(meta.name, thing.spec if exists else None))
            case ResourceSliceObject():
                found = {"metadata": {"name": meta.name}, "spec": thing.spec}
                self._apply(
                    self._catalog.set_slice(found) if exists else self._catalog.remove_slice(meta.name)
                )
                self._most.clear()
                # The catalog has its own form of this object, of which there may be many.
                force_setattr(thing, "spec", {})

    def _set_class(self, found: DeviceClassObject, selectors: tuple[str, ...] | None) -> None:
        name = found.metadata.name
        before = name in self._classes, self.extended.resource_of(name)
        if selectors is None:
            self._classes.pop(name, None)
        else:
            self._classes[name] = selectors
        self.extended.set_class(name, None if selectors is None else found)
        if before != (name in self._classes, self.extended.resource_of(name)):
            # Nodes with devices have an amount of the resource that counts the class.
            for node in self._nodes.values():
                self._set_plugins(node)
            self._stale_nodes.update(dict.fromkeys(self._nodes))

    def _set_plugins(self, node: Node) -> None:
        """Let a device stand for the device plugins of a node."""
        found = self.extended.plugins_of(node)
        if found is not None:
            self._apply(self._catalog.set_slice(found))
        else:
            self._apply(self._catalog.remove_slice(plugin_slice(node.metadata.name)))

    def _count_all(self, request: DeviceRequest) -> int:
        """Return the largest number of devices of one node that a request for all of them gets."""
        selectors = self._classes.get(request.device_class, ()) + request.selectors
        known = self._most.get(selectors)
        if known is None:

            def admits(driver: str, device: Device) -> bool:
                try:
                    return all(self._selectors.matches(one, driver, device) for one in selectors)
                except SelectorError:
                    return True

            known = self._most[selectors] = self._catalog.most_devices(admits)
        return known

    def _set_claim(self, key: str, claim: ResourceClaimObject | None) -> None:
        if claim is None:
            self.claims.pop(key, None)
        else:
            self.claims[key] = claim
        self._report(key)
        users = [*self._pods_of_claim[key]]
        self._touch(users)
        for uid in users:
            self._call(uid)

    def _report(self, key: str) -> None:
        """Report a claim to the catalog, with the consumers that the core accounts for."""
        claim = self.claims.get(key)
        if claim is None:
            namespace, _, name = key.partition("/")
            self._apply(self._catalog.remove_claim(namespace, name))
            return
        meta = claim.metadata
        status = dict(claim.status)
        status["reservedFor"] = [one for one in claim.consumers if self._is_consuming(one)]
        self._apply(
            self._catalog.set_claim(
                {
                    "metadata": {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid},
                    "spec": claim.spec,
                    "status": status,
                }
            )
        )

    def _is_consuming(self, consumer: Json) -> bool:
        """Return True unless the consumer is a pod that neither has a node nor is about to get one."""
        if consumer.get("resource") != "pods":
            return True
        uid = str(consumer.get("uid"))
        return self._is_placed(uid)

    def _apply(self, affected: Affected) -> None:
        if affected is UNCHANGED:
            return
        for name in self._nodes if affected.all_nodes else affected.nodes:
            self._stale_nodes[name] = None

    def _touch(self, pods: Iterable[str]) -> None:
        self._stale_pods.update(dict.fromkeys(pods))

    # -- pods and nodes ---------------------------------------------------------------------------------

    def add_pod(self, pod: Pod) -> None:
        """Add a pod that is not terminated, of any scheduler, or replace its earlier version."""
        if not (pod.spec.resource_claims or may_be_extended(pod)):
            return
        uid = pod.metadata.uid
        before = self._pods.get(uid)
        self._pods[uid] = pod
        known = [] if before is None else [*claims_of(before)]
        if known != [*claims_of(pod)]:
            for one in claims_of(pod):
                if one.key:
                    self._pods_of_claim.add(one.key, uid)
        if before is None or before.spec.node_name != pod.spec.node_name:
            if pod.spec.node_name:
                self._assumed.pop(uid, None)
                self._take_over(pod)
            self._report_claims(pod)

    def remove_pod(self, uid: str) -> None:
        """Remove a pod that is terminated or deleted."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        self._assumed.pop(uid, None)
        self._stale_pods.pop(uid, None)
        for one in claims_of(pod):
            self._pods_of_claim.discard(one.key, uid)
            self._pass_on(one.key, uid)
        self._report_claims(pod)
        self._call(uid)

    def _report_claims(self, pod: Pod) -> None:
        for one in claims_of(pod):
            if one.key in self.claims:
                self._report(one.key)

    def assume(self, uid: str) -> None:
        """Note that the core has allocated the devices of a pod, which gets its node soon."""
        pod = self._pods.get(uid)
        if pod is not None and uid not in self._assumed:
            self._assumed[uid] = None
            self._take_over(pod)
            self._report_claims(pod)
            self._on_change()

    def forget(self, uid: str) -> None:
        """Note that a pod does not get its node."""
        if uid in self._assumed:
            del self._assumed[uid]
            pod = self._pods.get(uid)
            if pod is not None:
                self._report_claims(pod)
                self._touch((uid,))
            self._on_change()

    def add_node(self, node: Node) -> None:
        """Add a node, or replace its earlier version."""
        name = node.metadata.name
        before = self._nodes.get(name)
        self._nodes[name] = node
        if before is None or before.status.allocatable != node.status.allocatable:
            self._set_plugins(node)

    def remove_node(self, name: str) -> None:
        """Remove a node."""
        if self._nodes.pop(name, None) is not None:
            self._catalog.remove_slice(plugin_slice(name))
        self._stale_nodes.pop(name, None)

    # -- results ----------------------------------------------------------------------------------------

    def changes(self) -> ClaimChanges:
        """Return what may have changed since the last call. Send pods before nodes."""
        found = ClaimChanges(tuple(self._stale_pods), tuple(self._stale_nodes))
        self._stale_pods.clear()
        self._stale_nodes.clear()
        return found

    def attributes(self, name: str) -> Mapping[str, str]:
        """Return the attributes of a node that concern devices; none for a node that has not been added."""
        node = self._nodes.get(name)
        return {} if node is None else self._catalog.node_attributes(name, node.metadata.labels)

    def tags(self, pod: Pod) -> ClaimTags:
        """Return tags and problems of a pod."""
        planned = self._planned(pod)
        if not (pod.spec.resource_claims or planned):
            return NO_CLAIMS
        if not self._is_served:
            return _refused("claims", (NOT_SERVED,))
        references = [*claims_of(pod)]
        if pod.spec.node_name:
            text = self._catalog.allocations_text(self._pod_claims(pod, references))
            return ClaimTags({names.TAG_DEVICES: text} if text else {})
        problems = tuple(filter(None, (self._problem(pod, one) for one in references)))
        if problems:
            return _refused(references[0].pod_claim, problems)
        text = self._catalog.claims_text(self._pod_claims(pod, references), planned)
        return ClaimTags({names.TAG_CLAIMS: text or NONE_NEEDED})

    def _planned(self, pod: Pod) -> Mapping[str, Json]:
        """Return the claim of a pod for extended resources."""
        spec = self.extended.spec_of(pod) if pod.metadata.uid in self._pods else {}
        return {EXTENDED_CLAIM: spec} if spec else {}

    # -- amounts in quotas ------------------------------------------------------------------------------

    def node_amounts(self, name: str) -> Tally:
        """Return what a node with devices has of the resources that count them."""
        node = self._nodes.get(name)
        if node is None or not self._catalog.has_devices(name, node.metadata.labels):
            return {}
        return dict.fromkeys(
            (*map(self.amounts.resource_of, self._classes), *self.extended.resources), PLENTY
        )

    def pod_amounts(self, pod: Pod, devices: str = "") -> Tally:
        """Return the amounts of a pod of ours, with the `devices` that the core has chosen, as in its tag.

        A claim of several pods counts once, for the first of them that has a node or else that is known.
        """
        if pod.metadata.uid not in self._pods or not is_ours(pod):
            return {}
        chosen = {one.id.pod_claim: one.json for one in read_device_allocations(devices)} if devices else {}
        total: Tally = {}
        for request in self.extended.requests_of(pod):
            counted = self.amounts.resource_of(request.device_class)
            if counted != request.resource:
                grow(total, {counted: request.amount})
            if request.resource.startswith(IMPLICIT):
                grow(total, {request.resource: -request.amount})
        for one in claims_of(pod):
            claim = self.claims.get(one.key)
            if claim is None or one.pod_claim == EXTENDED_CLAIM or not self._pays(pod, one.key):
                continue
            allocation = chosen.get(one.pod_claim) or claim.allocation
            if allocation is None:
                grow(total, self.amounts.at_most(claim.spec))
            else:
                grow(total, self.amounts.of_results(claim.spec, results_of(allocation)))
        return total

    def _pays(self, pod: Pod, key: str) -> bool:
        """Return True if a claim counts for a pod."""
        uid = pod.metadata.uid
        if self.is_own(pod, key):
            return True
        return self._payers.setdefault(key, uid) == uid

    def _take_over(self, pod: Pod) -> None:
        """Let claims count for a pod that has got its node, instead of one that waits."""
        uid = pod.metadata.uid
        for one in claims_of(pod) if is_ours(pod) else ():
            payer = self._payers.get(one.key)
            if payer is not None and payer != uid and not self._is_placed(payer):
                self._payers[one.key] = uid
                self._touch((payer, uid))

    def _is_placed(self, uid: str) -> bool:
        pod = self._pods.get(uid)
        return pod is not None and bool(pod.spec.node_name or uid in self._assumed)

    def _pass_on(self, key: str, uid: str) -> None:
        """Let a claim count for another pod than one that has ended."""
        if self._payers.get(key) != uid:
            return
        users = [one for one in self._pods_of_claim[key] if is_ours(self._pods[one])]
        following = next((one for one in users if self._is_placed(one)), users[0] if users else None)
        if following is None:
            del self._payers[key]
        else:
            self._payers[key] = following
            self._touch((following,))

    # -- the pods of claims -----------------------------------------------------------------------------

    def _pod_claims(self, pod: Pod, references: Iterable[ClaimReference]) -> list[PodClaim]:
        return [PodClaim(one.pod_claim, one.key, self.is_own(pod, one.key)) for one in references if one.key]

    def is_own(self, pod: Pod, key: str) -> bool:
        """Return True for a claim that was made for one pod alone."""
        claim = self.claims.get(key)
        return claim is not None and claim.owner_uid == pod.metadata.uid

    def _problem(self, pod: Pod, reference: ClaimReference) -> str:
        """Return why a pod has to wait for a claim; empty if the claim can be used."""
        key = reference.key
        if not key:
            return f"the claim {reference.pod_claim!r} of the pod has not been made from its template yet"
        claim = self.claims.get(key)
        if claim is None:
            return f"the resource claim {key} does not exist"
        if claim.metadata.deletion_timestamp is not None:
            return f"the resource claim {key} is being deleted"
        if reference.is_made and not (self.is_own(pod, key) or self._is_of_group(pod, claim)):
            return f"the resource claim {key} belongs neither to the pod nor to its PodGroup"
        if key in self._returning:
            return f"the devices of the resource claim {key} are being given back"
        if len(claim.consumers) >= MOST_CONSUMERS and self.consumer(pod, reference) not in claim.consumers:
            return f"the resource claim {key} is used by {MOST_CONSUMERS} pods, which is the maximum"
        return ""

    @staticmethod
    def _is_of_group(pod: Pod, claim: ResourceClaimObject) -> bool:
        group = group_name(pod)
        return bool(group) and any(
            one.controller
            and one.kind == POD_GROUPS.kind
            and one.name == group
            and one.api_version.startswith(f"{POD_GROUPS.group}/")
            for one in claim.metadata.owner_references
        )

    def consumer(self, pod: Pod, reference: ClaimReference) -> Json:
        """Return the entry of `reservedFor` for a claim of a pod: the pod, or its PodGroup once for all."""
        meta = pod.metadata
        group = self._groups.get(f"{meta.namespace}/{group_name(pod)}") if group_name(pod) else None
        if group is not None:
            [entry] = [one for one in pod.spec.resource_claims if one.get("name") == reference.pod_claim]
            if any(_source(one) == _source(entry) for one in group.spec.resource_claims):
                meta = group.metadata
                return {
                    "apiGroup": POD_GROUPS.group,
                    "resource": POD_GROUPS.plural,
                    "name": meta.name,
                    "uid": meta.uid,
                }
        return consumer_of(pod)

    def pod(self, uid: str) -> Pod | None:
        """Return a pod with claims, or None."""
        return self._pods.get(uid)

    def is_consumer(self, key: str, consumer: Json) -> bool:
        """Return False for a pod of ours that neither has a node nor is about to get one.

        Of a group, one of the pods that use the claim has to. Pods of others, and those that do not exist any
        more, are the concern of other programs.
        """
        if consumer.get("resource") == "pods":
            pod = self._pods.get(str(consumer.get("uid")))
            return pod is None or not is_ours(pod) or self._is_consuming(consumer)
        return any(self._is_placed(uid) for uid in self._pods_of_claim[key])

    def watch(self, uid: str, note: Callable[[], object]) -> None:
        """Call a function after each change of the claims of a pod, and after its end."""
        self._watches[uid] = note

    def unwatch(self, uid: str) -> None:
        """End the calls."""
        self._watches.pop(uid, None)

    def _call(self, uid: str) -> None:
        note = self._watches.get(uid)
        if note is not None:
            note()

    # -- devices that are given back --------------------------------------------------------------------

    def begin_return(self, key: str) -> None:
        """Keep pods waiting for a claim whose devices are being given back."""
        self._returning[key] = self._returning.get(key, 0) + 1
        self._touch(self._pods_of_claim[key])

    def end_return(self, key: str) -> None:
        """Let pods use a claim whose devices have been given back."""
        self._returning[key] -= 1
        if not self._returning[key]:
            del self._returning[key]
            self._touch(self._pods_of_claim[key])
            self._on_change()


def _refused(pod_claim: str, problems: tuple[str, ...]) -> ClaimTags:
    """Return tags with which no node is suitable, for a request that waits already, and the problems."""
    entry = {"podClaim": pod_claim, "problem": "; ".join(problems)}
    return ClaimTags({names.TAG_CLAIMS: compact_json({"claims": [entry], "classes": {}})}, problems)


def _source(entry: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Return the name of an entry of `spec.resourceClaims`, and what it refers to."""
    return entry.get("name"), entry.get("resourceClaimName"), entry.get("resourceClaimTemplateName")
