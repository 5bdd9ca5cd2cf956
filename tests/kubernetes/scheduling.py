"""A test cluster that `yunikorn kubernetes` schedules, with the rights of `deploy/kubernetes`.

```python
with scheduling(cluster, tmp_path) as scheduled:
    scheduled.make_nodes(node("a", cpu="4"))
    scheduled.kubectl.create(job("work", pods=3))
    scheduled.running(3)
```
"""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kubernetes.cluster import Cluster, Kubectl, Obj
from tests.kubernetes.cluster.kubectl import PATIENCE
from tests.kubernetes.cluster.objects import config_map, node_is_ready, node_of, phase
from tests.kubernetes.deployment import NAMESPACE, apply, kubeconfig_of, manifests
from tests.kubernetes.forks import shared_forks
from tests.kubernetes.scheduler_process import SchedulerProcess

ACCOUNT = "yunikorn-admin"
"""Service account of the scheduler."""
CONFIGS = "yunikorn-configs"
REFUSED = "the new configuration is refused"
"""Result of a bad ConfigMap in the log."""
NODES = "/ws/v1/partition/default/nodes"
ROOT = "/ws/v1/partition/default/queues"
"""Paths of REST."""
QUEUES = """
partitions:
  - name: default
    placementrules: [{name: provided, create: true}, {name: tag, value: namespace, create: true}]
    queues: [{name: root, submitacl: "*"}]
"""
"""A pod uses the queue that it names, or a queue with the name of its namespace."""


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Scheduled:
    """A cluster with a scheduler.

    Attributes:
        kubectl: Client of the administrator.
        scheduler: Process of the scheduler.
        address: URL of its REST server.
    """

    def __init__(self, kubectl: Kubectl, scheduler: SchedulerProcess, address: str) -> None:
        """Create it for a process whose REST server has this address."""
        self.kubectl, self.scheduler, self.address = kubectl, scheduler, address

    def rest(self, path: str) -> Any:
        """Return what REST answers to a GET, such as of `/ws/v1/partitions`."""
        with urllib.request.urlopen(f"{self.address}{path}", timeout=30) as answer:
            return json.load(answer)

    def until(self, path: str, condition: Callable[[Any], object]) -> Any:
        """Ask REST until its answer is as the condition says; return the answer.

        The scheduler has a watch of its own for each kind of object: of two changes, it may see the later one
        first. Tests wait with this until it has seen the earlier one.
        """
        deadline, pause = time.monotonic() + PATIENCE, threading.Event()
        while not condition(answer := self.rest(path)):
            assert time.monotonic() < deadline, f"after {PATIENCE:g} s, {path} is:\n{answer}"
            pause.wait(0.02)
        return answer

    def until_empty(self) -> None:
        """Wait until the scheduler has seen that there are no nodes and no pods."""
        self.until(NODES, lambda nodes: not nodes)
        amounts = ("allocatedResource", "pendingResource")
        self.until(ROOT, lambda root: not any(any(root.get(key, {}).values()) for key in amounts))

    def create(self, *objects: Obj) -> None:
        """Create objects one after the other."""
        self.kubectl.create_all(objects)

    # -- nodes --------------------------------------------------------------------------------------

    def make_nodes(self, *nodes: Obj) -> None:
        """Make nodes and wait until they are ready, also for the scheduler."""
        self.kubectl.create_all(nodes)
        names = {one["metadata"]["name"] for one in nodes}
        self.kubectl.wait(
            "Node", lambda found: names <= {one["metadata"]["name"] for one in found if node_is_ready(one)}
        )
        self.until(NODES, lambda found: names <= {one["nodeID"] for one in found})

    def change_node(self, name: str, seen: Callable[[Obj], bool], change: Obj, subresource: str = "") -> None:
        """Change a node by a patch, and wait until the scheduler has `seen` it, in what REST shows."""
        self.kubectl.patch("Node", name, change, subresource=subresource)
        self.until(NODES, lambda found: any(one["nodeID"] == name and seen(one) for one in found))

    # -- pods ---------------------------------------------------------------------------------------

    def wait_pods(
        self, condition: Callable[[list[Obj]], bool], namespace: str = "default", *, labels: str = ""
    ) -> dict[str, Obj]:
        """Wait until all pods of a namespace that match the labels are as the condition says; by name."""
        found = self.kubectl.wait(
            "Pod", lambda pods: (pods,) if condition(pods) else None, namespace, labels=labels
        )[0]
        return {one["metadata"]["name"]: one for one in found}

    def running(self, count: int, namespace: str = "default", *, labels: str = "") -> dict[str, str]:
        """Wait until exactly this many pods run; return their nodes by name."""
        pods = self.wait_pods(
            lambda pods: sum(phase(one) == "Running" for one in pods) == count, namespace, labels=labels
        )
        return {name: node_of(one) for name, one in pods.items() if phase(one) == "Running"}

    def bound(self, count: int, namespace: str = "default", *, labels: str = "") -> dict[str, str]:
        """Wait until exactly this many pods are bound, running or not; return their nodes by name."""
        pods = self.wait_pods(
            lambda pods: sum(map(bool, map(node_of, pods))) == count, namespace, labels=labels
        )
        return {name: node_of(one) for name, one in pods.items() if node_of(one)}

    def node_of(self, name: str, namespace: str = "default") -> str:
        """Wait until a pod is bound; return its node."""
        return self.kubectl.wait_for("Pod", name, node_of, namespace)

    def pending(self, name: str, text: str = "", namespace: str = "default") -> str:
        """Wait until the condition of a pod reports, with this text, why it waits; return the message.

        A pod that is bound instead is an error.
        """

        def reported(one: Obj) -> str:
            assert not node_of(one), f"{name} was bound to {node_of(one)}"
            message = waiting_message(one)
            return message if text in message else ""

        return self.kubectl.wait_for("Pod", name, reported, namespace)

    def events(self, *reasons: str, regarding: str, namespace: str = "default") -> list[str]:
        """Wait until an object has an event of each of these reasons; return the notes of all its events."""

        def complete(events: list[Obj]) -> list[Obj] | None:
            there = [one for one in events if one["involvedObject"].get("name") == regarding]
            return there if set(reasons) <= {one["reason"] for one in there} else None

        return [one["message"] for one in self.kubectl.wait("Event", complete, namespace)]

    # -- configuration ------------------------------------------------------------------------------

    def configure(self, data: Mapping[str, str | None], **more: Any) -> None:
        """Change keys of the ConfigMap, None removes one, and other fields; wait until this is in use."""
        change = {"data": dict(data), **more}
        self.wait_reloaded(self.kubectl.patch("ConfigMap", CONFIGS, change, NAMESPACE))

    def wait_reloaded(self, config_map: Obj) -> None:
        """Wait until the log reports that this version of a ConfigMap is in use."""
        meta = config_map["metadata"]
        self.scheduler.wait_for(f"ConfigMap {meta['name']} (version {meta['resourceVersion']})")

    def misconfigure(self, data: Mapping[str, str]) -> None:
        """Change keys of the ConfigMap to bad values; wait until they are refused."""
        since = len(self.scheduler.lines)
        self.kubectl.patch("ConfigMap", CONFIGS, {"data": dict(data)}, NAMESPACE)
        self.scheduler.wait_for(REFUSED, since=since)

    @contextmanager
    def queues(self, text: str) -> Iterator[None]:
        """Use another configuration of queues until the block ends."""
        before = self.kubectl.get("ConfigMap", CONFIGS, NAMESPACE)["data"]["queues.yaml"]
        self.configure({"queues.yaml": text})
        yield
        self.configure({"queues.yaml": before})


def waiting_message(pod: Obj) -> str:
    """Return the message of the condition with which a scheduler reports that a pod waits, or ""."""
    conditions: Iterable[Obj] = pod["status"].get("conditions") or []
    told = (one for one in conditions if one["type"] == "PodScheduled" and one["status"] == "False")
    return next((str(one.get("message") or "") for one in told), "")


@contextmanager
def scheduling(
    cluster: Cluster,
    folder: Path,
    *arguments: str,
    config_maps: bool = True,
    queues: str = QUEUES,
    settings: Mapping[str, str] | None = None,
    leader_election: bool = False,
    installed: Path | None = None,
    is_forked: bool = True,
) -> Iterator[Scheduled]:
    """Deploy the accounts and rights of `deploy/kubernetes`, and run a scheduler with them.

    `queues` and `settings` are the content of the ConfigMap, unless there is to be none. `arguments` are
    added to those of the command. The process is killed at the end of the block. It is a fork of one that has
    loaded all modules, unless `is_forked` is False or a package is `installed` for it.
    """
    apply(cluster.kubectl, [one for one in manifests() if one["kind"] not in ("Deployment", "ConfigMap")])
    if config_maps:
        apply(cluster.kubectl, [config_map(CONFIGS, {"queues.yaml": queues, **(settings or {})}, NAMESPACE)])
    kubeconfig = kubeconfig_of(cluster, ACCOUNT, folder)
    address = f"127.0.0.1:{free_port()}"
    given = ["--kubeconfig", str(kubeconfig), "--namespace", NAMESPACE, "--rest", address, *arguments]
    start = shared_forks().start if is_forked and installed is None else None
    with SchedulerProcess(
        cluster, *given, leader_election=leader_election, installed=installed, start=start
    ) as scheduler:
        scheduler.wait_until_at_work()
        yield Scheduled(cluster.kubectl, scheduler, f"http://{address}")
