"""Cells of the picture of racks: the use of a domain as a bar, with colours for the largest gangs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from zlib import crc32

import attrs

from yunikorn_rest.topology_shapes import DomainUse
from yunikorn_rest.web import amount_bars

COLOURS = 8
"""Number of colours of gangs, which the style sheet has."""
NAMED = 3
"""Largest number of gangs that the description of a cell names."""


@attrs.frozen(kw_only=True)
class GangColour:
    """A gang in the legend."""

    application_id: str
    colour: str
    """Class of the colour."""
    members: int
    domains: int
    """Number of domains where members are."""


@attrs.frozen
class CellPart:
    """Part of the bar of a cell."""

    kind: str
    """Class of the colour, or `closed` and `reserved`, which are hatched."""
    x: str
    width: str


@attrs.frozen(kw_only=True)
class RackCell:
    """A domain in the picture."""

    name: str
    """Name among the siblings."""
    use: DomainUse
    label: str
    """Everything that the cell shows, in words."""
    free: str
    """Free amount; empty for a domain without the resource type."""
    parts: Sequence[CellPart]


def colours_of(uses: Iterable[DomainUse], only: str = "") -> tuple[list[GangColour], int]:
    """Return the largest gangs with their colours, and the number of others; `only` this gang if it is given.

    A gang gets the colour of its id if no larger one has it, so that colours change rarely.
    """
    members: dict[str, int] = {}
    domains: dict[str, int] = {}
    for use in uses:
        for one in use.gangs:
            members[one.application_id] = members.get(one.application_id, 0) + one.members
            domains[one.application_id] = domains.get(one.application_id, 0) + 1
    largest = sorted(members, key=lambda app: (-members[app], app))
    chosen = [app for app in largest if only in ("", app)][:COLOURS]
    taken: dict[int, str] = {}
    for app in chosen:
        place = _place(app)
        while place in taken:
            place = (place + 1) % COLOURS
        taken[place] = app
    found = [
        GangColour(application_id=app, colour=f"g-{place + 1}", members=members[app], domains=domains[app])
        for place, app in taken.items()
    ]
    return found, len(largest) - len(chosen)


def _place(app_id: str) -> int:
    return crc32(app_id.encode("utf-8", "replace")) % COLOURS


def cell_of(name: str, use: DomainUse, resource_type: str, colours: Mapping[str, str]) -> RackCell:
    """Return the cell of a domain; `colours` has the colours of gangs by application."""
    size = use.capacity.get(resource_type, 0)
    free = use.free.get(resource_type, 0)
    in_gangs: list[tuple[str, int]] = []
    for one in use.gangs:
        # Gangs without a colour of their own are pale, so that those next to each other differ nevertheless.
        colour = colours.get(one.application_id) or f"g-{_place(one.application_id) + 1} pale"
        in_gangs.append((colour, one.resource.get(resource_type, 0)))
    in_gangs.sort(key=lambda part: (-part[1], part[0]))
    allocated, occupied = use.allocated.get(resource_type, 0), use.occupied.get(resource_type, 0)
    others = allocated - sum(amount for _, amount in in_gangs)
    ordered = [*in_gangs, ("used", others), ("foreign", occupied)]
    closed = "reserved" if use.reserved_nodes else "closed"
    ordered.append((closed, size - allocated - occupied - free))
    return RackCell(
        name=name,
        use=use,
        label=_label(use, resource_type, size, free),
        free=amount_bars.amount(resource_type, free) if size else "",
        parts=_parts(ordered, size),
    )


def _parts(amounts: Sequence[tuple[str, int]], size: int) -> list[CellPart]:
    found: list[CellPart] = []
    at = 0.0
    for kind, amount in amounts:
        width = min(100 * amount / size, 100 - at) if size else 0.0
        if width > 0:
            found.append(CellPart(kind, f"{at:.1f}%", f"{width:.1f}%"))
            at += width
    return found


def _label(use: DomainUse, resource_type: str, size: int, free: int) -> str:
    if size:
        words = f"{amount_bars.amount(resource_type, free)} of {amount_bars.amount(resource_type, size)}"
        found = [f"{resource_type}: {words} free"]
    else:
        found = [f"no {resource_type}"]
    found.append(f"{use.idle_nodes} of {use.total_nodes} nodes idle")
    if use.draining_nodes:
        found.append(f"{use.draining_nodes} draining")
    if use.reserved_for:
        found.append(f"reserved for {use.reserved_for}")
    elif use.reserved_nodes:
        apps = ", ".join(one.application_id for one in use.reservations[:NAMED])
        found.append(f"{use.reserved_nodes} reserved for {apps}")
    for one in use.gangs[:NAMED]:
        found.append(f"{one.application_id} with {one.members}")
    if len(use.gangs) > NAMED:
        found.append(f"{len(use.gangs) - NAMED} more gangs")
    return ", ".join(found)
