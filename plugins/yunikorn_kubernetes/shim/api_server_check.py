"""First contact of a process with the API server, which may be away, or may have started a moment ago."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from yunikorn.errors import UsageError
from yunikorn_kubernetes.api_server.access_reviews import (
    FORBIDDEN,
    ROLES,
    UNAUTHORIZED,
    Right,
    denied,
    refused_object,
)
from yunikorn_kubernetes.api_server.api_resources import LEASES, ApiResource
from yunikorn_kubernetes.api_server.back_off import BackOff, RandomSource
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer
from yunikorn_kubernetes.shim.rights import check_rights

_log = logging.getLogger("yunikorn.kubernetes")

T = TypeVar("T")

PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds between checks of the rights while the API server is not ready."""


async def is_served(server: ApiServer, resource: ApiResource[Any]) -> bool:
    """Return True if a server has a resource that others lack, and this process may list it.

    Raises `ApiError` if the server does not answer.
    """
    try:
        await server.check_list(resource)
    except ApiError as error:
        if not (error.is_not_found or error.is_forbidden):
            raise
        if error.is_forbidden:
            _log.warning("%s are not read: %s; see %s", resource.plural, error, ROLES)
        return False
    return True


async def are_served(
    server: ApiServer, resources: Sequence[ApiResource[Any]], rights: Sequence[Right]
) -> bool:
    """Return True if a server has all of these resources, and this process all rights; see `is_served`."""
    for resource in resources:
        if not await is_served(server, resource):
            return False
    missing = await denied(server, rights)
    if missing:
        _log.warning("%s are not used: %s; see %s", resources[-1].plural, "; ".join(missing), ROLES)
    return not missing


class FirstContact:
    """Waits for an API server; `note` is called with the reason for each wait."""

    def __init__(
        self, server: ApiServer, random: RandomSource, note: Callable[[str], object] = lambda _: None
    ) -> None:
        self._server, self._random, self._note = server, random, note

    async def wait(
        self, lists: Sequence[tuple[ApiResource[Any], str]], lease: tuple[str, str], election: bool | None
    ) -> bool:
        """Wait for access; return True if this process has to get the lease before it schedules.

        Without the right to `lease`, a namespace and a name, a process fails if `election` is True, and needs
        none if that is None. `lists` are those of `check_rights`. Raises `UsageError` with all that is
        refused.

        A server that has just started refuses everything until it has read all rights. So a refusal counts if
        the server was ready before, or repeats the refusal for a while.
        """
        server, pauses, was_ready = self._server, [*PAUSES], False
        needed = lease if election else None
        while True:
            refusal, missing, no_lease = None, list[str](), ""
            try:
                missing = await self.answered(lambda: check_rights(server, lists, needed))
                if election is None:
                    no_lease = await self.answered(lambda: refused_object(server, LEASES, *lease))
            except UsageError as error:
                refusal = error
            if was_ready or not pauses or not (refusal or missing or no_lease):
                break
            was_ready = await self.answered(self._is_ready)
            if not was_ready:
                self._note("the API server is not ready, and refuses access")
                await asyncio.sleep(pauses.pop(0))
        if refusal is not None:
            raise refusal
        if missing:
            _log.warning("not all reports reach users: %s; see %s", "; ".join(missing), ROLES)
        if no_lease:
            _log.warning(
                "no leader election: the API server refuses the lease %s/%s. Run one replica only, or give"
                " the rights to leases in %s",
                *lease,
                ROLES,
            )
        return election is not False and not no_lease

    async def _is_ready(self) -> bool:
        """Return True if the server has read all rights, or refuses the credentials."""
        try:
            return await self._server.is_ready()
        except ApiError as error:
            if error.status != UNAUTHORIZED:
                raise
            return True

    async def answered(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a call, which is repeated while the server fails.

        Raises `ApiError` if the server refuses the call.
        """
        back_off = BackOff(self._random)
        while True:
            try:
                return await call()
            except ApiError as error:
                if error.status in (UNAUTHORIZED, FORBIDDEN):
                    raise
                self._note(f"the API server does not answer: {error}")
                delay = back_off.next_delay()
                _log.warning("the API server does not answer, next attempt in %.0f s: %s", delay, error)
                await asyncio.sleep(delay)
