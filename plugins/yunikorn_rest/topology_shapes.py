"""JSON objects of the topology: the domains of a partition with their use."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from yunikorn_service.fields import NONE, always, optional


@attrs.frozen(kw_only=True)
class DomainGang:
    """Part of a gang in a domain."""

    application_id: str = always("id of the application", name="applicationID")
    members: int = always("number of its members in the domain, placeholders included")
    resource: Mapping[str, int] = optional("sum of these members", NONE)


@attrs.frozen(kw_only=True)
class DomainReservation:
    """Nodes of a domain that wait for an application."""

    application_id: str = always("id of the application", name="applicationID")
    nodes: int = always("number of nodes that its requests have reserved")


@attrs.frozen(kw_only=True)
class DomainUse:
    """A domain of the topology, such as a rack, with its use."""

    level: str = always("name of the level")
    name: str = always("names of the domain and of those above, joined by `/`")
    parent: str = optional("name of the next domain above", "")
    total_nodes: int = always("number of nodes")
    idle_nodes: int = always("number of open nodes without allocations; open are those that others may use")
    draining_nodes: int = always("number of draining nodes")
    reserved_nodes: int = always("number of nodes with a reservation")
    capacity: Mapping[str, int] = optional("sum of the capacities of the nodes", NONE)
    allocated: Mapping[str, int] = optional("sum of the allocations", NONE)
    occupied: Mapping[str, int] = optional("use by tasks that are not scheduled here", NONE)
    free: Mapping[str, int] = optional("what is available on open nodes: neither draining nor reserved", NONE)
    gangs: tuple[DomainGang, ...] = optional("gangs with members in the domain", ())
    reservations: tuple[DomainReservation, ...] = optional("applications that have reserved nodes", ())
    reserved_for: str = optional(
        "id of the application that the domain is kept for, or that has reserved all its schedulable nodes",
        "",
    )
    nodes: tuple[str, ...] = optional("ids of the nodes; only with `?nodes`", ())
