"""Pages of racks: a picture of all domains of a level of the topology, and a single domain."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from functools import lru_cache

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.quantities import MEMORY, VCORE, ordered
from yunikorn.scheduling.topology.topology_tree import Topology, TreeDomain
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.endpoints import Call
from yunikorn_rest.topology_reader import KnownDomain, domains_of, read_domain, read_domains
from yunikorn_rest.topology_shapes import DomainUse
from yunikorn_rest.web.amount_bars import bar, pair
from yunikorn_rest.web.frame import PageFrame, Unknown, read_frame_at
from yunikorn_rest.web.node_pages import COLUMNS, NodeRow, bars_of, read_node_rows
from yunikorn_rest.web.page_server import PageContent
from yunikorn_rest.web.paging import PagePosition, part_of, sorted_part, wanted_number
from yunikorn_rest.web.rack_cells import RackCell, cell_of, colours_of

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
class RackPicture:
    """Domains of a level."""

    frame: PageFrame
    levels: Sequence[str]
    types: Sequence[str]
    filter: RackFilter
    domains: Sequence[tuple[str, DomainUse]]
    """Domains of the page, each with its name among the siblings."""
    part: PagePosition
    counts: Mapping[str, int]
    """Number of domains of each choice."""
    total: int
    """Number of domains of all choices."""
    outside: int
    """Number of nodes that are in no domain of the level."""


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


def _read_picture(scheduler: Scheduler, call: Call) -> Generator[None, None, RackPicture]:
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
    return RackPicture(
        frame=frame,
        levels=topology.levels,
        types=types,
        filter=wanted,
        domains=shown[max(0, part.first - 1) : part.last],
        part=part,
        counts=counts,
        total=total,
        outside=max(0, outside),
    )


async def list_view(call: Call) -> PageContent:
    """Return the page with all domains of a level."""
    found = await call.read(lambda core: _read_picture(core, call))
    wanted = found.filter
    colours, others = colours_of((use for _, use in found.domains), wanted.application)
    by_app = {one.application_id: one.colour for one in colours}
    turns, groups = call.context.turns, dict[str, list[RackCell]]()
    until = turns.begin()
    for name, use in found.domains:
        groups.setdefault(use.parent, []).append(cell_of(name, use, wanted.type, by_app))
        if turns.is_over(until):
            until = await turns.next()
    return PageContent(
        template="racks.html",
        title="Racks",
        section="/racks",
        frame=found.frame,
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


@attrs.frozen(kw_only=True)
class OneDomain:
    """A domain with a part of its nodes."""

    frame: PageFrame
    use: DomainUse
    inner: str
    """Next level inside; empty for the innermost."""
    outer: str
    """Level of the domain above; empty without one."""
    columns: Sequence[str]
    rows: Sequence[NodeRow]
    part: PagePosition


def _read_rack(scheduler: Scheduler, call: Call, level: str, name: str) -> Generator[None, None, OneDomain]:
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
    return OneDomain(
        frame=frame,
        use=use,
        inner=levels[one.domain.level + 1] if one.domain.level + 1 < len(levels) else "",
        outer="" if above is None else levels[above.level],
        columns=[each for each in ordered(use.capacity) if use.capacity[each]][:COLUMNS],
        rows=(yield from read_node_rows(chosen, at)),
        part=part,
    )


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
    found = await call.read(lambda core: _read_rack(core, call, level, name))
    use = found.use
    gangs = sorted(use.gangs, key=lambda one: (-one.members, one.application_id))
    bars = [
        bar(each, use.allocated.get(each, 0) + use.occupied.get(each, 0), use.capacity.get(each, 0))
        for each in ordered({*use.capacity, *use.allocated})
    ]
    return PageContent(
        template="rack.html",
        title=f"{level} {name}",
        section="/racks",
        frame=found.frame,
        content={
            "found": found,
            "use": use,
            "bars": bars,
            "gangs": gangs[:GANGS],
            "hidden": max(0, len(gangs) - GANGS),
            "rows": [(row, bars_of(row.node, found.columns)) for row in found.rows],
        },
    )
