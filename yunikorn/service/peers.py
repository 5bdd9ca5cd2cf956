"""The clients at the other end of calls: their address, their certificate, and the rmIDs they may use."""

from __future__ import annotations

import attrs
import grpc

from yunikorn.errors import printable
from yunikorn.service.call_refusals import CallRefusal, shown
from yunikorn.service.endings import Context

CN, SAN = "cn", "san"
IDENTITIES = (CN, SAN)
"""Parts of a client's certificate that may name its resource manager: common name, or alternative names."""

_NAMES = {CN: "x509_common_name", SAN: "x509_subject_alternative_name"}
_SUBJECT = "x509_subject"


@attrs.frozen
class Peer:
    """The client that made a call."""

    address: str
    """In gRPC's form, such as `ipv4:HOST:PORT`; `unix:` for all of a socket of the file system."""
    subject: str
    """The subject of its certificate; empty without one."""
    names: tuple[str, ...] = ()
    """The names in its certificate by which a resource manager is known."""

    @classmethod
    def of(cls, context: Context, identity: str = "") -> Peer:
        """The client at the other end of a call, with the names that an `identity` of `IDENTITIES` reads."""
        known = context.auth_context()

        def texts(key: str) -> tuple[str, ...]:
            return tuple(name.decode("utf-8", "replace") for name in known.get(key, ()))

        subject = texts(_SUBJECT) or tuple(f"CN={name}" for name in texts(_NAMES[CN]))
        return cls(context.peer(), ", ".join(subject), texts(_NAMES[identity]) if identity else ())

    def __str__(self) -> str:
        certificate = f"certificate {self.subject}" if self.subject else "no certificate"
        return printable(f"{self.address} ({certificate})")

    def check(self, rm_id: str, identity: str) -> None:
        """Raise `CallRefusal` if names of certificates count and none of this one's is `rm_id`."""
        if identity and rm_id not in self.names:
            what = {CN: "common name", SAN: "subject alternative names"}[identity]
            names = ", ".join(f"'{shown(name)}'" for name in self.names) or "none"
            text = f"rmID: '{shown(rm_id)}' is not in the {what} of the client's certificate ({names})"
            raise CallRefusal(grpc.StatusCode.PERMISSION_DENIED, text)
