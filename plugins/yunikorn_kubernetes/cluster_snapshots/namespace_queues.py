"""Configuration for a cluster without one: a queue for each namespace, with the quotas of the namespace."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import yaml

from yunikorn.errors import QuantityError
from yunikorn_kubernetes.api_server.api_resources import ApiResource
from yunikorn_kubernetes.objects import ApiStruct, Json, ObjectMeta
from yunikorn_kubernetes.translation.kubernetes_quantities import CPU, VCORE, amount_of


class QuotaSpec(ApiStruct, frozen=True):
    """Amounts that the objects of a namespace may have in all, and the pods that count, if not all do."""

    hard: dict[str, str] = msgspec.field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: Json | None = None


class ResourceQuota(ApiStruct, frozen=True):
    """Quota of a namespace."""

    metadata: ObjectMeta = ObjectMeta()
    spec: QuotaSpec = QuotaSpec()


RESOURCE_QUOTAS = ApiResource("", "v1", "resourcequotas", "ResourceQuota", True, ResourceQuota)
REQUESTS = "requests."
PLAIN = (CPU, "memory", "ephemeral-storage", "pods")
"""Resources that a quota may also limit by their plain names."""
OF_OBJECTS = ("storage",)
"""Resources below `requests.` that are not those of pods."""


def queues_of_namespaces(namespaces: Iterable[str], quotas: Iterable[ResourceQuota]) -> tuple[str, list[str]]:
    """Return the text of a configuration, and the quotas that it leaves out, each with the reason."""
    most: dict[str, dict[str, int]] = {}
    left_out = []
    for quota in quotas:
        at = most.setdefault(quota.metadata.namespace, {})
        name = f"quota {quota.metadata.namespace}/{quota.metadata.name}"
        if quota.spec.scopes or quota.spec.scope_selector:
            left_out.append(f"{name}: it counts only some pods")
            continue
        try:
            amounts = _amounts(quota.spec.hard)
        except QuantityError as error:
            left_out.append(f"{name}: {error}")
            continue
        if amounts and not any(amounts.values()):
            # A quota of nothing but zeros means none in a queue.
            left_out.append(f"{name}: it permits nothing")
            continue
        for resource, amount in amounts.items():
            at[resource] = min(amount, at.get(resource, amount))
    queues = [
        {"name": name, **({"resources": {"max": _texts(most[name])}} if most.get(name) else {})}
        for name in sorted({*namespaces})
    ]
    partition = {
        "name": "default",
        "placementrules": [{"name": "tag", "value": "namespace", "create": True}],
        "queues": [{"name": "root", "submitacl": "*", "queues": queues}],
    }
    return yaml.safe_dump({"partitions": [partition]}, sort_keys=False), left_out


def _amounts(hard: dict[str, str]) -> dict[str, int]:
    """Return what a quota permits the pods of its namespace to request, by resource type."""
    found: dict[str, int] = {}
    for key, text in hard.items():
        name = key.removeprefix(REQUESTS)
        counts = name not in OF_OBJECTS if key.startswith(REQUESTS) else key in PLAIN
        if not counts or ".storageclass.storage.k8s.io/" in key:
            continue
        amount = amount_of(name, text)
        resource = VCORE if name == CPU else name
        found[resource] = min(amount, found.get(resource, amount))
    return found


def _texts(amounts: dict[str, int]) -> dict[str, str]:
    return {name: f"{amount}m" if name == VCORE else f"{amount}" for name, amount in amounts.items()}
