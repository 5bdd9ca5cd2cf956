"""Rules of devices that a cluster keeps, checked from the objects of the API server only.

A watch of all claims checks at every version that no claim has a device of another one. Versions are those of
the whole store, so claims and pods of one version are a state that the cluster had: in each of them, pods
that are bound have their devices. What a process left behind that was killed, the next one gives back.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple

from tests.kubernetes.chaos.invariants import WATCH, Invariants, is_ended
from tests.kubernetes.cluster import Kubectl, Obj
from tests.kubernetes.cluster.kubectl import PATIENCE, ApiFault
from tests.kubernetes.cluster.objects import node_of
from tests.kubernetes.scenarios.fake_driver import FINALIZER, claim_names

MARK = "yunikorn.apache.org/allocated"
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"


class State(NamedTuple):
    """Objects at one version of the store."""

    claims: dict[str, Obj]
    pods: list[Obj]
    groups: list[Obj]

    def problems(self) -> list[str]:
        """Return what is wrong with the claims of pods that are bound."""
        return [
            f"pod {one['metadata']['name']} on {node_of(one)}: claim {name} {problem}"
            for one in self.pods
            if node_of(one) and not is_ended(one)
            for name in names_of(one)
            if (problem := self._problem(one, self.claims.get(name)))
        ]

    @staticmethod
    def _problem(pod: Obj, claim: Obj | None) -> str:
        if claim is None:
            return "does not exist"
        devices = devices_of(claim)
        if not devices:
            return "has no devices"
        elsewhere = [one for one in devices if not one.startswith(f"{node_of(pod)}/")]
        if elsewhere and "podGroupName" not in pod["spec"].get("schedulingGroup", {}):
            return f"has devices of other nodes: {elsewhere}"
        users = claim["status"].get("reservedFor", ())
        if not any(one["resource"] == "podgroups" or one["uid"] == pod["metadata"]["uid"] for one in users):
            return f"is not reserved for the pod, but for {users}"
        return "" if FINALIZER in claim["metadata"].get("finalizers", ()) else "has no finalizer"

    def orphans(self) -> dict[str, str]:
        """Return the claims, by uid, with devices of pods of which none has been bound."""
        placed = {name for one in self.pods if node_of(one) for name in names_of(one)}
        waiting = {name for one in self.pods for name in names_of(one)} - placed
        return {
            one["metadata"]["uid"]: name
            for name, one in self.claims.items()
            if devices_of(one) and name in waiting
        }

    def incomplete(self) -> dict[str, str]:
        """Return the PodGroups of which some pods are bound, but fewer than have to start together."""
        bound: Counter[str] = Counter()
        for one in self.pods:
            bound[one["spec"].get("schedulingGroup", {}).get("podGroupName", "")] += bool(node_of(one))
        least = {one["metadata"]["name"]: one["spec"]["schedulingPolicy"]["gang"] for one in self.groups}
        return {
            name: f"{bound[name]} of {gang['minCount']} pods"
            for name, gang in least.items()
            if 0 < bound[name] < gang["minCount"]
        }


class Left(NamedTuple):
    """Claims and gangs in the state in which a process left them that was killed."""

    claims: dict[str, int]
    """Claims by uid with devices of pods that are not bound, and how often each has lost devices before."""
    gangs: dict[str, str]
    """PodGroups of which too few pods are bound."""


class ClaimRules:
    """A watch of all claims that collects violations; a context manager that ends it."""

    def __init__(self, kubectl: Kubectl, invariants: Invariants) -> None:
        """Create it; `invariants` counts the changes of claims: marked, allocated, returned."""
        self._kubectl, self._invariants = kubectl, invariants
        self.problems: list[str] = []
        """Violations so far."""
        self._devices: dict[str, list[str]] = {}
        """Devices by uid of the claim."""
        self._freed: Counter[str] = Counter()
        """Number of returns by uid of the claim."""
        self._version = ""
        self._changed = threading.Condition(threading.RLock())
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="claims", daemon=True)

    def __enter__(self) -> ClaimRules:
        self._read()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    # -- the watch ------------------------------------------------------------------------------------

    def _read(self) -> None:
        """Read all claims; the changes since the last event are not known one by one."""
        answer = self._kubectl.request("GET", CLAIMS)
        with self._changed:
            there = {one["metadata"]["uid"]: one for one in answer["items"]}
            for uid in [uid for uid in self._devices if uid not in there]:
                self._free(uid)
            # Devices move between claims: all are taken away before any is given.
            for uid, one in there.items():
                if self._devices.get(uid) != devices_of(one):
                    self._free(uid)
            for one in there.values():
                self._take(one)
            self._version = answer["metadata"]["resourceVersion"]
            self._changed.notify_all()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                for kind, one in self._kubectl.watch("ResourceClaim", "", self._version, timeout=WATCH):
                    if kind == "ERROR":
                        raise ApiFault(int(one["code"]), one["reason"], one["message"], "watch")
                    with self._changed:
                        self._version = one["metadata"]["resourceVersion"]
                        if kind == "DELETED":
                            self._free(one["metadata"]["uid"])
                        elif kind != "BOOKMARK":
                            self._take(one)
                        self._changed.notify_all()
                    if self._is_over.is_set():
                        break
            except ApiFault as fault:
                self._again(read=fault.status == 410)
            except (OSError, ValueError, http.client.HTTPException):
                self._again()

    def _again(self, *, read: bool = False) -> None:
        try:
            if read:
                self._read()
        except (OSError, ApiFault, http.client.HTTPException):
            pass
        self._is_over.wait(0.1)

    def _take(self, claim: Obj) -> None:
        uid, devices = claim["metadata"]["uid"], devices_of(claim)
        known = self._devices.get(uid, [])
        if known and not devices:
            self._free(uid)
        elif devices and not known:
            self._invariants.note("allocated")
            for other, taken in self._devices.items():
                twice = {*taken} & {*devices}
                if twice:
                    name = claim["metadata"]["name"]
                    self.problems.append(f"claims {name} and {other} have the same devices {sorted(twice)}")
            self._devices[uid] = devices
        elif MARK in claim["metadata"].get("annotations", {}) and not devices:
            self._invariants.note("marked")

    def _free(self, uid: str) -> None:
        self._freed[uid] += 1
        if self._devices.pop(uid, None):
            self._invariants.note("returned")

    # -- checks ---------------------------------------------------------------------------------------

    def state(self) -> State:
        """Read the objects at one version."""
        claims = self._kubectl.request("GET", CLAIMS)
        exact = {
            "resourceVersion": claims["metadata"]["resourceVersion"],
            "resourceVersionMatch": "Exact",
        }
        pods = self._kubectl.request("GET", "/api/v1/pods", **exact)
        groups = self._kubectl.request("GET", "/apis/scheduling.k8s.io/v1alpha2/podgroups", **exact)
        return State(
            {one["metadata"]["name"]: one for one in claims["items"]}, pods["items"], groups["items"]
        )

    def check(self) -> None:
        """Raise `AssertionError` with all violations up to now."""
        with self._changed:
            problems = [*self.problems]
        problems += self.state().problems()
        assert not problems, "\n".join(problems)

    def left(self) -> Left:
        """Return what a process has left that was killed."""
        state = self.state()
        with self._changed:
            claims = {uid: self._freed[uid] for uid in state.orphans()}
        return Left(claims, state.incomplete())

    def until_recovered(self, left: Left) -> None:
        """Wait until what was left has been given back or is bound, and until its gangs are whole."""

        def remains(state: State) -> dict[str, str]:
            with self._changed:
                claims = {uid for uid, count in left.claims.items() if self._freed[uid] == count}
            cut = {name: text for name, text in state.incomplete().items() if name in left.gangs}
            return cut | {name: "has devices" for uid, name in state.orphans().items() if uid in claims}

        self._until_none(remains)

    def until_free(self) -> None:
        """Wait until only claims of bound pods, which have not ended, have devices."""

        def remains(state: State) -> dict[str, str]:
            live = {
                name for one in state.pods if node_of(one) and not is_ended(one) for name in names_of(one)
            }
            return {
                name: "has devices"
                for name, one in state.claims.items()
                if devices_of(one) and name not in live
            }

        self._until_none(remains)

    def _until_none(self, remains: Callable[[State], dict[str, str]]) -> None:
        deadline = time.monotonic() + PATIENCE
        while found := remains(self.state()):
            assert time.monotonic() < deadline, (
                f"after {PATIENCE:g} s: {found}\n{self._invariants.describe()}"
            )
            self._is_over.wait(0.05)


def names_of(pod: Obj) -> list[str]:
    """Return the names of the claims of a pod, with that for its extended resources."""
    found = claim_names(pod) if "resourceClaims" in pod["spec"] else []
    extended = pod["status"].get("extendedResourceClaimStatus")
    return [*found, extended["resourceClaimName"]] if extended else found


def devices_of(claim: Obj) -> list[str]:
    """Return the devices, `POOL/DEVICE`, of a claim."""
    allocation = claim.get("status", {}).get("allocation") or {}
    return [f"{one['pool']}/{one['device']}" for one in allocation.get("devices", {}).get("results", ())]
