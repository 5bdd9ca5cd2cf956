"""Resources that a pod takes from its node.

The computation is that of Kubernetes: sidecars run beside the containers, other init containers run before
them, one after the other, and a resize in place counts until the node has carried it out (KEP-753, KEP-1287,
KEP-2837 of the Kubernetes enhancements). Only requests count, never limits.
"""

from __future__ import annotations

from collections.abc import Mapping

from yunikorn.errors import QuantityError
from yunikorn.resources import Resource, Tally
from yunikorn_kubernetes.objects import Container, ContainerStatus, Pod
from yunikorn_kubernetes.translation.kubernetes_quantities import PODS, amounts_of, check_range

SIDECAR = "Always"
"""Restart policy of an init container that runs as long as the pod."""
RESIZE_PENDING = "PodResizePending"
INFEASIBLE = "Infeasible"
HUGE_PAGES = "hugepages-"


def pod_resource(pod: Pod) -> Resource:
    """Return the resources of a pod, with `pods: 1`, `vcore` in milli-vcores and other types in whole units.

    Raises `QuantityError` with all quantities that cannot be read, or if a sum does not fit into 64 bits.
    """
    problems: list[str] = []
    spec, status = pod.spec, pod.status
    infeasible = is_resize_infeasible(pod)
    total: Tally = {PODS: 1}
    statuses = {each.name: each for each in status.container_statuses}
    for index, container in enumerate(spec.containers):
        path = f"spec.containers[{index}]"
        _grow(total, _requests(container, statuses.get(container.name), infeasible, path, problems))
    if spec.init_containers:
        statuses = {each.name: each for each in status.init_container_statuses}
        sidecars: Tally = {}
        highest: Tally = {}
        for index, container in enumerate(spec.init_containers):
            path = f"spec.initContainers[{index}]"
            own = _requests(container, statuses.get(container.name), infeasible, path, problems)
            at_once = dict(sidecars)
            _grow(at_once, own)
            _raise_to(highest, at_once)
            if container.restart_policy == SIDECAR:
                sidecars = at_once
        _grow(total, sidecars)
        _raise_to(total, highest)
    if spec.resources is not None and spec.resources.requests:
        of_pod = _read(spec.resources.requests, "spec.resources.requests", problems)
        total.update({name: value for name, value in of_pod.items() if is_pod_level(name)})
    if spec.overhead:
        _grow(total, _read(spec.overhead, "spec.overhead", problems))
    if problems:
        raise QuantityError("; ".join(problems))
    check_range(total, "the pod")
    return Resource(total)


def is_pod_level(name: str) -> bool:
    """Return True for a resource type that a pod as a whole may request in place of its containers."""
    return name in ("vcore", "memory") or name.startswith(HUGE_PAGES)


def is_resize_infeasible(pod: Pod) -> bool:
    """Return True if the node can never grant the resize that the pod requests."""
    return pod.status.resize == INFEASIBLE or any(
        condition.type == RESIZE_PENDING and condition.reason == INFEASIBLE
        for condition in pod.status.conditions
    )


def _requests(
    container: Container, status: ContainerStatus | None, infeasible: bool, path: str, problems: list[str]
) -> Tally:
    """Return the larger of what a container requests and what its node has set aside.

    A request that the node can never grant does not count where the amounts in force are known.
    """
    in_force = status.resources if status else None
    if infeasible and in_force is not None and in_force.requests:
        return _read(in_force.requests, f"{path}: status.resources.requests", problems)
    requested = container.resources.requests if container.resources else {}
    found = _read(requested, f"{path}.resources.requests", problems)
    if status is not None and status.allocated_resources:
        _raise_to(found, _read(status.allocated_resources, f"{path}: status.allocatedResources", problems))
    if in_force is not None and in_force.requests:
        _raise_to(found, _read(in_force.requests, f"{path}: status.resources.requests", problems))
    return found


def _read(quantities: Mapping[str, str], path: str, problems: list[str]) -> Tally:
    try:
        return amounts_of(quantities, path)
    except QuantityError as error:
        problems.append(str(error))
        return {}


def _grow(total: Tally, amounts: Mapping[str, int]) -> None:
    # Unlike `yunikorn.resources.grow`, entries of 0 stay, as in YuniKorn.
    for name, value in amounts.items():
        total[name] = total.get(name, 0) + value


def _raise_to(total: Tally, amounts: Mapping[str, int]) -> None:
    for name, value in amounts.items():
        if name not in total or value > total[name]:
            total[name] = value
