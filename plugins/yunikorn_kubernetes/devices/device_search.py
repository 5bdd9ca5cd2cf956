"""Search for devices that serve claims on one node, in the order of Kubernetes.

Claims, their requests and the devices of a request are served one after the other. Each takes the first
device that is possible, and the search goes back where none is left; so the first solution in the order of
pools, slices and devices is the result. Within a request, only combinations are tried. Steps are limited.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

import attrs

from yunikorn_kubernetes.devices.cel.cel_syntax import SelectorError
from yunikorn_kubernetes.devices.cel.exact_quantity import ExactQuantity
from yunikorn_kubernetes.devices.device_constraints import ConstraintState
from yunikorn_kubernetes.devices.device_objects import (
    ALL,
    MOST_RESULTS,
    NO_EXECUTE,
    NO_SCHEDULE,
    AttributeValue,
    DeviceClass,
    DeviceConstraint,
    DeviceId,
    DeviceRequest,
    DeviceTraits,
    ResourceClaim,
)
from yunikorn_kubernetes.devices.device_sharing import Amounts, consumption, fits
from yunikorn_kubernetes.devices.device_usage import NOTHING, DeviceUsage
from yunikorn_kubernetes.devices.node_pools import Counters, NodePool, NodePools, PlacedDevice
from yunikorn_kubernetes.devices.selected_devices import Admission, SelectorResults

MOST_STEPS = 100_000
"""Number of devices that one search looks at, counted as often as it does."""
MEMORY_FROM = 500
"""Number of steps after which a search remembers what has failed."""
HOPELESS_FROM = 1_000
"""Number of steps after which a search finds out whether a request can be served at all."""
MOST_DEVICES = 400
"""Number of devices that all claims of a pod can have together."""


class AllocationError(Exception):
    """Claims that cannot be allocated anywhere before something is corrected, or not on this node."""

    def __init__(self, message: str, *, is_local: bool = False) -> None:
        """Create the error; a local one concerns only the node that was asked about."""
        super().__init__(message)
        self.is_local = is_local


class _HopelessSearch(Exception):
    """A request finds too few devices even if nothing else is served."""


class SearchOutcome(enum.Enum):
    """Result of a step of the search."""

    DONE = "done"
    FAILED = "failed"
    TOO_MANY = "too many"
    """Whatever devices were taken, the claim would have more than it can have."""


class Obstacle(enum.Enum):
    """Reason why a device does not serve a request."""

    SELECTOR = "not selected"
    TAKEN = "taken"
    CAPACITY = "without enough capacity"
    COUNTER = "whose counters are used up"
    TAINT = "tainted"
    CONSTRAINT = "against a constraint"


@attrs.define(eq=False)
class WantedDevices:
    """A request, or one of its alternatives, and all that is known about it on a node."""

    claim: int
    """Position of its claim."""
    parent: str
    """Name of the request in the claim."""
    request: DeviceRequest
    device_class: DeviceClass
    admission: Admission
    needs: dict[int, Amounts | None]
    """Amounts that it consumes of devices, by the identity of their traits."""
    count: int
    everything: tuple[int, ...] = ()
    """Positions of the devices, if it wants all."""

    @property
    def is_admin(self) -> bool:
        """True if devices can be used by others at the same time."""
        return self.request.admin_access is True

    def amounts(self, traits: DeviceTraits) -> Amounts | None:
        """Return what the request consumes of a device."""
        if not traits.capacity:
            return None if self.request.capacity else ()
        key = id(traits)
        if key not in self.needs:
            self.needs[key] = consumption(self.request.capacity, traits)
        return self.needs[key]


@attrs.define(eq=False)
class ChosenRequest:
    """A request of a claim, and the alternative that has been chosen."""

    alternatives: tuple[WantedDevices, ...]
    is_prioritized: bool
    selected: int = 0


@attrs.frozen(eq=False)
class Choice:
    """A device that has been chosen for a request."""

    wanted: WantedDevices
    placed: PlacedDevice
    amounts: Amounts
    takes_counters: bool
    is_marked: bool
    is_share: bool


class DeviceSearch:
    """One search on one node."""

    def __init__(
        self,
        pools: NodePools,
        claims: Sequence[ResourceClaim],
        classes: Mapping[str, DeviceClass],
        usage: DeviceUsage,
        results: SelectorResults,
    ) -> None:
        """Check claims, and find out how many devices each request wants. Raises `AllocationError`."""
        self._pools = pools
        self._placed = pools.placed
        self._claims = claims
        self._classes = classes
        self._usage = usage
        self._results = results
        self._steps = 0
        self._failures: dict[Hashable, SearchOutcome] = {}
        self._reset()
        self.requests = [self._requests(number, claim) for number, claim in enumerate(claims)]
        """Requests of each claim."""
        self._check_sizes()

    def _reset(self) -> None:
        """Start without any choice."""
        self._marked: dict[DeviceId, list[int]] = {}
        self._shares: dict[DeviceId, int] = {}
        self._sharing: dict[DeviceId, dict[str, int]] = {}
        self._free: dict[NodePool, Counters] = {}
        self._exhausted: set[NodePool] = set()
        self.chosen: list[list[Choice]] = [[] for _ in self._claims]
        """Devices of each claim."""
        self._constraints = [[ConstraintState(one) for one in claim.constraints] for claim in self._claims]

    # -- requests -------------------------------------------------------------------------------------

    def _requests(self, number: int, claim: ResourceClaim) -> list[ChosenRequest]:
        if claim.problems:
            raise AllocationError(f"claim {claim.key}: {'; '.join(claim.problems)}")
        return [
            ChosenRequest(
                tuple(self._wanted(number, request.name, one) for one in request.alternatives),
                request.is_prioritized,
            )
            for request in claim.requests
        ]

    def _wanted(self, number: int, parent: str, request: DeviceRequest) -> WantedDevices:
        where = f"claim {self._claims[number].key}, request {request.name}"
        device_class = self._classes.get(request.device_class)
        if device_class is None:
            raise AllocationError(f"{where}: the device class {request.device_class} does not exist")
        if device_class.problem:
            raise AllocationError(f"{where}: {device_class.problem}")
        selectors = device_class.selectors + request.selectors
        admission = self._pools.keep(
            ("selectors", selectors), lambda: Admission(self._pools, selectors, self._results)
        )
        needs: dict[int, Amounts | None] = self._pools.keep(("needs", request.capacity), dict)
        wanted = WantedDevices(number, parent, request, device_class, admission, needs, request.count)
        if request.mode == ALL:
            wanted.everything = tuple(self._all(wanted, where))
            wanted.count = len(wanted.everything)
        return wanted

    def _all(self, wanted: WantedDevices, where: str) -> list[int]:
        for pool in self._pools.pools:
            if pool.is_incomplete:
                raise AllocationError(f"{where}: wants all devices, and pool {pool} is being updated")
            if pool.problem:
                raise AllocationError(
                    f"{where}: wants all devices, and pool {pool} is invalid: {pool.problem}"
                )
        return [
            at
            for at, placed in enumerate(self._placed)
            if self._admits(wanted, at) and self._has_capacity(wanted, placed)
        ]

    def _admits(self, wanted: WantedDevices, at: int) -> bool:
        try:
            return wanted.admission.admits(at)
        except SelectorError as error:
            claim = self._claims[wanted.claim].key
            raise AllocationError(
                f"claim {claim}, request {wanted.request.name}: device {self._placed[at].id}: {error}"
            ) from None

    def _check_sizes(self) -> None:
        total = 0
        for claim, requests in zip(self._claims, self.requests, strict=True):
            least = sum(min(one.count for one in request.alternatives) for request in requests)
            if least > MOST_RESULTS:
                raise AllocationError(
                    f"claim {claim.key} wants {least} devices; a claim can have {MOST_RESULTS}"
                )
            total += least
        if total > MOST_DEVICES:
            raise AllocationError(
                f"the claims of the pod want {total} devices; at most {MOST_DEVICES} are possible"
            )

    # -- the search -----------------------------------------------------------------------------------

    def run(self) -> bool:
        """Return True if there is a solution; `chosen` and `requests` have it. Raises `AllocationError`."""
        try:
            return self._request(0, 0) is SearchOutcome.DONE
        except _HopelessSearch:
            self._reset()
            return False

    def _step(self) -> None:
        self._steps += 1
        if self._steps == HOPELESS_FROM and self._is_hopeless():
            raise _HopelessSearch
        if self._steps > MOST_STEPS:
            raise AllocationError(
                f"the search for devices on the node takes more than {MOST_STEPS} steps", is_local=True
            )

    def _request(self, claim: int, number: int) -> SearchOutcome:
        """Serve a request and all that come after it."""
        self._step()
        if claim == len(self._claims):
            return SearchOutcome.DONE
        if self._steps < MEMORY_FROM:
            return self._request_once(claim, number)
        state = self._state(claim, number)
        found = self._failures.get(state)
        if found is None:
            found = self._request_once(claim, number)
            if found is not SearchOutcome.DONE:
                self._failures[state] = found
        return found

    def _state(self, claim: int, number: int) -> Hashable:
        """Return all that the rest of the search depends on; several orders of choices lead there."""
        marked: dict[DeviceId, tuple[tuple[int, bool], ...]] = {}
        shares: list[Hashable] = []
        for choices in self.chosen:
            for choice in choices:
                device, wanted = choice.placed.id, choice.wanted
                if choice.is_marked:
                    marked[device] = (*marked.get(device, ()), (wanted.claim, choice.takes_counters))
                else:
                    shares.append((device, choice.takes_counters, choice.amounts))
        return (
            *(claim, number, len(self.chosen[claim]), frozenset(marked.items())),
            tuple(sorted(shares, key=repr)),
            tuple(one.state() for one in self._constraints[claim]),
        )

    def _request_once(self, claim: int, number: int) -> SearchOutcome:
        requests = self.requests[claim]
        if number == len(requests):
            found = self._request(claim + 1, 0)
            # Another choice in this claim may leave a smaller alternative to the next one.
            return SearchOutcome.FAILED if found is SearchOutcome.TOO_MANY else found
        request = requests[number]
        if not request.is_prioritized:
            return self._devices(request.alternatives[0], number, 0, 0)
        worst = SearchOutcome.TOO_MANY
        for selected, wanted in enumerate(request.alternatives):
            found = self._devices(wanted, number, 0, 0)
            if found is SearchOutcome.DONE:
                request.selected = selected
                return found
            if found is SearchOutcome.FAILED:
                worst = found
        return worst

    def _devices(self, wanted: WantedDevices, number: int, index: int, start: int) -> SearchOutcome:
        """Choose the devices of a request from the one with this index on, beginning at a position."""
        is_all = wanted.request.mode == ALL
        if is_all and not wanted.count:
            return SearchOutcome.FAILED
        if index >= wanted.count:
            return self._request(wanted.claim, number + 1)
        if len(self.chosen[wanted.claim]) + wanted.count - index > MOST_RESULTS:
            return SearchOutcome.TOO_MANY
        positions: Sequence[int] = (
            wanted.everything[index : index + 1] if is_all else range(start, len(self._placed))
        )
        last = len(self._placed) - (wanted.count - index)
        for at in positions:
            self._step()
            if at > last and not is_all and wanted.admission.is_complete:
                break  # Too few are left, and none of these can be an error.
            obstacle = self._take(wanted, at, must=is_all)
            if obstacle is not None:
                continue
            found = self._devices(wanted, number, index + 1, at + 1)
            if found is SearchOutcome.DONE:
                return found
            self._give_back(wanted)
            if found is SearchOutcome.TOO_MANY:
                return found
        return SearchOutcome.FAILED

    def _is_hopeless(self) -> bool:
        """Return True if a request cannot be served alone, or all together want more devices than there are.

        Choices only take devices away, so such a request ends every attempt. The answer is the same as that
        of the whole search if no error can come up any more: all selectors have been evaluated.
        """
        fresh = DeviceSearch(self._pools, (), self._classes, self._usage, self._results)
        total, together = 0, set[int]()
        for claim, requests in zip(self._claims, self.requests, strict=True):
            for request in requests:
                for one in request.alternatives:
                    if not one.admission.is_known(lambda at: self._usage.is_taken(self._placed[at].id)):
                        return False
                    if one.request.mode == ALL and claim.constraints:
                        return False
                if not any(fresh.could_serve(claim, one) for one in request.alternatives):
                    return True
                first = request.alternatives[0]
                if not request.is_prioritized and not first.is_admin:
                    total += first.count
                    together |= set(fresh.usable(first))
        is_shared = any(self._placed[at].device.traits.is_shared for at in together)
        return len(together) < total and not is_shared

    def usable(self, wanted: WantedDevices) -> list[int]:
        """Return the positions of the devices that can serve a request now."""
        return [at for at in range(len(self._placed)) if self.obstacle(wanted, at) is None]

    def interchangeable(self) -> tuple[DeviceId, ...] | None:
        """Return the devices of which the only request takes the first ones that are free.

        None where that depends on more than which are free. Raises `AllocationError`.
        """
        wanted = self.requests[0][0].alternatives[0]
        if wanted.request.mode == ALL or wanted.is_admin:
            return None
        found, possible = [], dict[int, bool]()
        for at, placed in enumerate(self._placed):
            traits = placed.device.traits
            if traits.is_shared:
                return None
            if self._admits(wanted, at):
                if id(traits) not in possible:
                    # Devices with equal traits differ only in what selectors read.
                    possible[id(traits)] = self.obstacle(wanted, at) is None
                if possible[id(traits)]:
                    found.append(placed.id)
        return tuple(found)

    def could_serve(self, claim: ResourceClaim, wanted: WantedDevices) -> bool:
        """Return True if enough devices serve a request now, each constraint of its claim for itself."""
        found = self.usable(wanted)
        if wanted.request.mode == ALL:
            return wanted.count > 0 and set(wanted.everything) <= set(found)
        if len(found) < wanted.count:
            return False
        for constraint in claim.constraints:
            if constraint.concerns(wanted.parent, wanted.request.name):
                values = Counter(self._value(constraint, at) for at in found)
                del values[None]
                most = len(values) if constraint.is_distinct else max(values.values(), default=0)
                if most < wanted.count:
                    return False
        return True

    def _value(self, constraint: DeviceConstraint, at: int) -> tuple[type, AttributeValue] | None:
        placed = self._placed[at]
        value = placed.device.attribute(placed.id.driver, constraint.attribute)
        return None if value is None else (type(value), value)

    # -- one device -----------------------------------------------------------------------------------

    def obstacle(self, wanted: WantedDevices, at: int) -> Obstacle | None:
        """Return the first reason why a device does not serve a request now, constraints aside."""
        placed = self._placed[at]
        if self._is_taken(wanted, placed):
            return Obstacle.TAKEN
        if not self._admits(wanted, at):
            return Obstacle.SELECTOR
        if not self._has_capacity(wanted, placed):
            return Obstacle.CAPACITY
        if self._needs_counters(wanted, placed) and not self._has_counters(placed):
            return Obstacle.COUNTER
        return Obstacle.TAINT if _is_tainted(wanted, placed) else None

    def _take(self, wanted: WantedDevices, at: int, *, must: bool) -> Obstacle | None:
        """Choose a device, or return the reason why it cannot be chosen."""
        obstacle = self.obstacle(wanted, at)
        if obstacle is not None:
            return obstacle
        placed = self._placed[at]
        constraints = self._constraints[wanted.claim]
        for number, constraint in enumerate(constraints):
            if not constraint.add(wanted.parent, wanted.request.name, placed):
                for added in reversed(constraints[:number]):
                    added.remove(wanted.parent, wanted.request.name)
                if must:
                    raise AllocationError(
                        f"claim {self._claims[wanted.claim].key}, request {wanted.request.name}: wants all"
                        f" devices, and a constraint of the claim forbids device {placed.id}"
                    )
                return Obstacle.CONSTRAINT
        self._choose(wanted, placed)
        return None

    def _choose(self, wanted: WantedDevices, placed: PlacedDevice) -> None:
        traits, device = placed.device.traits, placed.id
        takes_counters = self._needs_counters(wanted, placed)
        amounts: Amounts = (wanted.amounts(traits) or ()) if traits.is_shared else ()
        choice = Choice(
            wanted, placed, amounts, takes_counters, is_marked=not traits.is_shared, is_share=traits.is_shared
        )
        if takes_counters:
            self._change_counters(placed, 1)
        if choice.is_marked:
            self._marked.setdefault(device, []).append(wanted.claim)
        else:
            self._shares[device] = self._shares.get(device, 0) + 1
            self._change_share(device, amounts, 1)
        self.chosen[wanted.claim].append(choice)

    def _give_back(self, wanted: WantedDevices) -> None:
        choice = self.chosen[wanted.claim].pop()
        device = choice.placed.id
        if choice.is_marked:
            self._marked[device].pop()
        else:
            self._shares[device] -= 1
            self._change_share(device, choice.amounts, -1)
        for constraint in self._constraints[wanted.claim]:
            constraint.remove(wanted.parent, wanted.request.name)
        if choice.takes_counters:
            self._change_counters(choice.placed, -1)

    def _is_taken(self, wanted: WantedDevices, placed: PlacedDevice) -> bool:
        marked = self._marked.get(placed.id)
        if wanted.is_admin:
            return bool(marked) and wanted.claim in (marked or ())
        return bool(marked) or self._usage.is_taken(placed.id)

    def _has_capacity(self, wanted: WantedDevices, placed: PlacedDevice) -> bool:
        traits, device = placed.device.traits, placed.id
        amounts = wanted.amounts(traits)
        if amounts is None:
            return False
        if not amounts:
            return True
        return fits(amounts, traits, self._usage.consumed(device), self._sharing.get(device, NOTHING))

    def _change_share(
        self, device: DeviceId, amounts: Sequence[tuple[str, ExactQuantity]], sign: int
    ) -> None:
        sharing = self._sharing.setdefault(device, {})
        for name, amount in amounts:
            sharing[name] = sharing.get(name, 0) + sign * amount.nanos

    # -- counters -------------------------------------------------------------------------------------

    def _needs_counters(self, wanted: WantedDevices, placed: PlacedDevice) -> bool:
        """Return True if counters are taken: not for administrators, nor for a share after the first."""
        traits = placed.device.traits
        if not traits.consumes or wanted.is_admin:
            return False
        is_in_use = self._shares.get(placed.id) or self._usage.is_shared(placed.id)
        return not (traits.is_shared and is_in_use)

    def _free_counters(self, pool: NodePool) -> Counters:
        free = self._free.get(pool)
        if free is None:
            usage = self._usage
            free = pool.free_counters(lambda device: usage.is_taken(device) or usage.is_shared(device))
            self._free[pool] = free
            if any(amount < 0 for amount in free.values()):
                self._exhausted.add(pool)
        return free

    def _has_counters(self, placed: PlacedDevice) -> bool:
        free = self._free_counters(placed.pool)
        if placed.pool in self._exhausted:
            return False  # More is taken than there is, so the pool is in disorder.
        wanted: Counters = {}
        for use in placed.device.traits.consumes:
            for name, amount in use.counters:
                key = use.counter_set, name
                wanted[key] = wanted.get(key, 0) + amount
        return all(amount <= free[key] for key, amount in wanted.items())

    def _change_counters(self, placed: PlacedDevice, sign: int) -> None:
        free = self._free_counters(placed.pool)
        for use in placed.device.traits.consumes:
            for name, amount in use.counters:
                free[use.counter_set, name] -= sign * amount


def _is_tainted(wanted: WantedDevices, placed: PlacedDevice) -> bool:
    for taint in placed.device.traits.taints:
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(
            toleration.tolerates(taint) for toleration in wanted.request.tolerations
        ):
            return True
    return False
