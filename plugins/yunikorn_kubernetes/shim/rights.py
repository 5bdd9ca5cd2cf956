"""Rights of the scheduler at the API server: all that are missing at the start are named at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from yunikorn.errors import UsageError
from yunikorn_kubernetes.api_server.access_reviews import (
    ROLES,
    Right,
    all_at_once,
    denied,
    refused_list,
    refused_object,
)
from yunikorn_kubernetes.api_server.api_resources import (
    EVENTS,
    LEASES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    ApiResource,
)
from yunikorn_kubernetes.api_server.calls import ApiServer

NEEDED = (
    Right(PODS, "create", "binding"),
    Right(PODS, "create"),
    Right(PODS, "delete"),
    Right(PERSISTENT_VOLUMES, "patch"),
    Right(PERSISTENT_VOLUME_CLAIMS, "patch"),
)
"""Rights without which pods, gangs, preemption or volumes come to a halt."""
REPORTS = (Right(PODS, "patch", "status"), Right(EVENTS, "create"), Right(EVENTS, "patch"))
"""Rights to the messages for users; scheduling goes on without them."""


async def check_rights(
    server: ApiServer, lists: Iterable[tuple[ApiResource[Any], str]], lease: tuple[str, str] | None
) -> list[str]:
    """Raise `UsageError` with all rights that are missing; return those that only reports need.

    `lists` are resources with the namespace to list them in, empty for all; `lease` is the namespace and the
    name of a lease that must be readable, if any. Raises `ApiError` if the server does not answer.
    """
    calls = [refused_list(server, resource, namespace) for resource, namespace in lists]
    if lease is not None:
        calls.append(refused_object(server, LEASES, *lease))
    # One after the other, these requests would be a good part of the time of a start.
    refused, needed, reports = await all_at_once(
        (all_at_once(calls), denied(server, NEEDED), denied(server, REPORTS))
    )
    missing = [*filter(None, refused), *needed]
    if missing:
        advice = f"Give the account of this process the rights of {ROLES}"
        raise UsageError("\n".join(("the API server refuses access:", *missing, advice)))
    return reports
