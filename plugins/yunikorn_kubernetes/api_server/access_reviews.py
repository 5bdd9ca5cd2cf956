"""Rights at the API server: which of them this process lacks, asked for before the rights are used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any, TypeVar

import attrs

from yunikorn.errors import UsageError
from yunikorn_kubernetes.api_server.api_resources import ACCESS_REVIEWS, ApiResource
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer

T = TypeVar("T")

UNAUTHORIZED, FORBIDDEN = 401, 403
ROLES = "deploy/kubernetes/scheduler-access.yaml"
"""File with the roles that the scheduler needs."""


@attrs.frozen
class Right:
    """Right to a verb, for all objects or for one; an empty namespace means all."""

    resource: ApiResource[Any]
    verb: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        plural = f"{self.resource.plural}/{self.subresource}" if self.subresource else self.resource.plural
        named = f' "{self.name}"' if self.name else ""
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return f'{self.verb} resource "{plural}"{named} in API group "{self.resource.group}" {where}'


async def all_at_once(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Return the results of simultaneous calls; raises the first error, after all have ended."""
    results: list[T] = []
    for found in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(found, BaseException):
            raise found
        results.append(found)
    return results


async def denied(server: ApiServer, rights: Iterable[Right]) -> list[str]:
    """Return a text for each of these rights that this process lacks. Raises `ApiError`."""
    asked = [*rights]
    has = await all_at_once(_has(server, right) for right in asked)
    return [f"{FORBIDDEN} cannot {right}" for right, is_there in zip(asked, has, strict=True) if not is_there]


async def _has(server: ApiServer, right: Right) -> bool:
    """Return False if the server says that it would refuse a call; True also if it cannot be asked."""
    attributes = {
        "verb": right.verb,
        "group": right.resource.group,
        "resource": right.resource.plural,
        "subresource": right.subresource,
        "namespace": right.namespace,
        "name": right.name,
    }
    body = {
        "apiVersion": ACCESS_REVIEWS.api_version,
        "kind": ACCESS_REVIEWS.kind,
        "spec": {"resourceAttributes": attributes},
    }
    try:
        review = await server.create(ACCESS_REVIEWS, "", body)
    except ApiError as error:
        if error.is_temporary:
            raise
        return True
    return bool(review.get("status", {}).get("allowed", True))


async def refused_list(server: ApiServer, resource: ApiResource[Any], namespace: str = "") -> str:
    """Return why the API server does not let this process list a resource; "" if it does.

    Raises `UsageError` for refused credentials, and `ApiError` if the server does not answer.
    """
    try:
        await server.check_list(resource, namespace)
    except ApiError as error:
        return _refusal(error)
    return ""


async def refused_object(server: ApiServer, resource: ApiResource[Any], namespace: str, name: str) -> str:
    """Return why the API server does not let this process read an object; raises as `refused_list`."""
    try:
        await server.get(resource, namespace, name)
    except ApiError as error:
        return "" if error.is_not_found else _refusal(error)
    return ""


def _refusal(error: ApiError) -> str:
    if error.status == UNAUTHORIZED:
        raise UsageError(
            f"the API server does not accept the credentials ({error}): renew the token or the client"
            " certificate, or name another kubeconfig or context"
        ) from error
    if error.status == FORBIDDEN:
        return error.message
    raise error
