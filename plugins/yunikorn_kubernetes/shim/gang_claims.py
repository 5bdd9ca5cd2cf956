"""Members of a gang that were placed together: none is bound before the claims of all have their devices."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from yunikorn_kubernetes.resource_claims.claim_binder import ClaimBindError
from yunikorn_kubernetes.shim.tasks import Task


class GangClaims:
    """Claims of the members of one gang."""

    def __init__(self, members: Iterable[Task]) -> None:
        """Wait for these members."""
        self._waiting = {one.uid for one in members}
        self._decided = asyncio.Event()
        self._failed = ""

    def fail(self, member: Task) -> None:
        """Note that a member does not get its devices, or is not needed any more."""
        self._failed = self._failed or member.name
        self._decided.set()

    async def wait(self, member: Task) -> None:
        """Wait until all members have their devices. Raises `ClaimBindError` if one does not get them."""
        self._waiting.discard(member.uid)
        if not self._waiting:
            self._decided.set()
        await self._decided.wait()
        if self._failed:
            raise ClaimBindError(f"pod {self._failed} of its gang does not get its devices")
