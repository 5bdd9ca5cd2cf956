"""Changes through REST: carried out in the core's thread, and written to the audit log before and after."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

import attrs

from yunikorn.errors import UsageError
from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.audit import FAILED, REFUSED, Audit, AuditUnavailable
from yunikorn_rest.config_changes import ConfigChanges
from yunikorn_rest.route_access import Caller
from yunikorn_service.background import begin_shared
from yunikorn_service.fields import always

T = TypeVar("T")


class Steerable(Protocol):
    """Access to a core for changes, such as an `AsyncScheduler`."""

    async def carry_out(self, operation: Callable[[Scheduler], T]) -> T:
        """Run an operation that changes the core, and return its result."""
        ...


@attrs.frozen(kw_only=True)
class Change:
    """Effect of a request."""

    changed: bool = always("false if everything was as requested before")
    before: Any = always("value before")
    after: Any = always("value after")


@attrs.define(eq=False)
class OperatorChanges:
    """Changes of one core."""

    core: Steerable
    audit: Audit
    configuration: ConfigChanges | None = None
    """Owner of the configurations; None if they cannot be changed."""

    async def act(
        self,
        caller: Caller,
        what: str,
        target: Mapping[str, str],
        operation: Callable[[Scheduler], Change],
    ) -> Change:
        """Change the core; raises `RequestRefused`, also for a `UsageError` of the operation."""

        async def in_core() -> Change:
            found = await self.core.carry_out(lambda core: _contained(core, operation))
            if isinstance(found, RequestRefused):
                raise found
            return found

        return await self.change(caller, what, target, in_core)

    async def change(
        self,
        caller: Caller,
        what: str,
        target: Mapping[str, str],
        make: Callable[[], Awaitable[Change]],
    ) -> Change:
        """Make a change between its two entries in the audit log; raises `RequestRefused`.

        A change that has begun ends with its entry, even if the client disconnects.
        """
        # A client that disconnects leaves the outcome to the audit log.
        return await asyncio.shield(begin_shared(self._change(caller, what, target, make)))

    async def _change(
        self,
        caller: Caller,
        what: str,
        target: Mapping[str, str],
        make: Callable[[], Awaitable[Change]],
    ) -> Change:
        action = caller.action(what, target)
        try:
            number = await self.audit.begin(action)
        except AuditUnavailable as error:
            raise RequestRefused(503, str(error)) from error
        try:
            change = await make()
        except RequestRefused as refused:
            outcome = REFUSED if refused.status == 403 else FAILED
            await self.audit.fail(action, number, refused.message, outcome)
            raise
        except BaseException as error:
            await self.audit.fail(action, number, f"{type(error).__name__}: {error}", FAILED)
            raise
        await self.audit.end(action, number, before=change.before, after=change.after, changed=change.changed)
        return change


def _contained(core: Scheduler, operation: Callable[[Scheduler], Change]) -> Change | RequestRefused:
    """Return a refusal instead of raising it: other exceptions than ours stop the core."""
    try:
        return operation(core)
    except RequestRefused as refused:
        return refused
    except UsageError as error:
        return RequestRefused(409, str(error))
