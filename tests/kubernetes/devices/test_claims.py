"""Resource claims, from JSON to objects and back: what is known, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes.devices.objects import alternative, claim, wanted
from yunikorn_kubernetes.devices.claim_reading import read_allocation, read_claim
from yunikorn_kubernetes.predicates.tag_reading import UnreadableText


def test_a_claim_has_requests_alternatives_and_constraints() -> None:
    found = read_claim(
        claim(
            "claim",
            wanted("big", "true", count=2, tolerations=[{"key": "broken", "operator": "Exists"}]),
            {"name": "any", "firstAvailable": [alternative("whole"), alternative("half", count=2)]},
            wanted("all", allocationMode="All", adminAccess=True),
            wanted("part", capacity={"requests": {"memory": "1.5Gi"}}),
            constraints=[
                {"requests": ["big"], "matchAttribute": "a.example.com/root"},
                {"distinctAttribute": "a.example.com/slot"},
            ],
        )
    )
    assert found.problems == ()
    assert [[one.name for one in request.alternatives] for request in found.requests] == [
        ["big"],
        ["any/whole", "any/half"],
        ["all"],
        ["part"],
    ]
    [big] = found.requests[0].alternatives
    assert (big.count, big.selectors, big.tolerations[0].key) == (2, ("true",), "broken")
    assert found.requests[2].alternatives[0].admin_access is True
    assert str(found.requests[3].alternatives[0].capacity[0][1]) == "1536Mi"
    assert [one.is_distinct for one in found.constraints] == [False, True]


@pytest.mark.parametrize(
    ("request_json", "word"),
    [
        ({"exactly": {"deviceClassName": "gpu"}}, "name"),
        ({"name": "a"}, "firstAvailable"),
        ({"name": "a", "exactly": {"deviceClassName": "gpu"}, "firstAvailable": [alternative("b")]}, "a"),
        ({"name": "a", "someOf": [alternative("b")]}, "firstAvailable"),
        (wanted("a", deviceClassName=""), "deviceClassName"),
        (wanted("a", allocationMode="Most"), "Most"),
        (wanted("a", count=-1), "count"),
        (wanted("a", adminAccess="yes"), "adminAccess"),
        (wanted("a", selectors=[{"sql": "select"}]), "CEL"),
        (wanted("a", capacity={"requests": {"memory": "lots"}}), "lots"),
    ],
)
def test_a_request_that_is_not_known_is_refused(request_json: dict[str, Any], word: str) -> None:
    found = read_claim(claim("claim", wanted("first"), request_json, wanted("last", allocationMode="None")))
    assert len(found.problems) == 2
    assert word in found.problems[0]


def test_a_constraint_that_is_not_known_is_refused() -> None:
    found = read_claim(claim("claim", wanted("a"), constraints=[{"nearAttribute": "a.example.com/root"}]))
    assert len(found.problems) == 1


def test_an_allocation_is_read_and_written() -> None:
    written: dict[str, Any] = {
        "devices": {
            "results": [
                {
                    "request": "a",
                    "driver": "gpu.example.com",
                    "pool": "node",
                    "device": "gpu-0",
                    "adminAccess": True,
                    "tolerations": [{"key": "broken", "operator": "Exists"}],
                    "bindingConditions": ["ready"],
                    "bindingFailureConditions": ["failed"],
                },
                {
                    "request": "b",
                    "driver": "gpu.example.com",
                    "pool": "node",
                    "device": "gpu-1",
                    "shareID": "share-1",
                    "consumedCapacity": {"memory": "1Gi"},
                },
            ],
            "config": [{"source": "FromClaim", "requests": []}],
        },
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": []}]},
    }
    assert read_allocation(written).to_json(lambda: "share-1") == written


def test_a_result_without_a_device_is_refused() -> None:
    with pytest.raises(UnreadableText):
        read_allocation(
            {"devices": {"results": [{"request": "a", "driver": "gpu.example.com", "pool": "node"}]}}
        )
