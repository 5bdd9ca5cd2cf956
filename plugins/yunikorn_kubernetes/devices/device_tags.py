"""Devices and claims in tags of requests and allocations: `resource-claims` and `device-allocations`.

No text raises an exception other than `UnreadableText`. Parsed forms are kept for the latest texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import attrs

from yunikorn_kubernetes.devices.claim_reading import read_allocation, read_claim
from yunikorn_kubernetes.devices.device_objects import DeviceAllocation, DeviceClass, Json, ResourceClaim
from yunikorn_kubernetes.devices.slice_reading import compact, read_device_class
from yunikorn_kubernetes.predicates.tag_reading import (
    TEXTS,
    UnreadableText,
    load,
    table_of,
    tables_of,
    text_of,
)


class ClaimId(NamedTuple):
    """A claim of a pod, and the object of the API if it is known."""

    pod_claim: str = ""
    """Name in `spec.resourceClaims` of the pod; empty if no pod consumes the claim."""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    def __str__(self) -> str:
        """Return the name of the object, or that in the pod."""
        return f"{self.namespace}/{self.name}" if self.name else self.pod_claim

    @property
    def is_own(self) -> bool:
        """True if the claim belongs to this pod alone, and its object is not known."""
        return not self.name

    def to_json(self) -> Json:
        """Return the keys that name the claim in both tags."""
        found: Json = {"podClaim": self.pod_claim} if self.pod_claim else {}
        if self.name:
            found["claim"] = {"namespace": self.namespace, "name": self.name, "uid": self.uid}
        return found


class AllocatedClaim(NamedTuple):
    """A claim with its devices."""

    id: ClaimId
    allocation: DeviceAllocation
    json: Json
    """The allocation as in the status of the claim (`status.allocation`)."""


@attrs.frozen(eq=False)
class WantedClaims:
    """Claims of a request, with the classes that they name."""

    ids: tuple[ClaimId, ...]
    claims: tuple[ResourceClaim, ...]
    """The claims in the same order."""
    allocated: tuple[AllocatedClaim | None, ...]
    """For each claim its devices, if it has some already."""
    classes: Mapping[str, DeviceClass]
    problem: str = ""
    """Reason why the request cannot have its devices."""


@lru_cache(maxsize=TEXTS)
def read_wanted_claims(text: str) -> WantedClaims:
    """Return the claims in the tag `resource-claims`; an unreadable text has a problem."""
    try:
        table = table_of(load(text), "the claims")
        found = [_wanted(one) for one in tables_of(table.get("claims"), "claims")]
        classes = {
            name: read_device_class({"metadata": {"name": name}, "spec": spec})
            for name, spec in table_of(table.get("classes"), "classes").items()
        }
    except (UnreadableText, RecursionError) as error:
        return WantedClaims((), (), (), {}, str(error))
    problem = "; ".join(reason for *_, reason in found if reason)
    ids, claims, allocated = zip(*(one[:3] for one in found), strict=True) if found else ((), (), ())
    return WantedClaims(ids, claims, allocated, classes, problem)


def _wanted(entry: Json) -> tuple[ClaimId, ResourceClaim, AllocatedClaim | None, str]:
    identity = _id(entry)
    problem = text_of(entry, "problem")
    metadata = {
        # A claim of the pod alone has the name that the pod gives it, for reasons.
        "namespace": identity.namespace,
        "name": identity.name or identity.pod_claim,
        "uid": identity.uid,
    }
    claim = read_claim({"metadata": metadata, "spec": entry.get("spec")})
    allocated = None if entry.get("allocation") is None else _allocated(entry)
    return identity, claim, allocated, problem or "; ".join(claim.problems)


def _id(entry: Json) -> ClaimId:
    claim = table_of(entry.get("claim"), "claim")
    found = ClaimId(text_of(entry, "podClaim"), *(text_of(claim, key) for key in ClaimId._fields[1:]))
    if not found.pod_claim and not found.name:
        raise UnreadableText("a claim has no name")
    return found


@lru_cache(maxsize=TEXTS)
def read_device_allocations(text: str) -> tuple[AllocatedClaim, ...]:
    """Return the claims in the tag `device-allocations`. Raises `UnreadableText`."""
    try:
        return tuple(_allocated(one) for one in tables_of(load(text), "the devices"))
    except RecursionError as error:
        raise UnreadableText(str(error)) from None


def _allocated(entry: Json) -> AllocatedClaim:
    found = table_of(entry.get("allocation"), "allocation")
    return AllocatedClaim(_id(entry), read_allocation(found), found)


def device_allocations_text(claims: list[tuple[ClaimId, Json]]) -> str:
    """Return the tag `device-allocations` for claims with the JSON of their allocations."""
    return compact([one.to_json() | {"allocation": found} for one, found in claims])
