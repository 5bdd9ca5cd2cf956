"""Parsing, checking and binding of the address at which a service listens."""

from __future__ import annotations

import ipaddress

import attrs
import grpc.aio

from yunikorn.errors import UsageError
from yunikorn.service.certificates import ServerCertificates
from yunikorn.service.settings import Settings
from yunikorn.service.unix_socket import SocketLock

UNIX = "unix:"


@attrs.frozen
class Address:
    """Address at which a service listens."""

    target: str
    """Address in the form that gRPC expects."""
    host: str
    """Host name or IP address; empty for a Unix socket."""
    is_local: bool
    """True if only this machine can reach the address."""

    @classmethod
    def parse(cls, text: str) -> Address:
        """Parse `HOST:PORT`, `[IPv6]:PORT`, `:PORT` (all interfaces) or `unix:PATH`; raises `UsageError`."""
        if text.startswith(UNIX):
            if text == UNIX:
                raise UsageError("unix: needs the path of a socket after it, such as unix:/run/yunikorn.sock")
            return cls(text, "", True)
        host, colon, port = text.rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise UsageError(
                f"'{text}' is not an address: give HOST:PORT, such as 127.0.0.1:3333, or unix:PATH"
            )
        if ":" in bare and not host.startswith("["):
            raise UsageError(f"'{text}' is not an address: put brackets around an IPv6 address, [::1]:3333")
        host = bare or "0.0.0.0"
        shown = f"[{host}]" if ":" in host else host
        return cls(f"{shown}:{port}", host, _is_local(host))

    def at_port(self, port: int) -> str:
        """Return the address with the port that was bound."""
        return self.target if not self.host else f"{self.target.rpartition(':')[0]}:{port}"


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a host name may resolve to another machine


def socket_lock(settings: Settings) -> SocketLock | None:
    """Return the lock of a Unix socket, or None for other addresses; raises `UsageError`."""
    address = Address.parse(settings.address)
    return None if address.host else SocketLock(address.target.removeprefix(UNIX))


def bind(server: grpc.aio.Server, settings: Settings, certificates: ServerCertificates | None) -> str:
    """Bind a server to the address of the settings; returns the address with the bound port.

    Raises `UsageError` if the address is taken, or if other machines could reach the server without TLS and
    the settings do not allow that.
    """
    address = Address.parse(settings.address)
    if settings.tls is None and not address.is_local and not settings.insecure:
        raise UsageError(
            f"{address.target} can be reached by other machines, without encryption and authentication:"
            " give --tls-cert and --tls-key (and --tls-client-ca), listen on 127.0.0.1, or give"
            " --insecure-bind if this is intended"
        )
    try:
        if certificates is None:
            port = server.add_insecure_port(address.target)
        else:
            port = server.add_secure_port(address.target, certificates.credentials())
    except RuntimeError as error:
        raise _unbound(address, certificates) from error
    if not port:
        raise _unbound(address, certificates)
    return address.at_port(port)


def _unbound(address: Address, certificates: ServerCertificates | None) -> UsageError:
    what = "the address is in use, or is not an address of this machine"
    if certificates is not None:
        # gRPC raises the same error for all of these causes.
        what += ", or gRPC refuses the certificates (GRPC_VERBOSITY=ERROR shows why)"
    return UsageError(f"cannot listen at {address.target}: {what}. Choose another with --grpc")
