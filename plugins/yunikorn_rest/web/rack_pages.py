"""Pages of racks: a picture of all domains of a level of the topology, and a single domain.

Cells of the picture of racks: the use of a domain as a bar, with colours for the largest gangs.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from zlib import crc32

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.quantities import MEMORY, VCORE, ordered
from yunikorn.scheduling.topology.topology_tree import Topology, TreeDomain
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.endpoints import Call
from yunikorn_rest.topology_reader import KnownDomain, domains_of, read_domain, read_domains
from yunikorn_rest.topology_shapes import DomainUse
from yunikorn_rest.web import amount_bars
from yunikorn_rest.web.amount_bars import bar, pair
from yunikorn_rest.web.frame import PageFrame, Unknown, read_frame_at
from yunikorn_rest.web.node_pages import COLUMNS, NodeRow, bars_of, read_node_rows
from yunikorn_rest.web.page_server import PageContent
from yunikorn_rest.web.paging import part_of, sorted_part, wanted_number

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


CELLS = 1000
"""Number of cells of a page."""
GANGS = 100
"""Largest number of gangs on the page of a domain."""
USUAL = (VCORE, MEMORY, "ephemeral-storage", "pods")
"""Resource types that are not shown by default if there are others, such as accelerators."""
SHOWN = {
    "idle": "wholly idle",
    "room": "with free room",
    "full": "without free room",
    "reserved": "with reserved nodes",
    "draining": "with draining nodes",
}
"""Choices of domains, in words."""


@attrs.frozen
class RackFilter:
    """Domains that the picture shows."""

    level: str
    type: str
    """Resource type that the bars are about."""
    show: str
    text: str
    domain: str
    application: str

    @classmethod
    def of(cls, call: Call, levels: Sequence[str], types: Sequence[str], usual: str) -> RackFilter:
        """Return the filter of a request; unknown values are the default."""
        level, kind, show = call.query("level"), call.query("type"), call.query("show")
        first = next((one for one in types if one not in USUAL and not one.startswith("hugepages-")), VCORE)
        return cls(
            level if level in levels else usual,
            kind if kind in types else first if first in types or not types else types[0],
            show if show in SHOWN else "",
            call.query("q").strip(),
            call.query("domain").strip(),
            call.query("application").strip(),
        )

    @property
    def query(self) -> dict[str, str]:
        """Parameters of an address with the filter."""
        names = {"q": self.text, "domain": self.domain, "application": self.application}
        return {"level": self.level, "type": self.type, "show": self.show, **names}

    @property
    def is_set(self) -> bool:
        """True if the picture does not show all domains of the level."""
        return bool(self.show or self.text or self.domain or self.application)

    def matches(self, one: KnownDomain, inside: set[TreeDomain] | None) -> bool:
        """Return True for a domain that may be shown; `inside` are the domains of the application."""
        return (
            (inside is None or one.domain in inside)
            and self.text.lower() in one.name.lower()
            and (not self.domain or one.is_in(self.domain))
        )

    def kinds_of(self, use: DomainUse) -> list[str]:
        """Return the choices of domains that a domain is among."""
        facts = {
            "idle": use.idle_nodes == use.total_nodes,
            "room": use.free.get(self.type, 0) > 0,
            "full": use.free.get(self.type, 0) <= 0,
            "reserved": use.reserved_nodes > 0,
            "draining": use.draining_nodes > 0,
        }
        return [name for name, holds in facts.items() if holds]


@attrs.frozen(kw_only=True)
class CellGroup:
    """Domains with the same domain above."""

    name: str
    cells: Sequence[RackCell]
    use: str
    """Free amount and size of these domains."""


def usual_level(topology: Topology, nodes: int) -> str:
    """Return the innermost level whose domains have several nodes; the innermost one if there is none."""
    found = ""
    for tree in topology.trees[:1]:
        found = tree.levels[-1]
        for level in reversed(tree.levels):
            if 2 * sum(1 for _ in tree.domains(tree.numbers[level])) <= nodes:
                return level
    return found


@lru_cache(maxsize=4096)  # Racks of different blocks have the same names.
def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a key that orders names with numbers as people do: `r2` before `r10`."""
    return tuple(
        (int(part) if part.isdecimal() and len(part) < 19 else 0, part) for part in re.split(r"(\d+)", name)
    )


Picture = tuple[PageFrame, RackFilter, list[tuple[str, DomainUse]], dict[str, object]]
"""Frame, filter, domains of the page with their names among the siblings, and the rest of the page."""


def _read_picture(scheduler: Scheduler, call: Call) -> Generator[None, None, Picture]:
    """Read the domains of a level; `counts` are for each choice, `outside` are nodes in no domain."""
    frame, at = read_frame_at(scheduler, call.query("partition"))
    topology, partition = at.policies.topology, at.partition
    sizes = partition.cluster.total
    types = [name for name in ordered(sizes) if sizes[name]]
    wanted = RackFilter.of(call, topology.levels, types, usual_level(topology, len(partition.nodes)))
    inside = domains_of(at, wanted.application) if wanted.application else None
    known = (yield from read_domains(topology, wanted.level)) if topology.trees else []
    outside = len(partition.nodes) - sum(len(one.domain.nodes) for one in known)
    chosen, _ = yield from sorted_part(
        known,
        lambda one: wanted.matches(one, inside),
        lambda one: [*map(natural, one.names)],
        1,
        max(1, len(known)),
    )
    counts = dict.fromkeys(SHOWN, 0)
    shown: list[tuple[str, DomainUse]] = []
    total = 0
    for one in chosen:
        use = yield from read_domain(at, one)
        if use.total_nodes:
            total += 1
            kinds = wanted.kinds_of(use)
            for kind in kinds:
                counts[kind] += 1
            if wanted.show in ("", *kinds):
                shown.append((one.domain.name, use))
        yield
    part = part_of(len(shown), wanted_number(call), CELLS)
    found = {
        "levels": topology.levels,
        "types": types,
        "part": part,
        "counts": counts,
        "total": total,
        "outside": max(0, outside),
    }
    return frame, wanted, shown[max(0, part.first - 1) : part.last], found


async def list_view(call: Call) -> PageContent:
    """Return the page with all domains of a level."""
    frame, wanted, domains, found = await call.read(lambda core: _read_picture(core, call))
    colours, others = colours_of((use for _, use in domains), wanted.application)
    by_app = {one.application_id: one.colour for one in colours}
    turns, groups = call.context.turns, dict[str, list[RackCell]]()
    until = turns.begin()
    for name, use in domains:
        groups.setdefault(use.parent, []).append(cell_of(name, use, wanted.type, by_app))
        if turns.is_over(until):
            until = await turns.next()
    return PageContent(
        template="racks.html",
        title="Racks",
        section="/racks",
        frame=frame,
        content={
            "found": found,
            "filter": wanted,
            "groups": [_group(name, cells, wanted.type) for name, cells in groups.items()],
            "colours": colours,
            "others": others,
            "shown": SHOWN,
        },
    )


def _group(name: str, cells: Sequence[RackCell], resource_type: str) -> CellGroup:
    free = sum(one.use.free.get(resource_type, 0) for one in cells)
    size = sum(one.use.capacity.get(resource_type, 0) for one in cells)
    return CellGroup(name=name, cells=cells, use=pair(resource_type, free, size))


# -- a single domain -------------------------------------------------------------------------------------


def _read_rack(
    scheduler: Scheduler, call: Call, level: str, name: str
) -> Generator[None, None, tuple[PageFrame, DomainUse, list[NodeRow], dict[str, Any]]]:
    """Read a domain, a part of its nodes, and the levels inside and above, which may be empty."""
    frame, at = read_frame_at(scheduler, call.query("partition"))
    topology = at.policies.topology
    known = yield from read_domains(topology, level)
    one = next((one for one in known if one.name == name), None)
    if one is None or level not in topology.levels:
        raise _unknown(frame, level, name, known)
    use = yield from read_domain(at, one)
    nodes = list(one.domain.nodes)
    chosen, part = yield from sorted_part(
        nodes, lambda node: True, lambda node: natural(node.id), wanted_number(call)
    )
    levels, above = one.tree.levels, one.above
    found = {
        "inner": levels[one.domain.level + 1] if one.domain.level + 1 < len(levels) else "",
        "outer": "" if above is None else levels[above.level],
        "columns": [each for each in ordered(use.capacity) if use.capacity[each]][:COLUMNS],
        "part": part,
    }
    return frame, use, (yield from read_node_rows(chosen, at)), found


def _unknown(frame: PageFrame, level: str, name: str, known: Sequence[KnownDomain]) -> Unknown:
    names = [one.name for one in known]
    return Unknown(
        f"There is no {level} {name}.",
        frame,
        name,
        names,
        lambda one: frame.url("/rack", level=level, name=one),
    )


async def rack_view(call: Call) -> PageContent:
    """Return the page of one domain."""
    level, name = call.query("level"), call.query("name")
    if not level or not name:
        raise RequestRefused(400, "The address names no domain: /rack?level=LEVEL&name=NAME.")
    frame, use, rows, found = await call.read(lambda core: _read_rack(core, call, level, name))
    gangs = sorted(use.gangs, key=lambda one: (-one.members, one.application_id))
    bars = [
        bar(each, use.allocated.get(each, 0) + use.occupied.get(each, 0), use.capacity.get(each, 0))
        for each in ordered({*use.capacity, *use.allocated})
    ]
    return PageContent(
        template="rack.html",
        title=f"{level} {name}",
        section="/racks",
        frame=frame,
        content={
            "found": found,
            "use": use,
            "bars": bars,
            "gangs": gangs[:GANGS],
            "hidden": max(0, len(gangs) - GANGS),
            "rows": [(row, bars_of(row.node, found["columns"])) for row in rows],
        },
    )
