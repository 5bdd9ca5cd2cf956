"""The connections of a server, bounded in number: beyond the bound, a new one ends an old one.

Each connection takes a file descriptor, and a server without any left accepts none, probes included. So the
new connection is accepted, and one of the address with most connections ends, an idle one if there is any.
"""

from __future__ import annotations

from typing import Protocol

from yunikorn_rest.throttle import network_of


class HeldConnection(Protocol):
    """Connection in a table."""

    @property
    def is_idle(self) -> bool:
        """True while no request is in progress."""
        ...

    def abort(self) -> None:
        """End the connection at once."""
        ...


class ConnectionTable:
    """Connections by the address of their client, oldest first."""

    def __init__(self, most: int) -> None:
        """Create an empty table for at most so many connections."""
        self._most = most
        self._size = 0
        self._by_address: dict[str, dict[HeldConnection, None]] = {}

    def add(self, connection: HeldConnection, address: str) -> None:
        """Add a connection, and end another one if there are too many."""
        if self._size >= self._most:
            crowded = max(self._by_address, key=lambda each: len(self._by_address[each]))
            of_address = self._by_address[crowded]
            ended = next((one for one in of_address if one.is_idle), next(iter(of_address)))
            self._remove(ended, crowded)
            ended.abort()
        self._by_address.setdefault(network_of(address), {})[connection] = None
        self._size += 1

    def remove(self, connection: HeldConnection, address: str) -> None:
        """Remove a connection that has ended."""
        self._remove(connection, network_of(address))

    def _remove(self, connection: HeldConnection, network: str) -> None:
        found = self._by_address.get(network)
        if found is None or connection not in found:
            return
        del found[connection]
        self._size -= 1
        if not found:
            del self._by_address[network]
