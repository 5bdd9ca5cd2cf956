"""Leader election with a Lease: one of several processes schedules, and another takes over when it ends.

The rules are those of Kubernetes' own components: the holder renews its lease every `retry` seconds and stops
after `renew_deadline` seconds without success; others take a lease whose record has not changed for its
duration. A request has half of the renewal deadline, so that one without an answer leaves time for another,
on another connection. Times are those of the event loop, which never jump. Each change names the version of
the record that it replaces, so one of two simultaneous changes fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import NoReturn, TypeVar

import attrs

from yunikorn.clock import Clock
from yunikorn.errors import YunikornError
from yunikorn_kubernetes.api_server.api_resources import LEASES
from yunikorn_kubernetes.api_server.api_times import micro_time
from yunikorn_kubernetes.api_server.back_off import RandomSource
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer
from yunikorn_kubernetes.objects import Json

T = TypeVar("T")
_log = logging.getLogger("yunikorn.kubernetes")

RELEASE_LIMIT = 5.0
"""Seconds for the release of a lease."""


class LeadershipLost(YunikornError):
    """End of a leadership: another process may lead, so this one must stop at once."""


@attrs.frozen
class LeaseTimes:
    """Times of a lease in seconds, of which each must be longer than the next."""

    duration: float = 15.0
    """Time after which others take a lease that is not renewed."""
    renew_deadline: float = 10.0
    """Time without a renewal after which the holder stops."""
    retry: float = 2.0
    """Time between attempts."""

    @property
    def request(self) -> float:
        """Time for one request, of which at least one more can follow within the deadline."""
        return self.renew_deadline / 2

    def __attrs_post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry > 0:
            raise YunikornError(
                f"times of a lease: the duration of {self.duration:g} s must be longer than the deadline of "
                f"renewals of {self.renew_deadline:g} s, and that longer than a retry of {self.retry:g} s"
            )


class LeaderElection:
    """Candidate for one lease; `identity` must be unique to the process.

    Await `acquire`, then await `keep` for as long as the process leads; `release` at the end. The `server`
    should not share its rate limit with other calls.
    """

    def __init__(
        self,
        server: ApiServer,
        namespace: str,
        name: str,
        identity: str,
        *,
        clock: Clock,
        random: RandomSource,
        times: LeaseTimes | None = None,
    ) -> None:
        self._server = server
        self._namespace, self._name = namespace, name
        self._identity = identity
        self._clock = clock
        self._random = random
        self._times = times or LeaseTimes()
        self._record: Json | None = None
        """Lease as last seen or written."""
        self._changed_at = 0.0
        """Time of the loop when `_record` was first seen."""
        self._valid_until = 0.0
        self._problem = ""
        """Last failure that was logged."""

    @property
    def holder(self) -> str:
        """Identity of the holder as last seen; empty if there is none."""
        return str(_spec(self._record).get("holderIdentity") or "")

    @property
    def problem(self) -> str:
        """Failure of the latest attempt to read or write the lease; empty if it succeeded."""
        return self._problem

    @property
    def waiting_for(self) -> str:
        """Reason for which this process does not lead, as far as is known."""
        if self._problem:
            return f"lease {self._namespace}/{self._name}: {self._problem}"
        return f"another replica leads: {self.holder}" if self.holder else "no replica leads yet"

    def holds(self) -> bool:
        """Return True while no other process can have the lease."""
        return asyncio.get_running_loop().time() < self._valid_until

    # -- acquisition -------------------------------------------------------------------------------------

    async def acquire(self) -> None:
        """Wait until this process has the lease, however long the server fails or others hold it."""
        while not await self._try_acquire():
            await asyncio.sleep(self._times.retry * self._random.uniform(1.0, 1.2))
        _log.info("this process (%s) leads", self._identity)

    async def _try_acquire(self) -> bool:
        before = self.holder
        try:
            await self._observe()
            if not self._is_free():
                self._problem = ""
                if self.holder != before:
                    _log.info("%s leads, this process (%s) waits", self.holder, self._identity)
                return False
            await self._write(acquires=True)
        except ApiError as error:
            if not error.is_conflict:
                self._log_problem(error)
            return False
        return True

    async def _observe(self) -> None:
        """Read the lease."""
        record = await self._answer(self._server.find(LEASES, self._namespace, self._name))
        if self._record is None or record is None or _version(record) != _version(self._record):
            self._changed_at = asyncio.get_running_loop().time()
        self._record = record

    def _is_free(self) -> bool:
        """Return True if there is no lease, or it was not renewed for its duration."""
        if self.holder in ("", self._identity):
            return True
        duration = _spec(self._record).get("leaseDurationSeconds")
        seconds = float(duration) if isinstance(duration, int) and duration > 0 else self._times.duration
        return asyncio.get_running_loop().time() >= self._changed_at + seconds

    # -- renewal -----------------------------------------------------------------------------------------

    async def keep(self) -> NoReturn:
        """Renew the lease until that fails. Raises `LeadershipLost`."""
        loop = asyncio.get_running_loop()
        due = loop.time() + self._times.retry
        while True:
            await asyncio.sleep(max(0.0, min(due, self._valid_until) - loop.time()))
            if not self.holds():
                self._lose(f"the lease was not renewed for {self._times.renew_deadline:g} seconds")
            # An attempt without an answer has taken longer than the pause, and is followed at once.
            due = loop.time() + self._times.retry
            try:
                async with asyncio.timeout_at(self._valid_until):
                    await self._renew()
            except TimeoutError:
                self._problem = self._problem or "no answer"
            except ApiError as error:
                self._log_problem(error)

    async def _renew(self) -> None:
        try:
            await self._write(acquires=False)
        except ApiError as error:
            if not (error.is_conflict or error.is_not_found):
                raise
            await self._observe()
            if self.holder not in ("", self._identity):
                self._valid_until = 0.0
                self._lose(f"{self.holder} has taken the lease")
            await self._write(acquires=self.holder == "")

    def _lose(self, why: str) -> NoReturn:
        self._valid_until = 0.0
        raise LeadershipLost(
            f"this process no longer leads: {why}" + (f" ({self._problem})" if self._problem else "")
        )

    async def release(self) -> None:
        """Give the lease back, if this process has it, so that others need not wait; failures are logged."""
        if not self.holds():
            return
        self._valid_until = 0.0
        try:
            async with asyncio.timeout(RELEASE_LIMIT):
                await self._replace(
                    {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._now()}
                )
        except (ApiError, TimeoutError) as error:
            _log.warning("the lease was not given back: %s", str(error) or "no answer")

    # -- writes ------------------------------------------------------------------------------------------

    async def _write(self, *, acquires: bool) -> None:
        """Write this process as the holder; the lease is valid from before the request."""
        asked_at = asyncio.get_running_loop().time()
        now = self._now()
        spec = _spec(self._record)
        fields: Json = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._times.duration)),
            "renewTime": now,
        }
        if acquires:
            fields["acquireTime"] = now
            if self.holder != self._identity:
                fields["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + (
                    self._record is not None
                )
        await self._replace(fields)
        self._changed_at = asked_at
        self._valid_until = asked_at + self._times.renew_deadline
        self._problem = ""

    async def _replace(self, fields: Json) -> None:
        """Replace the record that was last seen, or create it; other fields of the lease remain."""
        if self._record is None:
            body = {"metadata": {"name": self._name, "namespace": self._namespace}, "spec": fields}
            self._record = await self._answer(self._server.create(LEASES, self._namespace, body))
        else:
            body = self._record | {"spec": _spec(self._record) | fields}
            self._record = await self._answer(self._server.replace(LEASES, self._namespace, self._name, body))

    async def _answer(self, call: Awaitable[T]) -> T:
        """Return the answer to a call; raises `ApiError` if there is none in time."""
        limit = self._times.request
        try:
            async with asyncio.timeout(limit):
                return await call
        except TimeoutError:
            problem = f"no answer within {limit:g} seconds"
            raise ApiError(0, "Timeout", problem, maybe_executed=True) from None

    def _now(self) -> str:
        return micro_time(self._clock)

    def _log_problem(self, error: ApiError) -> None:
        """Log a failure, but not the same one again and again."""
        problem = error.message
        if error.is_not_found:
            # A lease that does not exist is created, so it is the namespace that does not exist.
            problem += ": create the namespace, or name that of the scheduler with --namespace"
        if problem != self._problem:
            self._problem = problem
            _log.warning("lease %s/%s: %s", self._namespace, self._name, problem)


def _spec(record: Json | None) -> Json:
    spec = record.get("spec") if record is not None else None
    return spec if isinstance(spec, dict) else {}


def _version(record: Json) -> object:
    return record.get("metadata", {}).get("resourceVersion")
