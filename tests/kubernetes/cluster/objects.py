"""Builders of the objects that tests create: nodes, pods, and the workloads that make pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.kubernetes.cluster.kubectl import Obj

SUCCEEDS_AFTER = "tests.yunikorn/succeeds-after"
"""Annotation of a pod: it is Succeeded this long (`2s`) after it runs. All of them: `stages.yaml`."""
FAILS_AFTER = "tests.yunikorn/fails-after"
STARTS_AFTER = "tests.yunikorn/starts-after"
STOPS_AFTER = "tests.yunikorn/stops-after"
APPLICATION = "yunikorn.apache.org/app-id"
QUEUE = "yunikorn.apache.org/queue"


def node(
    name: str,
    *,
    cpu: str = "16",
    memory: str = "64Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    resources: Mapping[str, str] | None = None,
    ready: bool = False,
) -> Obj:
    """Return a node; `resources` are further allocatable ones.

    kwok makes it ready. A test of thousands of nodes saves that time by `ready=True`. All nodes have a taint
    until the controller manager has seen that they are ready.
    """
    allocatable = {"cpu": cpu, "memory": memory, "pods": str(pods), **(resources or {})}
    spec: Obj = {}
    if taints:
        spec["taints"] = [dict(taint) for taint in taints]
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **(labels or {})},
            "annotations": dict(annotations or {}),
        },
        "spec": spec,
        "status": {
            "allocatable": allocatable,
            "capacity": allocatable,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}] if ready else [],
        },
    }


def nodes(count: int, prefix: str = "node", **arguments: Any) -> list[Obj]:
    """Return `count` nodes, `PREFIX-0` and so on, with the arguments of `node`."""
    return [node(f"{prefix}-{number}", **arguments) for number in range(count)]


def container(
    name: str = "main",
    *,
    cpu: str = "",
    memory: str = "",
    requests: Mapping[str, str] | None = None,
    ports: Sequence[Mapping[str, Any]] = (),
    **fields: Any,
) -> Obj:
    """Return a container with requests, and equal limits of extended resources; `fields` are more fields."""
    wanted = {**({"cpu": cpu} if cpu else {}), **({"memory": memory} if memory else {}), **(requests or {})}
    built: Obj = {"name": name, "image": "registry.k8s.io/pause", **fields}
    if wanted:
        built["resources"] = {"requests": wanted}
        # The API server demands a limit for extended resources and for huge pages.
        limits = {key: text for key, text in wanted.items() if "/" in key or key.startswith("hugepages-")}
        if limits:
            built["resources"]["limits"] = limits
    if ports:
        built["ports"] = [dict(port) for port in ports]
    return built


def pod_spec(
    *,
    cpu: str = "1",
    memory: str = "1Gi",
    scheduler: str = "yunikorn",
    containers: Sequence[Obj] | None = None,
    **fields: Any,
) -> Obj:
    """Return a pod's spec with one container, or with the given ones; `fields` are further fields."""
    return {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 0,
        "containers": list(containers) if containers else [container(cpu=cpu, memory=memory)],
        **fields,
    }


def metadata(
    name: str = "",
    namespace: str = "default",
    *,
    application: str = "",
    queue: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Obj:
    """Return metadata; application id and queue become the labels that YuniKorn reads."""
    built: Obj = {"name": name, "namespace": namespace} if name else {}
    named = {APPLICATION: application, QUEUE: queue}
    all_labels = {**{key: text for key, text in named.items() if text}, **(labels or {})}
    if all_labels:
        built["labels"] = all_labels
    if annotations:
        built["annotations"] = dict(annotations)
    return built


def pod(
    name: str,
    namespace: str = "default",
    *,
    application: str = "",
    queue: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Obj:
    """Return a pod for the scheduler `yunikorn`; further arguments are those of `pod_spec`."""
    meta = metadata(
        name, namespace, application=application, queue=queue, labels=labels, annotations=annotations
    )
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod_spec(**spec)}


def template(
    *,
    application: str = "",
    queue: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Obj:
    """Return the template of a workload's pods."""
    meta = metadata(application=application, queue=queue, labels=labels, annotations=annotations)
    return {"metadata": meta, "spec": pod_spec(**spec)}


def job(
    name: str,
    namespace: str = "default",
    *,
    pods: int = 1,
    parallelism: int | None = None,
    runs: str = "",
    annotations: Mapping[str, str] | None = None,
    job_fields: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Obj:
    """Return a Job of `pods` pods, all at once unless `parallelism` says less.

    Its pods succeed after `runs` (`2s`), or never if that is empty. Further arguments are those of
    `template`.
    """
    told = {**(annotations or {}), **({SUCCEEDS_AFTER: runs} if runs else {})}
    arguments.setdefault("restartPolicy", "Never")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "completions": pods,
            "parallelism": pods if parallelism is None else parallelism,
            "backoffLimit": 0,
            "template": template(annotations=told, **arguments),
            **(job_fields or {}),
        },
    }


def deployment(name: str, namespace: str = "default", *, replicas: int = 1, **arguments: Any) -> Obj:
    """Return a Deployment; further arguments are those of `template`."""
    return _workload("Deployment", name, namespace, arguments, replicas=replicas)


def stateful_set(name: str, namespace: str = "default", *, replicas: int = 1, **arguments: Any) -> Obj:
    """Return a StatefulSet that starts its pods at once; further arguments are those of `template`."""
    more = {"serviceName": name, "podManagementPolicy": "Parallel"}
    return _workload("StatefulSet", name, namespace, arguments, replicas=replicas, **more)


def daemon_set(name: str, namespace: str = "default", **arguments: Any) -> Obj:
    """Return a DaemonSet; further arguments are those of `template`."""
    return _workload("DaemonSet", name, namespace, arguments)


def _workload(kind: str, name: str, namespace: str, arguments: Obj, **fields: Any) -> Obj:
    labels = {"app": name, **(arguments.pop("labels", None) or {})}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": template(labels=labels, **arguments),
            **fields,
        },
    }


def namespace(
    name: str, *, labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None
) -> Obj:
    """Return a namespace."""
    meta = {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


def config_map(name: str, data: Mapping[str, str], namespace: str = "default") -> Obj:
    """Return a ConfigMap."""
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": dict(data)}


def priority_class(name: str, value: int, *, annotations: Mapping[str, str] | None = None) -> Obj:
    """Return a PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "value": value,
    }


# -- conditions, for Kubectl.wait and Kubectl.wait_for --------------------------------------------------


def has_condition(obj: Obj, kind: str, status: str = "True") -> bool:
    """Return True if the status of an object has this condition."""
    conditions = obj.get("status", {}).get("conditions") or []
    return any(one["type"] == kind and one["status"] == status for one in conditions)


def node_is_ready(obj: Obj) -> bool:
    """Return True if a node is ready and no longer has the taint of a new node."""
    taints = [taint["key"] for taint in obj["spec"].get("taints") or []]
    return has_condition(obj, "Ready") and "node.kubernetes.io/not-ready" not in taints


def node_of(obj: Obj) -> str:
    """Return the node that a pod is bound to, or an empty text."""
    return str(obj["spec"].get("nodeName") or "")


def phase(obj: Obj) -> str:
    """Return the phase of a pod, of a volume or of a namespace."""
    return str(obj.get("status", {}).get("phase") or "")
