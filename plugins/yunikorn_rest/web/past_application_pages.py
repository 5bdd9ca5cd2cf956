"""Pages of past applications: a list with filters, and one application from its submission to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from yunikorn.clock import MILLISECOND
from yunikorn.quantities import ordered
from yunikorn.states import APPLICATION
from yunikorn_history.history_filter import HistoryFilter
from yunikorn_history.past_records import PastApplication, PastTask
from yunikorn_history.queries import HistoryQueries
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.endpoints import Call
from yunikorn_rest.routes.history_routes import scope_of
from yunikorn_rest.web import amount_bars
from yunikorn_rest.web.application_page import Segment, Span
from yunikorn_rest.web.frame import PageFrame
from yunikorn_rest.web.page_server import PageContent
from yunikorn_rest.web.past_access import page_of_records, past_of, wanted_id
from yunikorn_rest.web.time_windows import DAY, HOUR, parsed

RUNS = 8
"""Number of other runs on the page of an application."""
FIELDS = ("q", "user", "queue", "state", "since", "until")
"""Parameters that filter the list."""


async def list_view(call: Call) -> PageContent:
    """Return the page with past applications, latest submission first."""
    asked = {name: call.query(name).strip() for name in FIELDS}
    until = parsed(asked["until"])
    if until is not None and len(asked["until"]) == len("2026-01-31"):
        until += DAY  # the day itself is included
    wanted = HistoryFilter(
        application=asked["q"],
        user=asked["user"],
        queue=asked["queue"].lower(),
        state=asked["state"],
        since=parsed(asked["since"]),
        until=until,
        scope=await scope_of(call),
    )
    return await page_of_records(
        call,
        "past-applications.html",
        "Past applications",
        HistoryQueries.applications,
        wanted,
        lambda rows: {"rows": rows, "asked": asked, "states": APPLICATION.states},
    )


async def run_view(call: Call) -> PageContent:
    """Return the page of one past application, by its number in the history."""
    number = wanted_id(call, "/run")
    found = await _run(call, HistoryFilter(number=number))
    if found is None:
        raise RequestRefused(404, f"There is no run {number} that you may see.")
    return found


async def latest_run(call: Call, _: PageFrame) -> PageContent | None:
    """Return the page of the latest run of an application that the core has forgotten; None without any."""
    return await _run(call, HistoryFilter(application=call.query("id")))


async def _runs(call: Call, wanted: HistoryFilter, limit: int) -> tuple[PastApplication, ...]:
    wanted = attrs.evolve(wanted, limit=limit, scope=await scope_of(call))
    return (await past_of(call).read(lambda queries: queries.applications(wanted))).records


async def earlier_runs(call: Call, app_id: str, number: int = 0) -> list[PastApplication]:
    """Return the latest ended runs of an application and of those with the same template, but for one."""
    same = await _runs(call, HistoryFilter(application=app_id), RUNS + 2)
    alike = HistoryFilter(template=same[0].template if same else "")
    others = await _runs(call, alike, RUNS + 2) if alike.template else ()
    found = {one.id: one for one in (*same, *others) if one.ended is not None and one.id != number}
    return sorted(found.values(), key=lambda one: -one.submitted)[:RUNS]


async def _run(call: Call, wanted: HistoryFilter) -> PageContent | None:
    found = await _runs(call, wanted, 1)
    if not found:
        return None
    app, runs = found[0], await earlier_runs(call, found[0].application_id, found[0].id)

    def content(tasks: Sequence[PastTask]) -> dict[str, object]:
        times = [
            app.submitted,
            *(one.time for one in app.states),
            *(one.ended or one.placed for one in tasks),
        ]
        end = max(times) if app.ended is None else app.ended
        span = Span(app.submitted * MILLISECOND, max(end, app.submitted) * MILLISECOND)
        return {
            "app": app,
            "span": span,
            "segments": _segments(app, span),
            "is_over": app.ended is not None,
            "causes": _causes(app.waits),
            "tasks": [_task_row(one, span) for one in tasks],
            "service": _service(app),
            "runs": runs,
        }

    return await page_of_records(
        call,
        "past-application.html",
        app.application_id,
        HistoryQueries.tasks,
        HistoryFilter(number=app.id),
        content,
    )


def _segments(app: PastApplication, span: Span) -> list[Segment]:
    begins = [one.time * MILLISECOND for one in app.states]
    return [
        span.segment(one.state, begin, max(end, begin), is_last=one is app.states[-1])
        for one, begin, end in zip(app.states, begins, [*begins[1:], span.end], strict=True)
    ]


def _causes(waits: Mapping[str, int]) -> list[tuple[str, int, str]]:
    """Return the causes of waits, longest first, with durations (ns) and widths of bars."""
    longest = max(waits.values(), default=0)
    found = sorted(waits.items(), key=lambda one: -one[1])
    return [(cause, time * MILLISECOND, f"{100 * time / max(1, longest):.1f}%") for cause, time in found]


def _task_row(task: PastTask, span: Span) -> tuple[PastTask, Segment, Segment]:
    """Return a task with its stretches of waiting and of running."""
    placed = task.placed * MILLISECOND
    ended = span.end if task.ended is None else task.ended * MILLISECOND
    waiting = span.segment("waiting", task.requested * MILLISECOND, placed)
    return task, waiting, span.segment("running", placed, ended)


def _service(app: PastApplication) -> list[tuple[str, list[str]]]:
    """Return the rows of the table of service: resource types, and texts for tasks of three kinds."""
    kinds = (app.service, app.lost_service, app.placeholder_service)
    names = ordered({name for one in kinds for name in one})
    return [(name, [service_text(name, one.get(name, 0)) for one in kinds]) for name in names]


def service_text(name: str, service: int) -> str:
    """Return a service (amount x ms) in hours: `12.5 vcores × h`."""
    hours = service / HOUR
    factor, unit = amount_bars.unit_of(name, max(1, round(hours)))
    value = hours / factor
    text = "< 0.01" if 0 < value < 0.01 else amount_bars.number(value)
    return f"{text}\u00a0{unit} × h" if unit else f"{text} × h"
