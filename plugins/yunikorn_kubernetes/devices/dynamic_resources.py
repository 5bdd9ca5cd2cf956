"""Predicate `dynamic-resources`: nodes whose devices serve the claims of a pod, and which devices it gets.

It decides by texts alone: slices are attributes of nodes, claims are a tag of requests, and the devices of an
allocation are its tag, which the predicate commits (docs/decisions/0214-devices-as-a-predicate.md). Its books
have the devices of all allocations, and of placements that are tried. Where the members of a gang that are
tried on a node leave no devices for the next one, other devices are searched for all of them together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

import attrs

from yunikorn.api import Ask, Node, Predicate, Task, Where, hookimpl
from yunikorn_kubernetes import names
from yunikorn_kubernetes.devices.device_allocator import DeviceAllocator, NoDevices
from yunikorn_kubernetes.devices.device_objects import (
    NODE_NAME,
    DeviceAllocation,
    DeviceClass,
    DeviceId,
    Json,
    ResourceClaim,
)
from yunikorn_kubernetes.devices.device_search import AllocationError
from yunikorn_kubernetes.devices.device_tags import (
    AllocatedClaim,
    ClaimId,
    WantedClaims,
    device_allocations_text,
    read_device_allocations,
    read_wanted_claims,
)
from yunikorn_kubernetes.devices.device_usage import DeviceUsage
from yunikorn_kubernetes.devices.node_devices import NodeDevices, claimed_devices, has_shared_devices
from yunikorn_kubernetes.devices.selected_devices import SelectorResults
from yunikorn_kubernetes.predicates.node_affinity import parse_node_term
from yunikorn_kubernetes.predicates.tag_reading import UnreadableText, section, tables_of

MOST_ANSWERS = 1024
"""Number of pairs of claims and node whose devices are kept until the books change."""
MOST_COUNTED = 128
"""Largest number of requests of a class that are counted on a node."""
MOST_TOGETHER = 16
"""Number of tried members on a node whose devices are searched together with those of the next one."""
MOST_TRIALS = 4096
"""Number of tried members whose devices are kept from a search for several of them."""
SEARCHED = "searched"
"""Mark of claims for which only a search counts the room of a node."""
DEVICES = ("devices",)
"""Subject of all tasks with devices: the release of one may let another have its devices."""

_TaskId = tuple[str, str]
"""Ids of application and request."""
_Chosen = tuple[AllocatedClaim, ...] | str
"""Devices of a request on a node, or the reason why there are none."""


@attrs.define(eq=False)
class _HeldClaim:
    """A claim with an object of its own that has its devices; several tasks may consume it."""

    claim: AllocatedClaim
    holders: int = 0


@attrs.define(eq=False)
class _Entry:
    """A task in the books."""

    task: _TaskId
    text: str
    """Its tag `resource-claims`."""
    held: list[str] = attrs.Factory(list)
    """Keys of its claims with an object of their own."""
    own: list[AllocatedClaim] = attrs.Factory(list)
    """Claims of this task alone."""
    is_unreadable: bool = False


class DynamicResources(Predicate):
    """Only nodes whose devices serve the claims of the pod."""

    name = "dynamic-resources"
    counts_foreign = True

    def __init__(self) -> None:
        """Create empty books."""
        self._usage = DeviceUsage()
        self._results = SelectorResults()
        self._devices = NodeDevices()
        self._held: dict[str, _HeldClaim] = {}
        self._entries: dict[Hashable, list[_Entry]] = {}
        """Tasks by ids, node and tag, the latest last."""
        self._tried: dict[str, list[_Entry]] = {}
        """Tasks that are only tried, by node, in the order of their placement."""
        self._together: dict[Hashable, list[AllocatedClaim]] = {}
        """Claims of a tried task alone, by the tasks before it, from a search for all of them."""
        self._claimed: dict[str, _Entry] = {}
        """Claims that no pod consumes, by node."""
        self._unreadable: dict[str, int] = {}
        """Number of tasks on a node whose devices are not known."""
        self._answers: dict[tuple[str, str], _Chosen] = {}
        """Devices by node and claims, until the books change."""

    # -- questions ------------------------------------------------------------------------------------

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if the node has devices for the claims of the pod."""
        text = ask.tags.get(names.TAG_CLAIMS)
        if not text:
            return UNKNOWN_CLAIMS if has_unknown_claims(ask) else None
        found = self._choose(ask, node, text)
        return found if isinstance(found, str) else None

    def commit(self, ask: Ask, node: Node) -> Mapping[str, str] | None:
        """Return the devices of all claims of the pod as a tag."""
        text = ask.tags.get(names.TAG_CLAIMS)
        if not text:
            return None
        found = self._choose(ask, node, text)
        if isinstance(found, str):
            raise AllocationError(found)
        claims = [(one.id, one.json or one.allocation.to_json(_share_ids(one.id, ask))) for one in found]
        return {names.TAG_DEVICES: device_allocations_text(claims)}

    def room(self, ask: Ask, node: Node) -> int | None:
        """Return how many pods with these claims the node has devices for.

        None where that depends on other nodes, or on which of several possible devices the pods get.
        """
        text = ask.tags.get(names.TAG_CLAIMS)
        if not text or has_shared_devices(node):
            return None
        wanted = read_wanted_claims(text)
        if len(wanted.ids) != 1 or not wanted.ids[0].is_own or not self._is_plain(wanted.claims[0], node):
            return None
        pools = self._devices.of(node).pools_of(node.id, node.attributes)
        usable = pools.keep(("usable", text), lambda: self._usable(wanted, node))
        free = None if isinstance(usable, str) else self._usage.count_free(usable)
        if free is None:
            return self._count(wanted, node)
        count = wanted.claims[0].requests[0].alternatives[0].count
        return 0 if node.id in self._unreadable else min(free // count, MOST_COUNTED)

    def _count(self, wanted: WantedClaims, node: Node) -> int:
        """Return how many pods get devices, by a search for one after the other."""
        added: list[AllocatedClaim] = []
        count = 0
        while count < MOST_COUNTED:
            found = self._search(wanted, node)
            if isinstance(found, str):
                break
            count += 1
            self._use(found, 1)
            added += found
        self._use(added, -1)
        return count

    def _is_plain(self, claim: ResourceClaim, node: Node) -> bool:
        """Return True if all devices that a claim can get are worth the same."""
        if claim.constraints or len(claim.requests) != 1 or claim.requests[0].is_prioritized:
            return False
        try:
            pools = self._devices.of(node).pools_of(node.id, node.attributes).pools
        except UnreadableText:
            return False
        return not any(pool.counters for pool in pools)

    def _usable(self, wanted: WantedClaims, node: Node) -> tuple[DeviceId, ...] | str:
        """Return the devices of a node that serve the only claim if they are free, or `SEARCHED`."""
        if wanted.problem or wanted.allocated[0] is not None:
            return SEARCHED
        allocator = DeviceAllocator(self._devices.of(node), wanted.classes, self._usage, self._results)
        found = allocator.usable(node.id, node.attributes, wanted.claims[0])
        return SEARCHED if found is None else found

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the claims of the pod."""
        return ask.tags.get(names.TAG_CLAIMS) or has_unknown_claims(ask)

    def domain(self, node: Node) -> Hashable:
        """Return the name of the node."""
        return node.id

    def subjects(self, task: Task) -> tuple[Hashable, ...]:
        """Return one subject for all pods with devices or claims."""
        return DEVICES if names.TAG_CLAIMS in task.tags or names.TAG_DEVICES in task.tags else ()

    def wanted(self, ask: Ask) -> str | None:
        """Return the device classes of the claims."""
        text = ask.tags.get(names.TAG_CLAIMS)
        if not text:
            return None
        found = (
            f"{one.count if one.mode != 'All' else 'all'} of class {one.device_class}"
            for claim in read_wanted_claims(text).claims
            for request in claim.requests
            for one in request.alternatives[:1]
        )
        return f"devices ({', '.join(found)})"

    # -- choice of devices ----------------------------------------------------------------------------

    def _choose(self, task: Task, node: Node, text: str) -> _Chosen:
        """Return the devices of a pod, or the reason why the node has none for it."""
        wanted, tried = read_wanted_claims(text), self._tried.get(node.id, ())
        known = self._together.get(_place(node, tried, _id_of(task), text)) if self._together else None
        if known is not None:
            found = self._search(wanted, node, known)
            return (isinstance(found, str) and self._choose_together(task, node, text, tried)) or found
        key = node.id, text
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= MOST_ANSWERS:
                del self._answers[next(iter(self._answers))]
            answer = self._answers[key] = self._search(wanted, node)
        if tried and isinstance(answer, str):
            return self._choose_together(task, node, text, tried) or answer
        return answer

    def _search(
        self, wanted: WantedClaims, node: Node, own: Sequence[AllocatedClaim] | None = None
    ) -> _Chosen:
        """Return the devices of all claims on a node; `own` has those of the claims of the pod alone."""
        if wanted.problem:
            return wanted.problem
        found: dict[ClaimId, AllocatedClaim] = {one.id: one for one in own or ()}
        for one in self._allocated(wanted):
            if not _admits(one.allocation, node):
                return f"claim {one.id} has devices that the node cannot use"
            found[one.id] = one
        pairs = zip(wanted.ids, wanted.claims, strict=True)
        left = [(identity, claim) for identity, claim in pairs if identity not in found]
        if left:
            allocations = self._allocate(node, [claim for _, claim in left], wanted.classes)
            if isinstance(allocations, str):
                return allocations
            for (identity, _), allocation in zip(left, allocations, strict=True):
                found[identity] = AllocatedClaim(identity, allocation, {})
        return tuple(found[identity] for identity in wanted.ids)

    def _allocated(self, wanted: WantedClaims) -> Iterator[AllocatedClaim]:
        """Yield the claims that have their devices, by the books or by the request."""
        for identity, allocated in zip(wanted.ids, wanted.allocated, strict=True):
            held = None if identity.is_own else self._held.get(_key(identity))
            if held is not None:
                yield held.claim._replace(id=identity)
            elif allocated is not None:
                yield allocated

    def _allocate(
        self, node: Node, claims: Sequence[ResourceClaim], classes: Mapping[str, DeviceClass]
    ) -> Sequence[DeviceAllocation] | str:
        if node.id in self._unreadable:
            return "the devices of a pod on the node cannot be read"
        try:
            allocator = DeviceAllocator(self._devices.of(node), classes, self._usage, self._results)
            found = allocator.allocate(node.id, node.attributes, claims)
        except UnreadableText as error:
            return f"the slices of the node cannot be read: {error}"
        except AllocationError as error:
            return str(error)
        return found.reason if isinstance(found, NoDevices) else found

    # -- members of a gang ----------------------------------------------------------------------------

    def _choose_together(
        self, task: Task, node: Node, text: str, tried: Sequence[_Entry]
    ) -> tuple[AllocatedClaim, ...] | None:
        """Return devices beside other ones for the members that are tried on the node; None without any."""
        wanted = read_wanted_claims(text)
        parts = [*(read_wanted_claims(entry.text) for entry in tried), wanted]
        if wanted.problem or len(tried) > MOST_TOGETHER or has_shared_devices(node):
            return None
        if not all(one.is_own or _key(one) in self._held for one in wanted.ids):
            return None
        claims = [
            [pair for pair in zip(part.ids, part.claims, strict=True) if pair[0].is_own] for part in parts
        ]
        classes = {name: one for part in parts for name, one in part.classes.items()}
        every = [claim for own in claims for _, claim in own]
        for entry in tried:
            self._use(entry.own, -1)
        found = self._allocate(node, every, classes)
        for entry in tried:
            self._use(entry.own, 1)
        if isinstance(found, str):
            return None
        left = iter(found)
        if len(self._together) + len(parts) > MOST_TRIALS:
            self._together.clear()
        tasks = [*((entry.task, entry.text) for entry in tried), (_id_of(task), text)]
        for number, own in enumerate(claims):
            chosen = [AllocatedClaim(identity, next(left), {}) for identity, _ in own]
            self._together[_place(node, tried[:number], *tasks[number])] = chosen
        answer = self._search(wanted, node, chosen)
        return None if isinstance(answer, str) else answer

    def _exchange(self, node: Node, tried: Sequence[_Entry]) -> None:
        """Give tried members the devices that were found for all of them together."""
        for number, entry in enumerate(tried):
            found = self._together.get(_place(node, tried[:number], entry.task, entry.text))
            if found is not None and found is not entry.own:
                self._use(entry.own, -1)
                self._use(found, 1)
                entry.own = found

    # -- books ----------------------------------------------------------------------------------------

    def placed(self, task: Task, node: Node) -> Where | None:
        """Count the devices of a pod: those of its tag, or those that it would get."""
        devices, text = task.tags.get(names.TAG_DEVICES), task.tags.get(names.TAG_CLAIMS, "")
        if not devices and not text:
            return None
        entry = _Entry(_id_of(task), text)
        is_tried = not devices and not hasattr(task, "uuid")
        try:
            found = read_device_allocations(devices) if devices else self._choose(task, node, text)
        except UnreadableText:
            entry.is_unreadable = True
            self._unreadable[node.id] = self._unreadable.get(node.id, 0) + 1
            found = ""
        if is_tried:
            tried = self._tried.setdefault(node.id, [])
            if self._together:
                self._exchange(node, tried)
            tried.append(entry)
        else:
            self._together.clear()
        self._entries.setdefault(_entry_key(task, node), []).append(entry)
        return self._add(entry, () if isinstance(found, str) else found)

    def released(self, task: Task, node: Node) -> Where | None:
        """Count the devices of a pod no more."""
        key = _entry_key(task, node)
        entries = self._entries.get(key)
        if not entries:
            return None
        entry = entries.pop()
        if not entries:
            del self._entries[key]
        tried = self._tried.get(node.id, [])
        if entry in tried:
            tried.remove(entry)
            if not tried:
                del self._tried[node.id]
        else:
            self._together.clear()
        if entry.is_unreadable:
            self._unreadable[node.id] -= 1
            if not self._unreadable[node.id]:
                del self._unreadable[node.id]
        return self._remove(entry)

    def node_added(self, node: Node) -> Where | None:
        """Count the devices of claims that no pod consumes."""
        entry = self._claimed[node.id] = _Entry(("", ""), "")
        try:
            return self._add(entry, claimed_devices(node))
        except UnreadableText:
            entry.is_unreadable = True
            self._unreadable[node.id] = 1
            return None

    def node_removed(self, node: Node) -> Where | None:
        """Forget the devices of a node."""
        self._devices.forget(node)
        entry = self._claimed.pop(node.id)
        if entry.is_unreadable:
            self._unreadable.pop(node.id, None)
        return self._remove(entry)

    def _add(self, entry: _Entry, claims: Iterable[AllocatedClaim]) -> Where | None:
        changed: Where | None = None
        self._answers.clear()
        for one in claims:
            if one.id.is_own:
                entry.own.append(one)
                self._use((one,), 1)
                continue
            key = _key(one.id)
            held = self._held.get(key)
            if held is None:
                held = self._held[key] = _HeldClaim(one)
                self._use((one,), 1)
                # Other pods with this claim can now be where its devices are.
                if changed is None:
                    changed = Where.HERE if _is_local(one.allocation) else Where.EVERYWHERE
            held.holders += 1
            entry.held.append(key)
        return changed

    def _remove(self, entry: _Entry) -> Where | None:
        changed: Where | None = None
        self._answers.clear()
        gone = entry.own
        for key in entry.held:
            held = self._held[key]
            held.holders -= 1
            if not held.holders:
                del self._held[key]
                gone = [*gone, held.claim]
                changed = Where.EVERYWHERE
        self._use(gone, -1)
        return changed if all(_is_local(one.allocation) for one in gone) else Where.EVERYWHERE

    def _use(self, claims: Iterable[AllocatedClaim], sign: int) -> None:
        change: Callable[..., None] = self._usage.add if sign > 0 else self._usage.remove
        for claim in claims:
            for result in claim.allocation.results:
                change(result)


UNKNOWN_CLAIMS = "the pod uses dynamic resource allocation (spec.resourceClaims); its claims are not known"


def has_unknown_claims(ask: Ask) -> bool:
    """Return True if a pod has claims of which no tag says anything, or if its constraints are unreadable."""
    return section(ask, names.RESOURCE_CLAIMS) not in ("", "false", "null")


def _id_of(task: Task) -> _TaskId:
    return task.app.id, task.key


def _key(identity: ClaimId) -> str:
    return identity.uid or f"{identity.namespace}/{identity.name}"


def _entry_key(task: Task, node: Node) -> Hashable:
    return *_id_of(task), node.id, task.tags.get(names.TAG_DEVICES, ""), hasattr(task, "uuid")


def _place(node: Node, before: Sequence[_Entry], task: _TaskId, text: str) -> Hashable:
    """Return a key of a tried task after others on a node."""
    return node.id, tuple((entry.task, entry.text) for entry in before), task, text


def _share_ids(identity: ClaimId, ask: Ask) -> Callable[[], str]:
    """Return a function that returns ids of shares, which only depend on the claim and the request."""
    seed = f"{ask.app.id}/{ask.key}/{identity.pod_claim}" if identity.is_own else _key(identity)
    numbers = iter(range(1 << 30))

    def share_id() -> str:
        return str(UUID(bytes=hashlib.sha256(f"{seed}#{next(numbers)}".encode()).digest()[:16], version=4))

    return share_id


def _is_local(allocation: DeviceAllocation) -> bool:
    """Return True if the devices can be used on one node only."""
    terms = (allocation.node_selector or {}).get("nodeSelectorTerms")
    return type(terms) is list and len(terms) == 1 and _names_node(terms[0])


def _names_node(term: Json) -> bool:
    fields = term.get("matchFields") if type(term) is dict else None
    return type(fields) is list and any(type(one) is dict and one.get("key") == NODE_NAME for one in fields)


def _admits(allocation: DeviceAllocation, node: Node) -> bool:
    """Return True if the node can use the devices of an allocation."""
    if allocation.node_selector is None:
        return True
    try:
        terms = tables_of(allocation.node_selector.get("nodeSelectorTerms"), "nodeSelectorTerms")
        return any(parse_node_term(term).matches(node.id, node.attributes) for term in terms)
    except UnreadableText:
        return False


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [DynamicResources]
