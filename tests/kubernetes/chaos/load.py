"""Load of a cluster under chaos: jobs, gangs, urgent pods that preempt, services, pods that are deleted."""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any

from tests.kubernetes.chaos.device_load import (
    CARDS,
    PLUGGED,
    amounts,
    claims,
    driver_objects,
    member,
    pod_group,
)
from tests.kubernetes.chaos.invariants import STAYS, WORK, Invariants, label
from tests.kubernetes.cluster import Kubectl, Obj
from tests.kubernetes.cluster.kubectl import ApiFault
from tests.kubernetes.cluster.objects import STOPS_AFTER, deployment, job, node_of, nodes, pod
from tests.kubernetes.scenarios.fake_driver import GPU

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: batch
            resources: {max: {vcore: 12, memory: 24Gi}}
          - name: gangs
            resources: {max: {vcore: 14}}
          - name: services
            resources: {max: {vcore: 16}}
          - name: devices
            resources: {max: {example.com/gpu: 12}}
          - name: urgent
            properties: {preemption.delay: 1s}
            resources: {guaranteed: {vcore: 6}}
"""
QUOTAS = {
    "root.batch": {"cpu": "12", "memory": "24Gi"},
    "root.gangs": {"cpu": "14"},
    "root.services": {"cpu": "16"},
    "root.devices": {GPU: "12"},
}
"""Quotas of `QUEUES`, with the names of resources that pods use."""
NODES, CPUS, PODS = 5, 8, 24
LIVE = 60
"""Pods that have not ended, above which nothing is created."""
SERVICE = "services"
REPLICAS = 20
"""Pods of the service, of which some wait because of the quota."""
CARD_SERVICE, CARD_REPLICAS = "cards", 4
"""Service whose pods have a device each."""
KEPT = 120
"""Seconds for which a finished Job and its pods are kept, so that checks can see them."""
_FINAL = 8
"""Pods of the service for which there is room beside all other pods."""

OWNER = "Owner"
"""Gang without annotations, of an Indexed Job."""
GROUP = "yunikorn.apache.org/task-group-name"
GROUPS = "yunikorn.apache.org/task-groups"
PARAMETERS = "yunikorn.apache.org/schedulingPolicyParameters"
PREEMPTION = "yunikorn.apache.org/allow-preemption"


def cluster_nodes() -> list[Obj]:
    """Return the nodes of the cluster, and their devices."""
    found = nodes(NODES, cpu=str(CPUS), memory="32Gi", pods=PODS)
    for one in found:
        if one["metadata"]["name"] == PLUGGED:
            one["status"]["allocatable"][GPU] = str(CARDS)
    return [*found, *driver_objects([one["metadata"]["name"] for one in found])]


class Load:
    """A thread that makes work until it is finished; a context manager that ends it.

    The work depends on the seed only; its moments do not.
    """

    def __init__(self, kubectl: Kubectl, invariants: Invariants, seed: int) -> None:
        """Create it for a cluster; entering begins."""
        self._kubectl, self._invariants = kubectl, invariants
        self._random = random.Random(seed)
        self._seed = seed
        self._number = 0
        self._deleted: set[str] = set()
        self._is_over = threading.Event()
        self._is_closing = False
        self.expected: dict[str, int] = {}
        """Number of pods of each Job that must succeed."""
        self._grouped: list[str] = []
        """Jobs with PodGroups that exist."""
        self.failure: BaseException | None = None
        """Exception that has ended the thread."""
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        invariants.may_be_deleted = self._is_ours_to_delete

    def __enter__(self) -> Load:
        self._serve(SERVICE, REPLICAS, "root.services", {}, cpu="1")
        card = claims(1)
        self._serve(CARD_SERVICE, CARD_REPLICAS, "root.devices", card.pop("annotations"), **card)
        self._thread.start()
        return self

    def _serve(
        self, name: str, replicas: int, queue: str, annotations: dict[str, str], **arguments: Any
    ) -> None:
        """Create a service, whose pods are deleted."""
        self._create(
            deployment(
                name,
                replicas=replicas,
                application=f"{name}-{self._seed}",
                queue=queue,
                labels={WORK: name},
                annotations={STOPS_AFTER: "400ms", **annotations},
                terminationGracePeriodSeconds=5,
                **arguments,
            )
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Make no more work."""
        self._is_over.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def shrink(self) -> None:
        """Scale the service down to a size for which there is room."""
        self._is_closing = True
        self._repeat(lambda: self._kubectl.patch("Deployment", SERVICE, {"spec": {"replicas": _FINAL}}))

    def end(self) -> None:
        """Delete what keeps devices when all work is complete."""
        self._end_groups()
        self._repeat(lambda: self._kubectl.patch("Deployment", CARD_SERVICE, {"spec": {"replicas": 1}}))

    def unfinished(self) -> dict[str, str]:
        """Return the Jobs of which pods are missing, with how many have succeeded."""
        done = self._invariants.succeeded
        return {
            name: f"{len(done[name])} of {count}"
            for name, count in self.expected.items()
            if len(done[name]) < count
        }

    def _is_ours_to_delete(self, one: Obj) -> bool:
        return one["metadata"]["uid"] in self._deleted or (
            self._is_closing and label(one, WORK) in (SERVICE, CARD_SERVICE)
        )

    # -- work -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                if self._invariants.live > LIVE:
                    self._invariants.wait_for(["ended", "deleted"], 1, 0.5)
                    continue
                kinds: list[Callable[[str], object]] = [
                    self._job,
                    self._gang,
                    self._gang,
                    self._urgent,
                    self._delete,
                    self._claims,
                    self._amounts,
                    self._group,
                ]
                self._number += 1
                chosen = self._random.choice(kinds)
                chosen(f"{chosen.__name__[1:]}-{self._seed}-{self._number}")
                self._is_over.wait(self._random.uniform(0.05, 0.4))
        except BaseException as error:
            self.failure = error

    def _job(self, name: str) -> None:
        self._submit(
            name, self._random.randint(1, 6), "root.batch", cpu=self._random.choice(["500m", "1", "2"])
        )

    def _urgent(self, name: str) -> None:
        self._submit(name, self._random.randint(1, 3), "root.urgent", cpu=self._random.choice(["1", "2"]))

    def _gang(self, name: str) -> None:
        count = self._random.randint(2, 5)
        style = self._random.choice(["Soft", "Soft", "Hard", "Atomic", OWNER])
        if style == OWNER:
            self._submit(name, count, "root.gangs", cpu="1", application="", mode="Indexed")
            return
        groups = [{"name": "workers", "minMember": count, "minResource": {"cpu": "1", "memory": "1Gi"}}]
        annotations = {
            GROUP: "workers",
            GROUPS: json.dumps(groups),
            # A Hard gang without room in time fails by design; an hour never passes.
            PARAMETERS: f"gangSchedulingStyle={style} placeholderTimeoutInSeconds="
            f"{3600 if style == 'Hard' else self._random.choice([10, 60, 3600])}",
        }
        # Members beyond the group's number are scheduled as other pods are.
        more = self._random.choice([0, 0, 1])
        self._submit(name, count + more, "root.gangs", cpu="1", annotations=annotations)

    def _claims(self, name: str) -> None:
        arguments = claims(self._random.randint(1, 2))
        self._submit(name, self._random.randint(1, 4), "root.devices", **arguments)

    def _amounts(self, name: str) -> None:
        self._submit(name, self._random.randint(1, 3), "root.devices", **amounts(self._random.randint(1, 2)))

    def _group(self, name: str) -> None:
        """Create a PodGroup whose pods share devices; they belong to it until it is deleted."""
        self._end_groups()
        least, devices = self._random.randint(2, 4), self._random.randint(1, 2)
        self._create(pod_group(name, least, devices))
        self._grouped.append(name)
        self._submit(name, least, "root.gangs", application="", **member(name, devices))

    def _end_groups(self) -> None:
        """Delete the PodGroups of Jobs that are complete."""
        missing = self.unfinished()
        for name in [one for one in self._grouped if one not in missing]:
            self._repeat(partial(self._kubectl.delete, "PodGroup", name))
            self._grouped.remove(name)

    def _submit(
        self,
        name: str,
        count: int,
        queue: str,
        *,
        annotations: dict[str, str] | None = None,
        mode: str = "NonIndexed",
        **arguments: Any,
    ) -> None:
        """Create a Job whose pods must all succeed, and must not be deleted."""
        self.expected[name] = count
        arguments.setdefault("application", name)
        self._create(
            job(
                name,
                pods=count,
                runs=f"{self._random.randint(200, 2500)}ms",
                queue=queue,
                labels={WORK: name, STAYS: "true"},
                annotations={PREEMPTION: "false", **(annotations or {})},
                job_fields={"ttlSecondsAfterFinished": KEPT, "completionMode": mode},
                **arguments,
            )
        )

    def _delete(self, name: str) -> None:
        """Delete a pod of the service, bound or not; its controller makes another."""
        services = f"{WORK} in ({SERVICE}, {CARD_SERVICE})"
        found = self._repeat(lambda: self._kubectl.list("Pod", "default", labels=services))
        if found:
            found.sort(key=lambda one: (not node_of(one), one["metadata"]["name"]))
            chosen = self._random.choice(found)
            self._deleted.add(chosen["metadata"]["uid"])
            self._repeat(lambda: self._kubectl.delete("Pod", chosen["metadata"]["name"], grace=5))

    def _create(self, obj: Obj) -> None:
        self._repeat(lambda: self._kubectl.create(obj))

    def _repeat(self, call: Callable[[], Any]) -> Any:
        """Call until the API server answers; what exists already was created by a call without an answer."""
        while True:
            try:
                return call()
            except ApiFault as fault:
                if fault.status in (404, 409):
                    return None
                if fault.status not in (403, 429, 500, 503, 504):
                    raise
            except (OSError, http.client.HTTPException):
                pass
            if self._is_over.wait(0.2) and not self._is_closing:
                return None
            if self._is_closing:
                threading.Event().wait(0.2)


def foreign_pods() -> list[Obj]:
    """Return pods of another scheduler, which occupy room from the beginning."""
    return [
        pod(f"foreign-{number}", scheduler="other", cpu="1", nodeName=f"node-{number}") for number in range(2)
    ]
