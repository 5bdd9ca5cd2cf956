"""Access to the routes: who makes a request, and whether their role suffices.

There are no cookies. Browsers send client certificates and HTTP Basic without being asked, so a page of a
foreign site could make requests in the name of an operator: writes are therefore refused to other origins,
and take no HTTP Basic.
"""

from __future__ import annotations

import base64
import binascii
import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs
from starlette.requests import Request

from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.audit import Action, Audit
from yunikorn_rest.guards import Throttle
from yunikorn_rest.operator_credentials import Credential, OperatorCredentials, Role

if TYPE_CHECKING:
    from yunikorn.model.queue import Queue

CERTIFICATE = "certificate"
"""Key in the state of a request: common name of the client's verified certificate."""
OFF = "changes need credentials: start the scheduler with --rest-credentials FILE (see `yunikorn token`)"
NEEDED = "this needs credentials: start the scheduler with --rest-credentials FILE (see `yunikorn token`)"
UNKNOWN_SITE = "the request is from the page of another site; use the page or the API of this server"
RETRY = 60
"""Seconds after which an address that failed too often may try again."""


class RouteAccess(enum.Enum):
    """Credentials that a route needs."""

    OPEN = "open"
    """None, from anywhere: probes."""
    READ = "read"
    """None where reading is open, else any."""
    KNOWN = "known"
    """Any credentials; the route itself may demand more."""
    OPERATE = "operate"
    """At least the role `operate`."""
    ADMIN = "admin"
    """The role `admin`."""


_ROLES = {RouteAccess.KNOWN: Role.VIEW, RouteAccess.OPERATE: Role.OPERATE, RouteAccess.ADMIN: Role.ADMIN}


@attrs.frozen
class Caller:
    """Client that makes a request."""

    address: str
    credential: Credential | None = None

    @property
    def name(self) -> str:
        """Name of the credential; empty without one."""
        return "" if self.credential is None else self.credential.name

    @property
    def role(self) -> str:
        """Role of the credential; empty without one."""
        return "" if self.credential is None else self.credential.role.value

    def action(self, what: str, target: Mapping[str, str] | None = None) -> Action:
        """Return the action of this client for the audit log."""
        return Action(address=self.address, what=what, target=target or {}, name=self.name, role=self.role)

    def check_queue(self, queue: Queue) -> None:
        """Raise `RequestRefused` unless the client may administer a queue.

        Admin ACLs of the queue and of those above it decide, if there are any; the role otherwise.
        """
        who = self.credential
        if who is None:
            raise RequestRefused(403, OFF)
        if who.role is Role.ADMIN:
            return
        acls = [one for one in queue.chain if one.admin_acl.names_anyone]
        if not acls:
            _check_role(who, Role.OPERATE, f"queue {queue.path} has no adminacl that names them")
        elif not queue.admin_allowed(who.name, who.groups):
            owners = ", ".join(one.path for one in acls)
            raise RequestRefused(
                403,
                f"{who.name} may not administer queue {queue.path}: the role admin is needed, or an entry for"
                f" {who.name} or one of their groups in the adminacl of {owners}",
            )


NOBODY = Caller("")


def _check_role(who: Credential, needed: Role, remark: str = "") -> None:
    if not who.role.includes(needed):
        more = f"; {remark}" if remark else ""
        role = f"the role {who.role.value} of {who.name}"
        text = f"{role} does not suffice: the role {needed.value} is needed{more}"
        raise RequestRefused(403, text)


@attrs.define(eq=False)
class AccessGate:
    """Check of the credentials of all requests."""

    credentials: OperatorCredentials | None = None
    """Credentials in use; None if changes are off."""
    reading_is_open: bool = True
    """True if reading needs no credentials."""
    audit: Audit | None = None
    throttle: Throttle = attrs.field(factory=lambda: Throttle(lambda: 0))

    async def admit(self, request: Request, access: RouteAccess) -> Caller:
        """Return who makes a request; raises `RequestRefused` for a client that may not make it."""
        address = address_of(request)
        if access is RouteAccess.OPEN or (access is RouteAccess.READ and self.credentials is None):
            return Caller(address)
        changes = access is not RouteAccess.READ and request.method != "GET"
        caller = Caller(address)
        try:
            if self.credentials is None:
                raise RequestRefused(403, OFF if changes else NEEDED)
            # A page could make a browser send its certificate, and the server work.
            if (changes or access is RouteAccess.ADMIN) and is_foreign(request):
                raise RequestRefused(403, UNKNOWN_SITE)
            found = self._identify(request, self.credentials, address)
            if found is None:
                if access is RouteAccess.READ and self.reading_is_open:
                    return caller
                if changes:
                    self.throttle.fail(address)
                raise _unknown("credentials are needed", changes)
            caller = Caller(address, found)
            if access in _ROLES:
                _check_role(found, _ROLES[access])
        except RequestRefused as refused:
            if self.audit is not None and (changes or "authorization" in request.headers):
                await self._note(caller, request, refused)
            raise
        return caller

    def _identify(
        self, request: Request, credentials: OperatorCredentials, address: str
    ) -> Credential | None:
        """Return the credential of a request, or None if the request has none; raises `RequestRefused`."""
        given = request.headers.getlist("authorization")
        if not given:
            return credentials.of_certificate(getattr(request.state, CERTIFICATE, "") or "")
        changes = request.method != "GET"
        found = None
        if len(given) == 1:
            found = _credential_of(given[0], credentials, with_basic=not changes)
        if self.throttle.is_over(address, "" if found is None else found.name):
            text = "too many failed attempts from this address"
            raise RequestRefused(429, text, {"retry-after": str(RETRY)})
        if found is None:
            self.throttle.fail(address)
            basic = changes and given[0][:6].lower() == "basic "
            text = "HTTP Basic is for reading only: send Authorization: Bearer TOKEN"
            raise _unknown(text if basic else "the credentials are unknown", changes)
        self.throttle.succeed(address, found.name)
        return found

    async def _note(self, caller: Caller, request: Request, refused: RequestRefused) -> None:
        if refused.status == 429 or self.audit is None:
            return
        if caller.credential is None and self.throttle.is_over(caller.address):
            return  # a flood of attempts must not fill the log
        action = caller.action(f"{request.method} {request.url.path}")
        await self.audit.refuse(action, refused.message)


def _unknown(message: str, changes: bool) -> RequestRefused:
    """Return the refusal of unknown credentials; browsers ask for them in answers to GET requests."""
    bearer = 'Bearer realm="yunikorn"'
    challenge = bearer if changes else f'Basic realm="yunikorn", charset="UTF-8", {bearer}'
    return RequestRefused(401, message, {"www-authenticate": challenge})


def _credential_of(header: str, credentials: OperatorCredentials, *, with_basic: bool) -> Credential | None:
    scheme, _, value = header.partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return credentials.of_token(value)
    if scheme.lower() != "basic" or not with_basic:
        return None
    try:
        name, _, token = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    found = credentials.of_token(token)
    return found if found is not None and found.name == name else None


def address_of(request: Request) -> str:
    """Return the address of the client; empty if it is unknown."""
    return request.client.host if request.client is not None else ""


def is_foreign(request: Request) -> bool:
    """Return True if a browser made the request for a page of another site."""
    if request.headers.get("sec-fetch-site", "none").lower() not in ("same-origin", "none"):
        return True
    origin = request.headers.get("origin")
    own = f"{request.url.scheme}://{request.headers.get('host', '')}"
    return origin is not None and origin.lower() != own.lower()
