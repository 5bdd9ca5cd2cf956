"""Names of services and their methods on the wire."""

from __future__ import annotations

SCHEDULER = "si.v1.Scheduler"
"""Service of the scheduler interface, in both layouts."""
REGISTER = "RegisterResourceManager"
UPDATE = "Update"
"""Stream of release v0.11.0, for everything but the registration."""
UPDATE_ALLOCATION = "UpdateAllocation"
UPDATE_APPLICATION = "UpdateApplication"
UPDATE_NODE = "UpdateNode"

CALLBACKS = "yunikorn.shim.v1.Callbacks"
"""Service for callbacks of a remote resource manager; not part of the published interface."""
CONNECT = "Connect"


def path(service: str, method: str) -> str:
    """Return the path of a method: `/si.v1.Scheduler/Update`."""
    return f"/{service}/{method}"
