"""Predicate `node-ports`: no two pods with the same host port on one node.

Ports are compared with protocol and address. The address 0.0.0.0, which is also the default, conflicts with
every address. Rules: Kubernetes API reference, `hostPort` and `hostIP` of a container port.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from functools import lru_cache
from typing import NamedTuple

from yunikorn.api import Ask, Node, Predicate, Task, hookimpl
from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence
from yunikorn_kubernetes.predicates.tag_reading import (
    TEXTS,
    UnreadableText,
    entries_of,
    invalid_constraints,
    load,
    section,
)

ANY_ADDRESS = "0.0.0.0"
TCP = "TCP"
LARGEST = 65_535


class HostPort(NamedTuple):
    """Port of the node that a pod uses."""

    protocol: str
    port: int
    address: str

    def conflicting(self, addresses: Collection[str]) -> Collection[str]:
        """Return those of the addresses on which the same port excludes this one."""
        if self.address == ANY_ADDRESS:
            return addresses
        return [address for address in (self.address, ANY_ADDRESS) if address in addresses]

    def __str__(self) -> str:
        where = "" if self.address == ANY_ADDRESS else f" of {self.address}"
        return f"{self.port}/{self.protocol}{where}"


NONE: frozenset[HostPort] = frozenset()


@lru_cache(maxsize=TEXTS)
def read_ports(text: str) -> frozenset[HostPort] | str:
    """Return the host ports of a pod, from a JSON list of [address, protocol, port], or an error text."""
    found = set()
    try:
        for entry in entries_of(load(text), names.HOST_PORTS):
            match entry:
                case [str() as address, str() as protocol, int() as port] if port <= LARGEST:
                    if port > 0:
                        found.add(HostPort(protocol or TCP, port, address or ANY_ADDRESS))
                case _:
                    raise UnreadableText(f"{str(entry)[:60]} is not [address, protocol, port]")
    except UnreadableText as error:
        return invalid_constraints("host ports", str(error))
    return frozenset(found)


def ports_of(task: Task) -> frozenset[HostPort] | str:
    """Return the host ports of a pod, or an error text."""
    text = section(task, names.HOST_PORTS)
    return read_ports(text) if text else NONE


class NodePorts(Predicate):
    """Only nodes on which no pod uses a host port of the pod."""

    name = "node-ports"
    counts_foreign = True

    def __init__(self) -> None:
        self._used: dict[str, dict[tuple[str, int], dict[str, int]]] = {}
        """Number of pods by node, by protocol and port, and by address."""

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if all host ports of the pod are free on the node."""
        wanted = ports_of(ask)
        if isinstance(wanted, str):
            return wanted
        used = self._used.get(node.id) if wanted else None
        if not used:
            return None
        for one in sorted(wanted):
            addresses = used.get(one[:2])
            if addresses and (taken := one.conflicting(addresses)):
                return RefusalSentence.PORTS.because(
                    f"a pod on the node uses the host port {one.port}/{one.protocol} of {min(taken)}"
                )
        return None

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the host ports, or the error text."""
        return ports_of(ask) or None

    def domain(self, node: Node) -> Hashable:
        """Return the node."""
        return node.id

    def subjects(self, task: Task) -> Iterable[Hashable]:
        """Return protocols and ports without the addresses, of which one stands for all."""
        ports = ports_of(task)
        return () if isinstance(ports, str) else {one[:2] for one in ports}

    def wanted(self, ask: Ask) -> str | None:
        """Return the host ports as the requirement."""
        ports = ports_of(ask)
        if isinstance(ports, str) or not ports:
            return None
        return f"free host ports {', '.join(map(str, sorted(ports)))}"

    # -- books --------------------------------------------------------------------------------------

    def placed(self, task: Task, node: Node) -> None:
        """Count the host ports of a pod."""
        ports = ports_of(task)
        for one in () if isinstance(ports, str) else ports:
            addresses = self._used.setdefault(node.id, {}).setdefault(one[:2], {})
            addresses[one.address] = addresses.get(one.address, 0) + 1

    def released(self, task: Task, node: Node) -> None:
        """Count the host ports of a pod no more."""
        ports = ports_of(task)
        for one in () if isinstance(ports, str) else ports:
            used = self._used[node.id]
            addresses = used[one[:2]]
            addresses[one.address] -= 1
            if not addresses[one.address]:
                del addresses[one.address]
                if not addresses:
                    del used[one[:2]]
                    if not used:
                        del self._used[node.id]


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [NodePorts]
