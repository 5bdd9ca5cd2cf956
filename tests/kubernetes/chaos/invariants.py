"""Rules that a cluster keeps at every moment, checked from the objects of the API server only.

A watch reports the pods in the order of their versions, so the state after each change is one that the API
server had. No pod changes its node; no node and no queue has more than its limit; only what may be deleted is
deleted; no pod fails unless its load says so.
"""

from __future__ import annotations

import http.client
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from types import TracebackType

from tests.kubernetes.cluster import Kubectl, Obj
from tests.kubernetes.cluster.kubectl import PATIENCE, ApiFault
from tests.kubernetes.cluster.objects import FAILS_AFTER, QUEUE, node_of, phase
from tests.kubernetes.scenarios.fake_driver import GPU

PLACEHOLDER = "internal.yunikorn.apache.org/placeholder"
WORK = "chaos.yunikorn/work"
"""Label of a pod with the name of the work that it belongs to."""
STAYS = "chaos.yunikorn/stays"
"""Label of a pod that nothing may delete before it has ended, because it must not be preempted."""
DEVICES = "chaos.yunikorn/devices"
"""Annotation of a pod with the number of devices that its own claim asks for."""
WATCH = 3.0
"""Seconds of one watch; a check that ends waits for it."""
_UNITS = {
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
}

Amounts = Mapping[str, Fraction]


def amount(text: str) -> Fraction:
    """Return the value of a quantity with one of the units that these loads use."""
    number = text.rstrip("mKGi")
    return Fraction(number) * _UNITS[text[len(number) :]]


def is_ended(pod: Obj) -> bool:
    """Return True if the containers of a pod have ended."""
    return phase(pod) in ("Succeeded", "Failed")


def is_placeholder(pod: Obj) -> bool:
    """Return True for a placeholder of a gang."""
    return PLACEHOLDER in (pod["metadata"].get("annotations") or {})


def label(pod: Obj, name: str) -> str:
    """Return a label of a pod, or ""."""
    return str((pod["metadata"].get("labels") or {}).get(name, ""))


def requests(pod: Obj) -> dict[str, Fraction]:
    """Return the sum of the requests of a pod, which must have no init containers and no overhead."""
    spec = pod["spec"]
    assert "initContainers" not in spec, "the load has no such pods"
    assert "overhead" not in spec, "the load has no such pods"
    total = {"pods": Fraction(1)}
    for one in spec["containers"]:
        for name, text in (one.get("resources", {}).get("requests") or {}).items():
            total[name] = total.get(name, Fraction(0)) + amount(text)
    devices = (pod["metadata"].get("annotations") or {}).get(DEVICES)
    if devices:
        total[GPU] = amount(devices)
    return total


def cause(pod: Obj) -> str:
    """Return why a pod waits, as its condition reports it; "" if nothing is reported."""
    found = (one for one in pod["status"].get("conditions") or [] if one["type"] == "PodScheduled")
    return next((str(one.get("message") or "") for one in found if one["status"] == "False"), "")


class _Limits:
    """Use of the members of one group, such as of one node, below a limit."""

    def __init__(self, limits: Mapping[str, Amounts]) -> None:
        self._limits = limits
        self._used: defaultdict[str, dict[str, Fraction]] = defaultdict(dict)

    def add(self, name: str, asked: Amounts, sign: int) -> str:
        """Add or subtract requests; return what exceeds the limit then, or ""."""
        used, limits = self._used[name], self._limits.get(name, {})
        over = []
        for key, value in asked.items():
            used[key] = used.get(key, Fraction(0)) + sign * value
            if sign > 0 and key in limits and used[key] > limits[key]:
                over.append(f"{key} {float(used[key]):g} of {float(limits[key]):g}")
        return ", ".join(over)


class Invariants:
    """A watch of all pods that collects violations; a context manager that ends it."""

    def __init__(self, kubectl: Kubectl, queues: Mapping[str, Mapping[str, str]]) -> None:
        """Create it for the nodes that exist, and queues with their quotas; entering starts the watch."""
        self._kubectl = kubectl
        limits = {
            one["metadata"]["name"]: {key: amount(text) for key, text in one["status"]["allocatable"].items()}
            for one in kubectl.list("Node")
        }
        self._nodes = _Limits(limits)
        quotas = {name: {key: amount(text) for key, text in of.items()} for name, of in queues.items()}
        self._queues = _Limits(quotas)
        self.may_be_deleted: Callable[[Obj], bool] = lambda _: False
        """Returns True for pods that the load deletes."""
        self.problems: list[str] = []
        """Violations so far."""
        self._suspects: list[str] = []
        """Names of the pods of violations."""
        self.counts: Counter[str] = Counter()
        """Number of changes by kind: added, bound, ended, deleted, and reserved or freed for placeholders."""
        self.created: defaultdict[str, set[str]] = defaultdict(set)
        """Uids of the pods of each work, without placeholders."""
        self.succeeded: defaultdict[str, set[str]] = defaultdict(set)
        self._pods: dict[str, Obj] = {}
        self._gone: set[str] = set()
        self._version = ""
        self._changed = threading.Condition(threading.RLock())
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="invariants", daemon=True)

    def __enter__(self) -> Invariants:
        self.read()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    # -- reading --------------------------------------------------------------------------------------

    def read(self) -> list[Obj]:
        """Read all pods now, count their changes as those of the watch, and return them."""
        answer = self._kubectl.request("GET", "/api/v1/pods")
        with self._changed:
            there = {one["metadata"]["uid"] for one in answer["items"]}
            version = int(answer["metadata"]["resourceVersion"])
            # The watch may have seen pods that are younger than the list.
            gone = [uid for uid, one in self._pods.items() if uid not in there and _version(one) <= version]
            for uid in gone:
                self._take("DELETED", self._pods[uid])
            for one in answer["items"]:
                self._take("MODIFIED", one)
            self._version = answer["metadata"]["resourceVersion"]
            self._changed.notify_all()
        return list(answer["items"])

    def _run(self) -> None:
        version = self._version
        while not self._is_over.is_set():
            try:
                for kind, one in self._kubectl.watch("Pod", "", version, timeout=WATCH):
                    if kind == "ERROR":
                        raise ApiFault(int(one["code"]), one["reason"], one["message"], "watch")
                    version = one["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        with self._changed:
                            self._take(kind, one)
                            self._changed.notify_all()
                    if self._is_over.is_set():
                        break
            except ApiFault as fault:
                if fault.status == 410:
                    version = self._read_again(version)
                else:
                    self._is_over.wait(0.1)
            except (OSError, ValueError, http.client.HTTPException):
                self._is_over.wait(0.1)

    def _read_again(self, version: str) -> str:
        try:
            self.read()
        except (OSError, ApiFault, http.client.HTTPException):
            self._is_over.wait(0.1)
            return version
        return self._version

    # -- rules ----------------------------------------------------------------------------------------

    def _take(self, kind: str, pod: Obj) -> None:
        """Apply a change, unless a later one is known."""
        uid = pod["metadata"]["uid"]
        if uid in self._gone:
            return
        before = self._pods.get(uid)
        if before is not None and kind != "DELETED" and _version(pod) <= _version(before):
            return
        if before is None:
            self._count("placeholder" if is_placeholder(pod) else "added")
        if kind == "DELETED":
            self._pods.pop(uid, None)
            self._gone.add(uid)
            self._check_deletion(before or pod)
        else:
            self._pods[uid] = pod
            self._check_change(before, pod)
        self._account(before, None if kind == "DELETED" else pod)

    def _check_change(self, before: Obj | None, pod: Obj) -> None:
        was = node_of(before) if before is not None else ""
        if was and node_of(pod) != was:
            self._problem(pod, f"was on node {was} and is on {node_of(pod) or 'no node'}")
        if node_of(pod) and not was:
            self._count("reserved" if is_placeholder(pod) else "bound")
        if pod["metadata"].get("deletionTimestamp") and not (before or {}).get("metadata", {}).get(
            "deletionTimestamp"
        ):
            self._count("deleting")
        work = label(pod, WORK)
        if work and not is_placeholder(pod):
            self.created[work].add(pod["metadata"]["uid"])
        if is_ended(pod) and not (before is not None and is_ended(before)):
            self._count("ended")
            annotations = pod["metadata"].get("annotations") or {}
            if phase(pod) == "Succeeded":
                self.succeeded[work].add(pod["metadata"]["uid"])
            elif FAILS_AFTER not in annotations:
                self._problem(
                    pod, f"has failed: {pod['status'].get('message') or pod['status'].get('reason')}"
                )

    def _check_deletion(self, last: Obj) -> None:
        self._count("freed" if is_placeholder(last) else "deleted")
        if is_placeholder(last) or is_ended(last) or self.may_be_deleted(last):
            return
        if label(last, STAYS):
            self._problem(last, "was deleted before it ended, and must not be preempted")
        elif not node_of(last):
            self._problem(last, "was deleted while it waited for a node")

    def _account(self, before: Obj | None, pod: Obj | None) -> None:
        old, new = _use(before), _use(pod)
        if old == new:
            return
        for one, sign in ((old, -1), (new, 1)):
            if one is None:
                continue
            node, queue, asked = one
            over = self._nodes.add(node, asked, sign)
            if over:
                self._problem(pod or before or {}, f"is one pod too many on node {node}: {over}")
            over = self._queues.add(queue, asked, sign)
            if over:
                self._problem(pod or before or {}, f"is one pod too many in queue {queue}: {over}")

    def _problem(self, pod: Obj, text: str) -> None:
        meta = pod["metadata"]
        self._suspects.append(meta["name"])
        name = f"{meta['namespace']}/{meta['name']} ({label(pod, WORK)})"
        self.problems.append(f"version {meta['resourceVersion']}: pod {name} {text}")

    def _count(self, kind: str) -> None:
        self.counts[kind] += 1

    def note(self, kind: str) -> None:
        """Count a change of another object."""
        with self._changed:
            self._count(kind)
            self._changed.notify_all()

    # -- waits ----------------------------------------------------------------------------------------

    @property
    def live(self) -> int:
        """Number of pods that have not ended."""
        with self._changed:
            return sum(not is_ended(one) for one in self._pods.values())

    def wait_for(self, kinds: Iterable[str], count: int, timeout: float) -> bool:
        """Wait for this number of further changes of these kinds; return False after `timeout` seconds."""
        with self._changed:
            goal = sum(self.counts[kind] for kind in kinds) + count
            return self._changed.wait_for(lambda: sum(self.counts[kind] for kind in kinds) >= goal, timeout)

    def wait_until(
        self, condition: Callable[[list[Obj]], bool], what: str, timeout: float = 2 * PATIENCE
    ) -> None:
        """Wait until the condition of all pods holds; raise `AssertionError` with those that are alive."""
        with self._changed:
            found = self._changed.wait_for(lambda: condition([*self._pods.values()]), timeout)
        assert found, f"after {timeout:g} s not so: {what}\n{self.describe()}"

    def describe(self) -> str:
        """Return a line for each pod that has not ended: its queue, its node, or why it has none."""
        with self._changed:
            left = [one for one in self._pods.values() if not is_ended(one)]
        return "\n".join(map(_line, left))

    def check(self) -> None:
        """Raise `AssertionError` with all violations up to now, and the events of their pods."""
        self.read()
        with self._changed:
            problems, suspects = [*self.problems], [*self._suspects]
        if problems:
            events = [
                f"  {one['metadata']['creationTimestamp']} {one['involvedObject']['name']} {one['reason']}:"
                f" {one.get('message')}"
                for one in self._kubectl.list("Event")
                if one["involvedObject"].get("name") in suspects
            ]
            raise AssertionError("\n".join([*problems, *events]))


def _version(pod: Obj) -> int:
    return int(pod["metadata"]["resourceVersion"])


def _use(pod: Obj | None) -> tuple[str, str, Amounts] | None:
    """Return node, queue and requests of a pod that occupies a node."""
    if pod is None or not node_of(pod) or is_ended(pod):
        return None
    return node_of(pod), label(pod, QUEUE), requests(pod)


def _line(pod: Obj) -> str:
    meta = pod["metadata"]
    state = "deleting " if meta.get("deletionTimestamp") else ""
    place = node_of(pod) or f"no node: {cause(pod) or 'no cause'}"
    return f"  {meta['name']} {label(pod, QUEUE)} {state}{phase(pod)} {place}"
