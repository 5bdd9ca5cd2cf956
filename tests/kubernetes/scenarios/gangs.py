"""Gangs of scenarios: annotations of their members, and what the cluster shows of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.kubernetes.cluster import Obj
from tests.kubernetes.cluster.objects import container, node_of, phase, pod
from tests.kubernetes.scheduling import Scheduled

GROUP = "yunikorn.apache.org/task-group-name"
GROUPS = "yunikorn.apache.org/task-groups"
PARAMETERS = "yunikorn.apache.org/schedulingPolicyParameters"
PLACEHOLDER = "internal.yunikorn.apache.org/placeholder"
_NUMBERS = itertools.count(1)


def group(name: str = "workers", members: int = 3, cpu: str = "1", **fields: Any) -> Obj:
    """Return a task group; `fields` are further fields, such as `nodeSelector`."""
    return {
        "name": name,
        "minMember": members,
        "minResource": {"cpu": cpu, "memory": "1Gi", **fields.pop("minResource", {})},
        **fields,
    }


def gang(
    *groups: Obj, name: str = "workers", style: str = "Soft", timeout: int = 300, **more: str
) -> dict[str, str]:
    """Return the annotations of a member of the group `name`; `timeout` of placeholders is in seconds."""
    return {
        GROUP: name,
        GROUPS: json.dumps(groups),
        PARAMETERS: f"gangSchedulingStyle={style} placeholderTimeoutInSeconds={timeout}",
        **more,
    }


def unique(name: str) -> str:
    """Return an id for an application that no other test uses.

    An application ends half a minute after its last pod; until then a pod with its id joins it.
    """
    return f"{name}-{next(_NUMBERS)}"


def members(count: int, annotations: Mapping[str, str], prefix: str = "gang", **arguments: Any) -> list[Obj]:
    """Return pods `PREFIX-0` and so on of one new application; further arguments are those of `pod`."""
    arguments.setdefault("application", unique(prefix))
    return [pod(f"{prefix}-{number}", annotations=annotations, **arguments) for number in range(count)]


def placeholders(pods: Iterable[Obj]) -> list[Obj]:
    """Return the pods that are placeholders."""
    return [one for one in pods if PLACEHOLDER in (one["metadata"].get("annotations") or {})]


def real(pods: Iterable[Obj]) -> list[Obj]:
    """Return the pods that are no placeholders."""
    return [one for one in pods if PLACEHOLDER not in (one["metadata"].get("annotations") or {})]


def bound(pods: Iterable[Obj]) -> int:
    """Return how many pods are bound."""
    return sum(bool(node_of(one)) for one in pods)


def wait_for_placeholders(scheduled: Scheduled, count: int, *, on_nodes: int | None = None) -> list[Obj]:
    """Wait for this number of placeholders, of which `on_nodes` are bound; return them."""

    def there(pods: list[Obj]) -> bool:
        found = placeholders(pods)
        return len(found) == count and on_nodes in (None, bound(found))

    return placeholders(scheduled.wait_pods(there).values())


def wait_for_members(scheduled: Scheduled, count: int) -> dict[str, str]:
    """Wait until exactly this number of real pods runs and no placeholder exists; return nodes by name."""

    def there(pods: list[Obj]) -> bool:
        return not placeholders(pods) and sum(phase(one) == "Running" for one in pods) == count

    pods = scheduled.wait_pods(there)
    return {name: node_of(one) for name, one in pods.items() if phase(one) == "Running"}


def version_of_pods(scheduled: Scheduled) -> str:
    """Return the version of the cluster's pods, for `names_since`."""
    listed = scheduled.kubectl.request("GET", "/api/v1/pods", limit="1")
    return str(listed["metadata"]["resourceVersion"])


def names_since(scheduled: Scheduled, version: str) -> set[str]:
    """Return the names of all pods that were created since a version, also of those that are gone."""
    scheduled.kubectl.create(pod("marker", scheduler="none"))
    names: set[str] = set()
    for _, one in scheduled.kubectl.watch("Pod", "default", version):
        if one["metadata"]["name"] == "marker":
            break
        names.add(one["metadata"]["name"])
    return names


def requests(one: Obj) -> dict[str, str]:
    """Return the requests of the only container of a pod."""
    return dict(one["spec"]["containers"][0]["resources"]["requests"])


def with_pages(pages: str) -> list[Obj]:
    """Return the containers of a pod with one CPU and huge pages."""
    return [container(cpu="1", memory="1Gi", requests={"hugepages-2Mi": pages})]
