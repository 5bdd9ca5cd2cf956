"""What is called on the wire, by name: services and their methods."""

from __future__ import annotations

SCHEDULER = "si.v1.Scheduler"
"""The scheduler interface, in both layouts."""
REGISTER = "RegisterResourceManager"
UPDATE = "Update"
"""Release v0.11.0: everything in one stream."""
UPDATE_ALLOCATION = "UpdateAllocation"
UPDATE_APPLICATION = "UpdateApplication"
UPDATE_NODE = "UpdateNode"

CALLBACKS = "yunikorn.shim.v1.Callbacks"
"""Ours: what the scheduler asks and tells a remote resource manager besides."""
CONNECT = "Connect"


def path(service: str, method: str) -> str:
    """What a client calls: `/si.v1.Scheduler/Update`."""
    return f"/{service}/{method}"
