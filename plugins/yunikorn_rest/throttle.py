"""Limit on failed credentials per address, so that guessing is slow and the audit log stays small."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable

import attrs

from yunikorn.clock import SECOND

BURST = 20
"""Failures of one address that are answered at once."""
PERIOD = 3 * SECOND
"""Time after which an address may fail once more (ns)."""
ADDRESSES = 10_000
"""Maximum number of addresses that are remembered; the one that failed longest ago is forgotten."""
KNOWN = 16
"""Maximum number of credentials per address that are remembered as valid."""


@attrs.define
class _Failures:
    """Failures of one address."""

    count: float
    since: int
    """Time to which the count belongs (ns)."""


class Throttle:
    """Failures of addresses within a short time.

    An address beyond the limit gets no more answers about credentials, right or wrong, except for those that
    were valid from this address before. Guesses thus learn nothing, and clients behind the same address that
    work already are not affected.
    """

    def __init__(self, stopwatch: Callable[[], int]) -> None:
        """Measure time with `stopwatch` (ns)."""
        self._stopwatch = stopwatch
        self._failures: OrderedDict[str, _Failures] = OrderedDict()
        self._valid: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()

    def is_over(self, address: str, name: str = "") -> bool:
        """Return True if the address is beyond the limit, and `name` was not valid from there before."""
        network = network_of(address)
        if name and name in self._valid.get(network, ()):
            return False
        return self._count(network) > BURST - 1

    def fail(self, address: str) -> None:
        """Count a failure."""
        network = network_of(address)
        self._failures[network] = _Failures(min(self._count(network) + 1, BURST), self._stopwatch())
        self._failures.move_to_end(network)
        while len(self._failures) > ADDRESSES:
            self._failures.popitem(last=False)

    def succeed(self, address: str, name: str) -> None:
        """Remember that a credential was valid from this address."""
        network = network_of(address)
        names = self._valid.setdefault(network, OrderedDict())
        names[name] = None
        names.move_to_end(name)
        self._valid.move_to_end(network)
        while len(names) > KNOWN:
            names.popitem(last=False)
        while len(self._valid) > ADDRESSES:
            self._valid.popitem(last=False)

    def _count(self, network: str) -> float:
        found = self._failures.get(network)
        if found is None:
            return 0
        return max(0.0, found.count - (self._stopwatch() - found.since) / PERIOD)


def network_of(address: str) -> str:
    """Return what counts as one address: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False))
