"""Conditions of devices that drivers have to fulfil before a pod can be bound."""

from __future__ import annotations

from typing import NamedTuple

from yunikorn_kubernetes.objects import Json
from yunikorn_kubernetes.resource_claims.claim_objects import ResourceClaimObject, results_of

_DEVICE = ("driver", "pool", "device", "shareID")


class AwaitedCondition(NamedTuple):
    """Condition that a claim waits for; an empty text if all its devices are ready."""

    text: str = ""
    has_failed: bool = False


def awaited_condition(claim: ResourceClaimObject) -> AwaitedCondition:
    """Return the first condition of a claim's devices that has failed, or else that is not fulfilled."""
    waiting = AwaitedCondition()
    for result in results_of(claim.allocation or {}):
        wanted, failures = result.get("bindingConditions") or (), result.get("bindingFailureConditions") or ()
        if not wanted:
            continue
        device = "/".join(str(result.get(name)) for name in _DEVICE[:3])
        known = _conditions(claim.status, result)
        for name in failures:
            if known.get(name, {}).get("status") == "True":
                message = known[name].get("message") or known[name].get("reason") or ""
                why = f"device {device} has the condition {name}"
                return AwaitedCondition(f"{why}: {message}" if message else why, has_failed=True)
        for name in wanted:
            if not waiting.text and known.get(name, {}).get("status") != "True":
                waiting = AwaitedCondition(f"condition {name} of device {device}")
    return waiting


def _conditions(status: Json, result: Json) -> dict[str, Json]:
    """Return the conditions that a driver reports for the device of a result, by type."""
    for one in status.get("devices") or ():
        if all(one.get(name) == result.get(name) for name in _DEVICE):
            return {str(each.get("type")): each for each in one.get("conditions") or ()}
    return {}
