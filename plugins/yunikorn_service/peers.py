"""Clients that make calls: their address, their certificate, and the rmIDs that they may use."""

from __future__ import annotations

import attrs
import grpc

from yunikorn.errors import printable
from yunikorn_service.call_endings import CallRefusal, Context, shown

CN, SAN = "cn", "san"
"""Parts of a client's certificate that can name its resource manager: common name, or alternative names."""

_NAMES = {CN: "x509_common_name", SAN: "x509_subject_alternative_name"}
_SUBJECT = "x509_subject"


@attrs.frozen
class Peer:
    """Client that made a call."""

    address: str
    """Address in gRPC's form, such as `ipv4:HOST:PORT`; `unix:` for every client of a Unix socket."""
    subject: str
    """Subject of the client's certificate; empty without a certificate."""
    names: tuple[str, ...] = ()
    """rmIDs that the client may use, read from its certificate."""

    @classmethod
    def of(cls, context: Context, identity: str = "") -> Peer:
        """Return the client of a call, with the names in the part `identity` of its certificate."""
        known = context.auth_context()

        def texts(key: str) -> tuple[str, ...]:
            return tuple(name.decode("utf-8", "replace") for name in known.get(key, ()))

        subject = texts(_SUBJECT) or tuple(f"CN={name}" for name in texts(_NAMES[CN]))
        return cls(context.peer(), ", ".join(subject), texts(_NAMES[identity]) if identity else ())

    def __str__(self) -> str:
        certificate = f"certificate {self.subject}" if self.subject else "no certificate"
        return printable(f"{self.address} ({certificate})")

    def check(self, rm_id: str, identity: str) -> None:
        """Raise `CallRefusal` if `identity` is set and the certificate does not contain `rm_id`."""
        if identity and rm_id not in self.names:
            what = {CN: "common name", SAN: "subject alternative names"}[identity]
            names = ", ".join(f"'{shown(name)}'" for name in self.names) or "none"
            text = f"rmID: '{shown(rm_id)}' is not in the {what} of the client's certificate ({names})"
            raise CallRefusal(grpc.StatusCode.PERMISSION_DENIED, text)
