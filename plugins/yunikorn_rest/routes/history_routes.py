"""Routes of the history: what ran, who used what, and how it looked over time."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC
from typing import Any

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.queue import Queue
from yunikorn.text import suggest
from yunikorn_history.history_filter import USUAL, HistoryFilter, HistoryScope
from yunikorn_history.history_kinds import (
    FILTERS,
    KINDS,
    LARGEST_PAGE,
    TIMES,
    HistoryKind,
    filter_of,
    position_of,
    token_of,
    usual_bucket,
)
from yunikorn_history.past_records import GROUPS, PastApplication, PastConfig, PastMatch
from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.endpoints import COUNT, Call, Endpoint, Query, Route
from yunikorn_rest.kept_history import KeptHistory
from yunikorn_rest.lists import CONTINUE, continued, unsigned
from yunikorn_rest.operator_credentials import Role
from yunikorn_rest.route_access import Caller

HISTORY = "/ws/v1/history/"
NONE_KEPT = "this scheduler keeps no history: start it with --history FILE, or --history postgresql://..."
LIMIT = Query(
    "limit",
    f"maximum number of records, {USUAL} by default and {LARGEST_PAGE} at most; the header `Link` leads to"
    " the next page",
    str(USUAL),
    COUNT,
)
SEARCHED = Query(
    "q",
    "text of a name, a configuration, a decision or a failure; the key of a task, or six digits of its UUID",
    "etl",
    {"type": "string"},
)
LONGEST_SEARCH = 200
"""Number of characters of a text that are looked for."""
MOST_FOUND = 20
"""Largest number of records of a kind that a search finds."""
TIME = (
    r"^([0-9]{1,4}[smhdw]|now|today|yesterday"
    r"|20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])(T([01][0-9]|2[0-3]):[0-5][0-9]Z?)?)$"
)
"""Usual times, for the OpenAPI document."""
GROUPED = "^({0})(,({0}))*$".format("|".join(GROUPS))
"""Groups of run times."""
STEP = 200
"""Number of queues that are looked at without a pause."""
EXAMPLES = {"since": "7d", "until": "2026-11-27T14:00Z", "queue": "root.a", "preempted": "true"}


def _history(call: Call) -> KeptHistory:
    if call.context.past is None:
        raise RequestRefused(501, NONE_KEPT)
    found: KeptHistory = call.context.past
    return found


def _wanted(call: Call, kind: HistoryKind, now: int) -> HistoryFilter:
    """Return the filter of a request; raises `RequestRefused` with all problems."""
    accepted = (*kind.accepted, LIMIT.name, CONTINUE.name)
    given = {name: text for name, text in call.request.query_params.items() if text}
    filters = {name: text for name, text in given.items() if name in FILTERS}
    found, problems = filter_of(kind, filters, now, UTC)
    for name in given.keys() - FILTERS.keys() - set(accepted):
        problems.append(f"{name[:60]!r} is unknown{suggest(name, accepted)}; known: {', '.join(accepted)}")
    paging: dict[str, Any] = {}
    try:
        if LIMIT.name in given:
            paging["limit"] = min(unsigned(given[LIMIT.name], LIMIT.name), LARGEST_PAGE)
        if CONTINUE.name in given:
            paging["after"] = position_of(kind, given[CONTINUE.name])
    except RequestRefused as refused:
        problems.append(refused.message)
    except ValueError as error:
        problems.append(f"{CONTINUE.name}: {error}")
    if problems:
        raise RequestRefused(400, "; ".join(problems))
    if kind.buckets and not given.get("bucket"):
        paging["bucket"] = usual_bucket(found.since, found.until, now, kind.buckets)
    return attrs.evolve(found, **paging)


async def scope_of(call: Call) -> HistoryScope | None:
    """Return the records that a client may see; None for all.

    Without credentials, reading is open, or the request was refused before.
    """
    who = call.caller.credential
    if who is None or who.role is Role.ADMIN:
        return None
    rules = await call.read(lambda scheduler: _administered(scheduler, call.caller))
    queues = tuple(path for path, is_seen in rules.items() if is_seen)
    return HistoryScope(who.name, queues, tuple(rules.keys() - set(queues)))


def _administered(scheduler: Scheduler, caller: Caller) -> Generator[None, None, dict[str, bool]]:
    """Return the queues that a client may administer, or may not although they may administer the parent.

    Of queues with the same path in several partitions, the client has to administer all, as rows of queues
    have no partition.
    """
    partitions = [at.partition for _, at in scheduler.all_partitions()]
    found: dict[str, bool] = {}
    step = 0
    for partition in partitions:
        left = [(partition.queues.root, False)]
        while left:
            queue, of_parent = left.pop()
            same = (other.queue(queue.path) for other in partitions)
            is_seen = all(_may_administer(caller, other) for other in same if other is not None)
            if is_seen != of_parent:
                found[queue.path] = is_seen
            left += [(child, is_seen) for child in queue.children.values()]
            step += 1
            if step % STEP == 0:
                yield
    yield
    return found


def _may_administer(caller: Caller, queue: Queue) -> bool:
    try:
        caller.check_queue(queue)
    except RequestRefused:
        return False
    return True


def _list(kind: HistoryKind, summary: str) -> Endpoint:
    """Return the endpoint of the records of a kind."""
    queries = []
    for name in kind.accepted:
        values = kind.values(name)
        pattern = TIME if name in TIMES else GROUPED if name == "by" else ""
        limits = {"enum": list(values)} if values else {"pattern": pattern} if pattern else {}
        schema = {"type": "string", **limits}
        queries.append(Query(name, FILTERS[name], EXAMPLES.get(name, ""), schema))

    async def answer(call: Call) -> Answer:
        history = _history(call)
        wanted = attrs.evolve(_wanted(call, kind, history.now()), scope=await scope_of(call))
        page = await history.read(lambda queries: getattr(queries, kind.query)(wanted))
        found = await call.json(page.records)
        if page.following is None:
            return found
        # The usual bucket depends on the time.
        buckets = {"bucket": wanted.bucket} if kind.buckets else {}
        return continued(call, found, token_of(page.following), **buckets)

    shape: Any = kind.shape
    route = Route(HISTORY + kind.path, list[shape], queries=(*queries, LIMIT, CONTINUE), errors=(400, 501))
    return route(answer, summary)


@Route(HISTORY + "applications/{application}", PastApplication, errors=(404, 501))
async def application(call: Call) -> Answer:
    """Latest submission of an application, or the submission with this number."""
    history, scope, text = _history(call), await scope_of(call), call.text("application")
    wanted = [HistoryFilter(application=text, scope=scope, limit=1)]
    if text.isascii() and text.isdigit() and len(text) < 19:
        wanted.append(HistoryFilter(number=int(text), scope=scope, limit=1))
    for one in wanted:
        page = await history.read(lambda queries, one=one: queries.applications(one))  # type: ignore[misc]
        if page.records:
            return await call.json(page.records[0])
    raise RequestRefused(404, "there is no such application in the history")


@Route(HISTORY + "configs/{number}", PastConfig, errors=(404, 501))
async def config(call: Call) -> Answer:
    """One configuration with its text."""
    history, text = _history(call), call.text("number")
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1
    found = await history.read(lambda queries: queries.config(number))
    if found is None:
        raise RequestRefused(404, "there is no such configuration in the history")
    return await call.json(found)


@Route(HISTORY + "search", list[PastMatch], queries=(SEARCHED,), errors=(501,))
async def search(call: Call) -> Answer:
    """Records of all kinds with a text, the best of each kind; none for an empty text."""
    history, text = _history(call), call.query(SEARCHED.name).strip()[:LONGEST_SEARCH]
    if not text:
        return await call.json([])
    from yunikorn_history.page_queries import PageQueries

    scope = await scope_of(call)
    found = await history.read(lambda queries: PageQueries(queries).search(text, MOST_FOUND, scope))
    return await call.json(found)


SUMMARIES = {
    "apps": "Applications that were there in a time, newest first",
    "tasks": "Allocations that were there in a time, newest first",
    "queues": "Use, guarantees, quotas and waits of queues over time, newest first",
    "users": "Use by users over time, newest first",
    "nodes": "Nodes that were there in a time, newest first",
    "node-series": "Use of nodes over time, newest first",
    "partition": "Use of the whole partition over time, newest first",
    "usage": "Exact service of users in leaf queues by hours or days, newest first",
    "configs": "Configurations by the time at which they came into use, newest first, without their texts",
    "audit": "Actions of operators, newest first",
    "faults": "Failures of plugins, by their latest occurrence",
    "runtimes": "Run times of ended tasks in quantiles, by groups, the largest first",
    "runs": "Runs of the scheduler, newest first",
    "gaps": "Times whose events were lost, newest first",
}
ENDPOINTS = (*(_list(KINDS[name], text) for name, text in SUMMARIES.items()), application, config, search)
