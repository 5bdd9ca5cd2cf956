"""Route of the topology: the domains of a partition with their use."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable

from yunikorn.interface.scheduler import Scheduler
from yunikorn.text import suggest
from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.encoding import AnswerLists
from yunikorn_rest.endpoints import Call, Query, Route
from yunikorn_rest.lists import PAGES, Page, listed
from yunikorn_rest.lookup import SIMILAR, find_partition
from yunikorn_rest.routes.partition_routes import PARTITION
from yunikorn_rest.topology_reader import KnownDomain, domains_of, read_domain, read_domains
from yunikorn_rest.topology_shapes import DomainUse
from yunikorn_service.runtime.sliced_reads import Slices

LEVEL = Query("level", "only domains of this level", "rack")
DOMAIN = Query("domain", "only the domain of this name, and those below", "b1/r1")
APPLICATION = Query(
    "application", "only domains where this application has allocations or has reserved nodes"
)
NODES = Query("nodes", "with any value: include the ids of the nodes")


@Route(
    PARTITION + "/topology",
    list[DomainUse],
    queries=(LEVEL, DOMAIN, APPLICATION, NODES, *PAGES),
    errors=(400, 404),
)
async def topology(call: Call) -> Answer:
    """Domains of the topology, such as racks, with their use and the gangs in them."""
    name, page, level = call.text("partition"), Page.of(call), call.query("level")
    wanted, app_id = call.query("domain"), call.query("application")
    with_nodes = NODES.name in call.request.query_params
    if wanted:
        await _refuse_unknown_domain(call, name, wanted)

    def read(scheduler: Scheduler, gathering: AnswerLists) -> Slices[str]:
        at = find_partition(scheduler, name)[1]
        trees = at.policies.topology
        _check_level(level, trees.levels)
        inside = domains_of(at, app_id) if app_id else None

        def is_wanted(one: KnownDomain) -> bool:
            return (not wanted or one.is_in(wanted)) and (inside is None or one.domain in inside)

        known = yield from read_domains(trees, level)
        chosen, last = yield from page.select(known, _id_of, is_wanted)
        for one in chosen:
            part = yield from read_domain(at, one, with_nodes=with_nodes)
            if part.total_nodes:
                weight = 1 + len(part.gangs) + len(part.reservations)
                yield from gathering.put(part, weight=weight)
        return last

    return await listed(call, read)


def _id_of(one: KnownDomain) -> str:
    """Return an id with the order of a tree: a domain before those below, and these before its siblings."""
    return "\0".join((one.tree.levels[0], *one.names))


def _check_level(level: str, known: Iterable[str]) -> None:
    """Raise `RequestRefused` for an unknown level."""
    levels = list(known)
    if level and level not in levels:
        allowed = f"its levels are {', '.join(levels)}" if levels else "it has no topology"
        raise RequestRefused(404, f'The partition has no level "{level[:40]}": {allowed}')


async def _refuse_unknown_domain(call: Call, partition: str, name: str) -> None:
    """Raise `RequestRefused` with the nearest name unless a domain exists."""

    def read(scheduler: Scheduler) -> Generator[None, None, list[str] | None]:
        known = yield from read_domains(find_partition(scheduler, partition)[1].policies.topology)
        names = [one.name for one in known]
        return None if name in names else names[:SIMILAR]

    similar = await call.read(read)
    if similar is not None:
        raise RequestRefused(404, "Domain not found" + await asyncio.to_thread(suggest, name, similar))


ENDPOINTS = (topology,)
