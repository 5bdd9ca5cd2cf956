"""Binding of a pod to a node: attempts, and what became of a pod whose binding failed or was not answered."""

from __future__ import annotations

import asyncio
import logging
from enum import Enum

import attrs

from yunikorn_kubernetes.api_server.api_resources import PODS
from yunikorn_kubernetes.api_server.back_off import BackOff, RandomSource
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer
from yunikorn_kubernetes.objects import Pod

_log = logging.getLogger("yunikorn.kubernetes")

FORBIDDEN_TRIES = 3
"""Attempts after a refusal for which the server may have had no time to read all rights."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0)
"""Seconds between attempts, two minutes together; these are the pauses of YuniKorn's own shim."""
SPREAD = 0.1
"""Random part of each pause."""


@attrs.frozen
class PodRef:
    """Identity of a pod."""

    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, pod: Pod) -> PodRef:
        """Return the identity of a pod."""
        return cls(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class BindOutcome(Enum):
    """Results of a binding."""

    BOUND = "bound"
    """The pod is on the node."""
    ELSEWHERE = "elsewhere"
    """The pod is on another node, which the result names."""
    GONE = "gone"
    """The pod does not exist any more, or is being deleted."""
    FAILED = "failed"
    """The pod exists and is on no node."""
    ABANDONED = "abandoned"
    """The process ends; what became of the pod is not known."""


@attrs.frozen
class BindResult:
    """Result of a binding; `node` is the node that the pod is on, if it is on one."""

    outcome: BindOutcome
    node: str = ""
    message: str = ""


class Binding:
    """Job that binds a pod to a node.

    A binding has an outcome only when the server has said where the pod is: after a conflict or an answer
    that was lost, the pod is read, for as long as the server does not answer. So a pod that may be on the
    node is never reported as failed, and its room is not given to others.
    """

    def __init__(self, server: ApiServer, pod: PodRef, node: str, *, random: RandomSource) -> None:
        self.pod = pod
        self.node = node
        self.result: asyncio.Future[BindResult] = asyncio.get_running_loop().create_future()
        self._server = server
        self._random = random
        self._back_off = BackOff(random)
        self._failures = 0
        self._problem = ""
        """Message of the last failure."""
        self._is_unknown = False
        """True while the pod has to be read."""

    async def attempt(self) -> float | None:
        """Bind, or find out what became of the last attempt; see `Job`."""
        if self.result.done():
            return None
        if not self._is_unknown:
            try:
                await self._server.bind(self.pod.namespace, self.pod.name, self.pod.uid, self.node)
            except ApiError as error:
                return await self._failed(error)
            return self._end(BindOutcome.BOUND, self.node)
        return await self._look()

    async def _failed(self, error: ApiError) -> float | None:
        """Decide what follows a failure."""
        self._problem = error.message
        if error.is_not_found or error.is_conflict or error.maybe_executed:
            self._is_unknown = True
            return await self._look(error.retry_after)
        if error.is_forbidden and not self._failures:
            _log.warning("pod %s cannot be bound to %s, to be tried again: %s", self.pod, self.node, error)
        if error.is_temporary or error.is_forbidden:
            return self._next_pause(error.retry_after)
        return self._end(BindOutcome.FAILED)

    async def _look(self, retry_after: float | None = None) -> float | None:
        """Read the pod, to know where it is."""
        try:
            pod = await self._server.get(PODS, self.pod.namespace, self.pod.name)
        except ApiError as error:
            if error.is_not_found:
                return self._end(BindOutcome.GONE)
            if not error.is_temporary:
                _log.warning("pod %s was bound to %s, but cannot be read: %s", self.pod, self.node, error)
            return max(self._back_off.next_delay(), error.retry_after or 0.0)
        self._is_unknown = False
        if pod.metadata.uid != self.pod.uid:
            return self._end(BindOutcome.GONE)
        if pod.spec.node_name:
            is_here = pod.spec.node_name == self.node
            return self._end(BindOutcome.BOUND if is_here else BindOutcome.ELSEWHERE, pod.spec.node_name)
        if pod.metadata.deletion_timestamp is not None:
            return self._end(BindOutcome.GONE)
        return self._next_pause(retry_after)

    def _next_pause(self, retry_after: float | None) -> float | None:
        if self._failures == len(PAUSES):
            return self._end(BindOutcome.FAILED)
        pause = PAUSES[self._failures] * self._random.uniform(1.0 - SPREAD, 1.0 + SPREAD)
        self._failures += 1
        return max(pause, retry_after or 0.0)

    def _end(self, outcome: BindOutcome, node: str = "") -> float | None:
        """Report the outcome; return None, because no attempt follows."""
        if not self.result.done():
            message = "" if outcome is BindOutcome.BOUND else self._problem
            self.result.set_result(BindResult(outcome, node, message))
        return None

    def forget(self) -> None:
        """End the binding of a pod that was deleted."""
        self._problem = "the pod was deleted"
        self._end(BindOutcome.GONE)

    def abandon(self, why: str) -> None:
        """End without an outcome; see `Job`."""
        self._problem = why
        self._end(BindOutcome.ABANDONED)
