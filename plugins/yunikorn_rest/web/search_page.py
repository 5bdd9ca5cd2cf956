"""Page with everything that has a text: present objects by their names, and records of the history."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Generator, Iterable
from itertools import islice

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.usage_tracker import USER
from yunikorn_history.past_records import PastMatch
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.endpoints import Call
from yunikorn_rest.kept_history import KeptHistory
from yunikorn_rest.web.frame import PageFrame, read_frame
from yunikorn_rest.web.page_server import PageContent
from yunikorn_rest.web.time_phrases import minute

MOST = 20
"""Largest number of results of a kind."""
STEP = 2_000
"""Number of names that are compared without a pause."""
LONGEST = 200
"""Number of characters of a text that are looked for."""
KINDS = {"application": "Applications", "queue": "Queues", "user": "Users", "node": "Nodes"}
"""Kinds of objects in the order of the page, with titles."""
RECORDS = {
    "task": "Tasks",
    "configuration": "Configurations",
    "action": "Decisions of operators",
    "fault": "Failures of plugins",
}
"""Titles of records that only a history has."""


@attrs.frozen
class SearchResult:
    """An object with a name that was looked for."""

    name: str
    url: str
    note: str = ""
    """Partition, or that only the history has it."""


def _matching(names: Iterable[str], text: str) -> Generator[None, None, list[tuple[int, str]]]:
    """Return the best names that contain a text: the same first, then those that begin with it."""
    best: list[tuple[int, str]] = []
    remaining = iter(names)
    while some := list(islice(remaining, STEP)):
        found = [(_rank(name.lower(), text), name) for name in some if text in name.lower()]
        best = heapq.nsmallest(MOST + 1, [*best, *found])
        yield
    return best


def _rank(name: str, text: str) -> int:
    if name == text:
        return 0
    if name.startswith(text) or name.rpartition(".")[2].startswith(text):
        return 1
    return 2


Found = dict[str, list[SearchResult]]


def _read(scheduler: Scheduler, key: str, text: str) -> Generator[None, None, tuple[PageFrame, Found]]:
    """Read the objects of all partitions with matching names."""
    frame, _ = read_frame(scheduler, key)
    ranked: dict[str, list[tuple[int, str, SearchResult]]] = {kind: [] for kind in KINDS}
    partitions = scheduler.all_partitions() if text else ()
    for partition, (_, at) in zip(frame.partitions, partitions, strict=False):
        here, note = frame.at(partition.key), partition.key if len(frame.partitions) > 1 else ""
        known: dict[str, Collection[str]] = {
            "application": [*at.partition.applications, *at.partition.ended],
            "queue": [one.path for one in at.partition.queues],
            "user": list(at.partition.usage.names(USER)),
            "node": list(at.partition.nodes),
        }
        for kind, names in known.items():
            for rank, name in (yield from _matching(names, text)):
                ranked[kind].append((rank, name, SearchResult(name, here.url_of(kind, name), note)))
    by_rank = {kind: sorted(found, key=lambda one: one[:2]) for kind, found in ranked.items()}
    return frame, {kind: [one for *_, one in found] for kind, found in by_rank.items()}


async def _add_past(history: KeptHistory, call: Call, frame: PageFrame, text: str, found: Found) -> None:
    """Add what only the history has."""
    from yunikorn_history.page_queries import PageQueries
    from yunikorn_rest.routes.history_routes import scope_of

    scope = await scope_of(call)
    past = await history.read(lambda queries: PageQueries(queries).search(text, MOST + 1, scope))
    known = {kind: {one.name for one in results} for kind, results in found.items()}
    for one in past:
        if one.kind in RECORDS:
            note = ", ".join(filter(None, (one.text[:LONGEST], "" if one.time is None else minute(one.time))))
            found.setdefault(one.kind, []).append(SearchResult(one.name, _record_url(frame, one), note))
        elif one.name not in known[one.kind]:
            is_run = one.kind == "application"
            url = frame.url("/run", id=one.id) if is_run else frame.url_of(one.kind, one.name)
            found[one.kind].append(SearchResult(one.name, url, "in the history only"))


def _record_url(frame: PageFrame, one: PastMatch) -> str:
    """Return the address of the page of a record; empty without one."""
    if one.kind == "action":
        return frame.url("/audit", user=one.text)
    path = {"task": "/run", "configuration": "/configuration"}.get(one.kind, "")
    return frame.url(path, id=one.id) if path else ""


async def view(call: Call) -> PageContent:
    """Return the page."""
    text, key = call.query("q").strip()[:LONGEST], call.query("partition")
    frame, found = await call.read(lambda core: _read(core, key, text.lower()))
    history, problem = call.context.past, ""
    if text and history is not None:
        try:
            await _add_past(history, call, frame, text, found)
        except RequestRefused as refused:
            problem = refused.message
    return PageContent(
        template="search.html",
        title=f"Search for {text}" if text else "Search",
        section="/search",
        frame=frame,
        live=False,
        content={
            "kinds": KINDS | RECORDS,
            "found": found,
            "searched": text,
            "most": MOST,
            "problem": problem,
            "has_past": history is not None,
        },
    )
