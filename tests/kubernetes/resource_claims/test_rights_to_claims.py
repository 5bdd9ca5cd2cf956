"""API servers without claims to devices, and accounts without the rights to them."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.kubernetes.api_server.memory_server import MemoryServer, answer, failure
from yunikorn_kubernetes.api_server.calls import ApiServer
from yunikorn_kubernetes.resource_claims.claim_objects import CLAIM_RIGHTS, DEVICE_RESOURCES
from yunikorn_kubernetes.shim.api_server_check import are_served


def served(missing: str = "", *, allowed: bool = True) -> bool:
    """Return whether claims are used with a server that lacks a resource, or refuses all rights."""
    memory = MemoryServer()

    def fault(method: str, path: str) -> object:
        if "accessreviews" in path:
            return answer(201, {"status": {"allowed": allowed}})
        return failure(404, "NotFound") if missing and missing in path else None

    memory.before = fault  # type: ignore[assignment]
    return asyncio.run(are_served(ApiServer(memory), DEVICE_RESOURCES, CLAIM_RIGHTS))


def test_claims_are_used_if_all_is_there() -> None:
    assert served()


@pytest.mark.parametrize("missing", [one.plural for one in DEVICE_RESOURCES])
def test_claims_are_not_used_without_a_resource(missing: str) -> None:
    assert not served(missing)


def test_claims_are_not_used_without_rights(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert not served(allowed=False)
    assert "resourceclaims/binding" in caplog.text
    assert "scheduler-access.yaml" in caplog.text
