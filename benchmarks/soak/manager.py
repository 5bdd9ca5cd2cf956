"""Resource manager with random actions and exact accounting."""

from __future__ import annotations

import asyncio
import itertools
import random

import attrs

from benchmarks.failure import BenchmarkFailure
from yunikorn.interface.constants import REQUIRED_NODE_TAG
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    NewNodeInfo,
    PreemptionPolicy,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.resources import Resource
from yunikorn.states import COMPLETED
from yunikorn_service.client import AsyncClient, ClientOptions
from yunikorn_service.client.client_options import Layout

NODES = 20
VCORE = 40
"""Vcores of each node."""
APPS = 12
"""Number of application names. Names are reused, because the service keeps ended applications for a while."""
MOST_WAITING = 60
LARGEST = 8
PATIENCE = 60.0
"""Timeout for answers of the service in seconds."""
FENCE = "fence-"
PROBE = "probe"


@attrs.define
class Counts:
    """Numbers of actions so far."""

    updates: int = 0
    placed: int = 0
    sessions: int = 0
    checks: int = 0


class Manager:
    """Resource manager with its nodes, applications, asks and allocations."""

    def __init__(self, rm_id: str, layout: Layout, dice: random.Random) -> None:
        self.rm_id = rm_id
        self.counts = Counts()
        self._layout, self._dice = layout, dice
        self._apps: set[str] = set()
        self._wanted: dict[str, AllocationAsk] = {}
        """Pending asks by key."""
        self._forgotten: set[str] = set()
        """Keys of asks that were sent for an application which completed meanwhile."""
        self.running: dict[str, Allocation] = {}
        self._numbers = 0
        self._fences: set[str] = set()
        self._heard = asyncio.Event()
        self._trip = False
        self._client: AsyncClient | None = None

    # -- connection ---------------------------------------------------------------------------------------

    async def connect(self, address: str) -> None:
        """Connect, and report the current state."""
        options = ClientOptions(layout=self._layout, patience=PATIENCE, delays=lambda: itertools.repeat(0.2))
        request = RegisterResourceManagerRequest(self.rm_id, version="soak")
        self._client = AsyncClient(address, request, self, options=options)
        await self._client.start()

    async def restart(self, address: str) -> None:
        """Disconnect without notice, and connect again."""
        await self.leave()
        await self.connect(address)

    async def leave(self) -> None:
        """Disconnect without notice."""
        assert self._client is not None
        await self._client.disconnect()

    async def shut_down(self) -> None:
        """Shut down in an orderly way."""
        assert self._client is not None
        await self._client.close()

    def stumble(self) -> None:
        """Raise an exception at the next response."""
        self._trip = True

    def report(self) -> list[UpdateRequest]:
        """Return the complete state."""
        self.counts.sessions += 1
        nodes = [NewNodeInfo(_node(n), schedulable_resource=Resource(vcore=VCORE)) for n in range(NODES)]
        by_name = {node.node_id: node for node in nodes}
        for one in self.running.values():
            by_name[one.node_id].existing_allocations.append(one)
        return [
            UpdateRequest(
                "",
                new_applications=[_application(name) for name in sorted(self._apps)],
                asks=list(self._wanted.values()),
                new_schedulable_nodes=nodes,
            )
        ]

    # -- responses ----------------------------------------------------------------------------------------

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Record a response; a wrong one sets `failure`."""
        if self._trip:
            self._trip = False
            raise RuntimeError("the resource manager stumbled, on purpose")
        for placed in response.new_allocations:
            self._take_place(placed)
        for gone in response.released_allocations:
            self._fences.discard(gone.application_id)
        for changed in response.updated_applications:
            # On a busy machine an application has nothing to do for so long that it completes.
            if changed.state == COMPLETED:
                self._forget(changed.application_id)
        refused = [
            f"ask {one.allocation_key}: {one.reason}"
            for one in response.rejected_allocations
            if one.allocation_key not in self._forgotten
        ]
        refused += [f"{one.application_id}: {one.reason}" for one in response.rejected_applications]
        refused += [f"{one.node_id}: {one.reason}" for one in response.rejected_nodes]
        if refused:
            self._fail(f"{len(refused)} refused, the first: {refused[0]}")
        self._heard.set()

    def _forget(self, app: str) -> None:
        self._apps.discard(app)
        asked = [key for key, ask in self._wanted.items() if ask.application_id == app]
        self._forgotten.update(asked)
        for key in asked:
            del self._wanted[key]

    def _take_place(self, placed: Allocation) -> None:
        key = placed.allocation_key
        known = self.running.get(key)
        if known is not None:
            # The newer layout acknowledges reported allocations with the same node; another node is an error.
            if known.node_id != placed.node_id:
                self._fail(f"{key} runs on {known.node_id} and was placed on {placed.node_id} as well")
        elif self._wanted.pop(key, None) is None:
            # The ask was withdrawn and placed at the same time.
            self._send_later(UpdateRequest(""), [_release(placed)])
        else:
            self.running[key] = placed
            self.counts.placed += 1
            used = self.used(placed.node_id)
            if used > VCORE:
                self._fail(f"node {placed.node_id} has {VCORE} and was given {used}")

    def _send_later(self, update: UpdateRequest, releases: list[AllocationRelease]) -> None:
        assert self._client is not None
        update.releases.allocations_to_release += releases
        self._client.post(update)

    def _fail(self, text: str) -> None:
        # The client contains exceptions of callbacks, so the next step raises this failure.
        self.failure = self.failure or f"resource manager {self.rm_id}: {text}"
        self._heard.set()

    failure: str | None = None
    """Description of the first error."""

    def used(self, node_id: str) -> int:
        """Return the used vcores of a node."""
        return sum(one.resource_per_alloc["vcore"] for one in self.running.values() if one.node_id == node_id)

    # -- actions ------------------------------------------------------------------------------------------

    async def step(self) -> None:
        """Send an update with random changes."""
        self.check()
        assert self._client is not None
        update, dice = UpdateRequest(""), self._dice
        if len(self._apps) < APPS and dice.random() < 0.2:
            self._begin_application(update)
        if self._apps and len(self._wanted) < MOST_WAITING and dice.random() < 0.7:
            app = dice.choice(sorted(self._apps))
            for _ in range(dice.randint(1, 6)):
                self._ask(update, app, dice.randint(1, LARGEST))
        for key in dice.sample(sorted(self.running), min(len(self.running), dice.randint(0, 5))):
            update.releases.allocations_to_release.append(_release(self.running.pop(key)))
        if self._wanted and dice.random() < 0.1:
            self._take_back(update, dice.choice(sorted(self._wanted)))
        self.counts.updates += 1
        await self._client.update(update)

    def _begin_application(self, update: UpdateRequest) -> None:
        name = self._dice.choice([f"app-{n}" for n in range(APPS) if f"app-{n}" not in self._apps])
        self._apps.add(name)
        update.new_applications.append(_application(name))

    def _ask(self, update: UpdateRequest, app: str, vcore: int) -> None:
        self._numbers += 1
        key = f"{app}-{self._numbers}"
        self._wanted[key] = AllocationAsk(key, app, resource_ask=Resource(vcore=vcore))
        update.asks.append(self._wanted[key])

    def _take_back(self, update: UpdateRequest, key: str) -> None:
        ask = self._wanted.pop(key)
        update.releases.allocation_asks_to_release.append(AllocationAskRelease(ask.application_id, key))

    def _end_idle_applications(self, update: UpdateRequest) -> None:
        busy = {ask.application_id for ask in self._wanted.values()}
        busy |= {one.application_id for one in self.running.values()}
        for name in sorted(self._apps - busy):
            self._apps.discard(name)
            update.remove_applications.append(RemoveApplicationRequest(name))

    def check(self) -> None:
        """Raise `BenchmarkFailure` if there was an error."""
        if self.failure is not None:
            raise BenchmarkFailure(self.failure)

    # -- audit --------------------------------------------------------------------------------------------

    async def audit(self) -> None:
        """Check, through the public interface, that the scheduler's accounting of every node is correct.

        All pending asks are withdrawn first. Then each node must accept an ask for exactly its free
        resources, and must not accept another one.
        """
        update = UpdateRequest("")
        for key in list(self._wanted):
            self._take_back(update, key)
        await self._say(update)
        await self._settle()
        # Only after the asks are settled, because in the newer layout a removal may overtake them.
        update = UpdateRequest("", new_applications=[_application(PROBE)])
        self._end_idle_applications(update)
        self._apps.add(PROBE)
        await self._say(update)
        free = {_node(n): VCORE - self.used(_node(n)) for n in range(NODES)}
        exact = [self._probe(node, amount) for node, amount in free.items() if amount]
        await self._say(UpdateRequest("", asks=exact))
        await self._settle()
        lost = [ask.allocation_key for ask in exact if ask.allocation_key not in self.running]
        if lost:
            raise BenchmarkFailure(
                f"resource manager {self.rm_id}: the scheduler's accounting has surplus: {lost}"
            )
        more = [self._probe(node, 1) for node in free]
        await self._say(UpdateRequest("", asks=more))
        await self._settle()
        won = [ask.allocation_key for ask in more if ask.allocation_key in self.running]
        if won:
            raise BenchmarkFailure(f"resource manager {self.rm_id}: the scheduler's accounting lacks: {won}")
        update = UpdateRequest("")
        for ask in more:
            self._take_back(update, ask.allocation_key)
        for ask in exact:
            update.releases.allocations_to_release.append(_release(self.running.pop(ask.allocation_key)))
        await self._say(update)
        await self._settle()
        self._apps.discard(PROBE)
        await self._say(UpdateRequest("", remove_applications=[RemoveApplicationRequest(PROBE)]))
        await self._settle()
        self.counts.checks += 1

    def _probe(self, node: str, vcore: int) -> AllocationAsk:
        self._numbers += 1
        key = f"{PROBE}-{self._numbers}"
        ask = self._wanted[key] = AllocationAsk(
            key,
            PROBE,
            resource_ask=Resource(vcore=vcore),
            tags={REQUIRED_NODE_TAG: node},
            preemption_policy=PreemptionPolicy(allow_preempt_other=False),
        )
        return ask

    async def _say(self, update: UpdateRequest) -> None:
        assert self._client is not None
        self.check()
        await self._client.update(update)

    async def _settle(self) -> None:
        """Wait until the scheduler has processed all updates and no allocation follows."""
        placed = -1
        while placed != (placed := self.counts.placed):
            await self._fence()
            await self._fence()

    async def _fence(self) -> None:
        """Send a release that is always answered, and wait for the answer, which follows all earlier ones."""
        assert self._client is not None
        self._numbers += 1
        name = f"{FENCE}{self._numbers}"
        self._fences = {name}
        update = UpdateRequest("")
        update.releases.allocations_to_release.append(AllocationRelease(name, allocation_key=name))
        sent = -1
        try:
            async with asyncio.timeout(PATIENCE):
                while name in self._fences:
                    self.check()
                    if self._client.sessions != sent and await self._client.update(update):
                        sent = self._client.sessions
                    self._heard.clear()
                    try:
                        await asyncio.wait_for(self._heard.wait(), 1.0)
                    except TimeoutError:
                        await self._client.update(update)
        except TimeoutError:
            raise BenchmarkFailure(
                f"resource manager {self.rm_id} receives nothing: {self._client.last_trouble}"
            ) from None


def _node(number: int) -> str:
    return f"n{number:02}"


def _application(name: str) -> AddApplicationRequest:
    return AddApplicationRequest(name, "root.a", ugi=UserGroupInformation("ann", ["staff"]))


def _release(one: Allocation) -> AllocationRelease:
    return AllocationRelease(one.application_id, one.uuid, allocation_key=one.allocation_key)
