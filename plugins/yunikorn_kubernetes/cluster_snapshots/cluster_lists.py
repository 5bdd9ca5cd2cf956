"""Lists of the objects of a cluster, read once, with rights that change nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any

from yunikorn import __version__
from yunikorn.clock import SystemClock
from yunikorn.errors import UsageError
from yunikorn_kubernetes.api_server.access_reviews import all_at_once, refused_list
from yunikorn_kubernetes.api_server.api_connection import ApiConnection
from yunikorn_kubernetes.api_server.api_credentials import find_credentials
from yunikorn_kubernetes.api_server.api_resources import (
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    STORAGE,
    ApiResource,
)
from yunikorn_kubernetes.api_server.calls import ApiServer
from yunikorn_kubernetes.cluster_snapshots.listed_cluster import ListedObjects, cluster_of_objects
from yunikorn_kubernetes.cluster_snapshots.namespace_queues import RESOURCE_QUOTAS
from yunikorn_snapshots.other_clusters import OtherCluster

PAGE = 500
"""Number of objects in an answer."""
CONNECTIONS = 4
LISTED: Sequence[ApiResource[Any]] = (
    PODS,
    NODES,
    NAMESPACES,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    *STORAGE,
)


def cluster_of_kubeconfig(
    kubeconfig: str, context: str = "", config: str = "", scheduler: str = ""
) -> OtherCluster:
    """Return the cluster of a kubeconfig file as it is now; raises as `listed_objects`."""
    listed = asyncio.run(listed_objects(kubeconfig, context))
    return cluster_of_objects(listed, SystemClock().now(), config, scheduler)


async def listed_objects(kubeconfig: str, context: str = "") -> ListedObjects:
    """Return the objects of the cluster of a kubeconfig file.

    Raises `UsageError` for unusable credentials, with all rights that are missing, and `ApiError` if the
    server does not answer.
    """
    credentials = find_credentials(kubeconfig, context, environment=os.environ)
    connection = ApiConnection(credentials, user_agent=f"yunikorn/{__version__}", connections=CONNECTIONS)
    try:
        return await _listed(ApiServer(connection))
    finally:
        await connection.close()


async def _listed(server: ApiServer) -> ListedObjects:
    refused = [*filter(None, await all_at_once(refused_list(server, resource) for resource in LISTED))]
    if refused:
        raise UsageError("\n".join(("the API server refuses lists that a snapshot needs:", *refused)))
    # Pods come last: nodes that they name are then known, unless these are new.
    found = {one.plural: await server.list(one, limit=PAGE) for one in reversed(LISTED)}
    items = {plural: one.items for plural, one in found.items()}
    return ListedObjects(
        items[NODES.plural],
        items[PODS.plural],
        items[NAMESPACES.plural],
        items[PRIORITY_CLASSES.plural],
        items[RESOURCE_QUOTAS.plural],
        [thing for one in STORAGE for thing in items[one.plural]],
        sum(len(one.unreadable) for one in found.values()),
    )
