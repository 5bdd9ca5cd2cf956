"""A scheduler with the predicate `dynamic-resources`, and a shim that reports devices and claims to it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.core.gangs import GangRM
from tests.core.kit import Tree, configuration
from tests.kubernetes.devices.objects import claim as claim_of
from yunikorn.interface.scheduler import Scheduler
from yunikorn_kubernetes import names
from yunikorn_kubernetes.devices.device_catalog import DeviceCatalog, PodClaim

Json = dict[str, Any]
POD = "pod"
"""Name of the only claim of a pod."""


class DeviceCluster:
    """Nodes with slices, and pods with one claim each."""

    def __init__(
        self,
        *slices: Json,
        nodes: Iterable[str] = ("n1",),
        vcore: int = 64,
        queues: Iterable[Tree] = (),
        topology: list[str] | None = None,
        scheduler: Scheduler | None = None,
    ) -> None:
        more = {} if topology is None else {"topology": topology}
        self.rm: Any = GangRM(
            configuration(*queues, predicates=["dynamic-resources"], **more), scheduler=scheduler
        )
        self.catalog = DeviceCatalog()
        self.nodes = [*nodes]
        self.vcore = vcore
        self.add_class("gpu")
        for one in slices:
            self.catalog.set_slice(one)
        for name in self.nodes:
            self.rm.node(name, self.catalog.node_attributes(name, {}), vcore=vcore)
        self.rm.app()

    def add_class(self, name: str, *selectors: str) -> None:
        spec = {"selectors": [{"cel": {"expression": one}} for one in selectors]}
        self.catalog.set_class({"metadata": {"name": name}, "spec": spec})

    def tags(self, *requests: Json, shared: str = "", **devices: Any) -> dict[str, str]:
        """Return the tags of a pod whose claim, its own or a shared one, has these requests."""
        name = shared or "template"
        if self.catalog.claim(f"default/{name}") is None or not shared:
            found = claim_of(name, *requests, **devices)
            found["metadata"]["uid"] = f"uid-{name}"
            self.catalog.set_claim(found)
        claims = [PodClaim(POD, f"default/{name}", is_own=not shared)]
        return {names.TAG_CLAIMS: self.catalog.claims_text(claims)}

    def submit(self, key: str, *requests: Json, app: str = "app", shared: str = "", **more: Any) -> None:
        count = more.pop("count", 1)
        self.rm.ask(app, key, count, vcore=1, tags=self.tags(*requests, shared=shared, **more))

    def report_again(self, name: str) -> None:
        self.rm.change_node(name, attributes=self.catalog.node_attributes(name, {}))

    def devices(self) -> dict[str, list[str]]:
        """Return the devices of each running pod by the key of its request."""
        return {
            one.allocation_key: [f"{where['pool']}/{where['device']}" for where in results_of(one)]
            for one in self.rm.running.values()
        }

    def check_waiting(self) -> None:
        """Assert that no pod waits although a node with room has devices for it."""
        at = self.rm.at_work()
        (keeper,) = at.orders.books.keepers
        assert not keeper.failed
        for app in at.partition.applications.values():
            for ask in app.asks.values() if app.id == "app" else ():
                for node in at.partition.nodes.values() if ask.pending else ():
                    has_room = all(node.available.get(name, 0) >= need for name, need in ask.resource.items())
                    assert not has_room or keeper.plugin.check(ask, node) is not None, (ask.key, node.id)

    def refusals(self, key: str, app: str = "app") -> dict[str, int]:
        return dict(self.rm.find_app(app).asks[key].ask_class.refusals)


def results_of(allocation: Any) -> list[Json]:
    """Return the results of all claims in the tag of an allocation."""
    text = allocation.allocation_tags.get(names.TAG_DEVICES, "[]")
    return [one for claim in json.loads(text) for one in claim["allocation"]["devices"].get("results", ())]


def check_devices(running: Iterable[Any], capacity: int = 0) -> None:
    """Assert that no device is given twice, that ids of shares differ, and that shares fit the capacity."""
    whole: Counter[str] = Counter()
    shares: Counter[str] = Counter()
    ids: Counter[str] = Counter()
    claims: set[str] = set()
    for allocation in running:
        for one in json.loads(allocation.allocation_tags.get(names.TAG_DEVICES, "[]")):
            uid = one.get("claim", {}).get("uid", "")
            if uid in claims:
                continue
            claims |= {uid} - {""}
            for found in one["allocation"]["devices"].get("results", ()):
                device = f"{found['driver']}/{found['pool']}/{found['device']}"
                if found.get("adminAccess"):
                    continue
                if "shareID" in found:
                    ids[found["shareID"]] += 1
                    shares[device] += int(found["consumedCapacity"]["memory"].removesuffix("Gi"))
                else:
                    whole[device] += 1
    assert all(count == 1 for count in whole.values()), whole
    assert all(count == 1 for count in ids.values()), ids
    assert not whole.keys() & shares.keys()
    assert all(amount <= capacity for amount in shares.values()), shares
