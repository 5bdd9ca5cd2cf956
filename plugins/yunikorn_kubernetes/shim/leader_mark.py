"""Label on the pod of the leader, by which a service finds the leader."""

from __future__ import annotations

import asyncio
import logging

from yunikorn_kubernetes.api_server.api_resources import PODS
from yunikorn_kubernetes.api_server.back_off import BackOff, RandomSource
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer
from yunikorn_kubernetes.names import LEADER

_log = logging.getLogger("yunikorn.kubernetes")

LAST_LIMIT = 2.0
"""Seconds for the removal of the label when the process stops."""


class LeaderMark:
    """Label of the pod of this process, which says whether the process leads."""

    def __init__(self, server: ApiServer, namespace: str, pod: str, *, random: RandomSource) -> None:
        self._server = server
        self._namespace, self._pod = namespace, pod
        self._back_off = BackOff(random)

    async def set(self) -> None:
        """Label the pod, in any number of attempts; a refusal is a warning."""
        await self._write("true")

    async def remove(self) -> bool:
        """Remove the label, which an earlier process of the pod may have left.

        Return False, with a warning, if the server refuses this.
        """
        return await self._write(None)

    async def remove_at_last(self) -> None:
        """Remove the label, unless that takes long: the pod ends, or its next process removes the label."""
        try:
            async with asyncio.timeout(LAST_LIMIT):
                await self._write(None)
        except TimeoutError:
            return

    async def _write(self, value: str | None) -> bool:
        while True:
            try:
                change = {"metadata": {"labels": {LEADER: value}}}
                await self._server.patch(PODS, self._namespace, self._pod, change)
            except ApiError as error:
                if error.is_temporary:
                    await asyncio.sleep(max(self._back_off.next_delay(), error.retry_after or 0.0))
                    continue
                advice = "give it the rights of deploy/kubernetes/scheduler-access.yaml"
                if error.is_not_found:
                    advice = "name the pod of this process with --pod, or POD_NAME"
                _log.warning(
                    "the process cannot set the label %s, by which the service finds the leader: %s; %s",
                    LEADER,
                    error,
                    advice,
                )
                return False
            return True
