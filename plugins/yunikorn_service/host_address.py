"""Address at which a service listens, as text."""

from __future__ import annotations

import ipaddress

import attrs

from yunikorn.errors import UsageError

UNIX = "unix:"


@attrs.frozen
class HostAddress:
    """Address at which a service listens."""

    target: str
    """Address in the form that gRPC expects."""
    host: str
    """Host name or IP address; empty for a Unix socket."""
    is_local: bool
    """True if only this machine can reach the address."""

    @classmethod
    def parse(cls, text: str) -> HostAddress:
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
