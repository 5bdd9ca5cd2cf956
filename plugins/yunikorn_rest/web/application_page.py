"""Page of one application: its course, its tasks, and why it waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from typing import Any

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.allocation import Allocation, TerminationType
from yunikorn.model.application import Application
from yunikorn.states import FINAL_STATES
from yunikorn_rest import shapes
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.application_reader import in_steps, read_allocation, read_summary
from yunikorn_rest.endpoints import Call
from yunikorn_rest.routes.explanation_routes import read_awaited, read_explanation
from yunikorn_rest.web.application_list_page import count_waiting
from yunikorn_rest.web.frame import PageFrame, read_frame_at, unknown_object
from yunikorn_rest.web.page_server import PageContent
from yunikorn_rest.web.paging import part_of, wanted_number

GROUPS = 25
"""Largest number of groups of waiting requests that are explained."""
STEP = 500
"""Number of allocations that are counted without a pause."""


TASKS = {
    "running": "running",
    "placeholder": "placeholders",
    "held": "held by a permit policy",
    "preempted": "being preempted",
    "waiting": "waiting",
}
"""States of tasks by their class on the page, in words."""


@attrs.frozen(kw_only=True)
class Segment:
    """Stretch of a timeline; position and width in percent."""

    name: str
    begin: int
    """Time (ns)."""
    end: int
    x: str
    width: str
    is_last: bool = False


@attrs.frozen(kw_only=True)
class TaskRow:
    """A task with its stretches of waiting and of running."""

    allocation: shapes.Allocation
    waiting: Segment
    running: Segment


Found = tuple[PageFrame, shapes.Application | None, dict[str, Any]]
"""Frame, application (None while a policy decides about its acceptance), and the rest of the page."""


def _read_page(scheduler: Scheduler, key: str, app_id: str, number: int) -> Generator[None, None, Found]:
    """Read an application, whether it has ended or not."""
    frame, at = read_frame_at(scheduler, key)
    if app_id in at.submitted:
        return frame, None, {"explanation": read_awaited(at, app_id)}
    app = at.partition.applications.get(app_id) or at.partition.ended.get(app_id)
    if app is None:
        known = [*at.partition.applications, *at.partition.ended]
        more = " Ended applications are forgotten after some time."
        raise unknown_object(
            scheduler,
            frame,
            "application",
            app_id,
            known,
            lambda other: app_id in other.applications or app_id in other.ended,
            more,
        )
    shape, every = read_summary(app, at.name), list(app.allocations.values())
    part = part_of(len(every), number)
    latest = every[::-1][max(0, part.first - 1) : part.last]
    allocations = yield from in_steps(latest, read_allocation)
    tasks = yield from _count(app, every)
    explanation = None
    if app.state not in FINAL_STATES and (tasks["waiting"] or tasks["held"]):
        explanation = yield from read_explanation(scheduler, at, app, GROUPS)
    content = {"explanation": explanation, "tasks": tasks, "allocations": allocations, "part": part}
    return frame, shape, content


def _count(app: Application, every: Sequence[Allocation]) -> Generator[None, None, Counter[str]]:
    """Count the tasks of an application by state, a key of `TASKS`."""
    found: Counter[str] = Counter()
    for index, one in enumerate(every):
        if one.hold is not None:
            found["held"] += 1
        elif one.releasing == TerminationType.PREEMPTED_BY_SCHEDULER:
            found["preempted"] += 1
        else:
            found["placeholder" if one.placeholder else "running"] += 1
        if index % STEP == STEP - 1:
            yield
    found["waiting"] = yield from count_waiting(app)
    return found


# -- the course of an application ------------------------------------------------------------------------


@attrs.frozen
class Span:
    """Time that a timeline shows."""

    begin: int
    end: int

    def segment(self, name: str, begin: int, end: int, *, is_last: bool = False) -> Segment:
        """Return a stretch of the timeline, cut at its ends."""
        whole = max(1, self.end - self.begin)
        start = min(max(begin, self.begin), self.end)
        stop = min(max(end, start), self.end)
        return Segment(
            name=name,
            begin=begin,
            end=end,
            x=f"{100 * (start - self.begin) / whole:.2f}%",
            width=f"{max(0.4, 100 * (stop - start) / whole):.2f}%",
            is_last=is_last,
        )


def states_of(shape: shapes.Application, now: int) -> tuple[Span, list[Segment]]:
    """Return the states of an application over its life."""
    log = shape.design_state_log or shape.state_log
    begin = min([shape.submission_time or now, *(one.time for one in log)])
    end = shape.finished_time or max(now, begin)
    span = Span(begin, end)
    segments = []
    for index, one in enumerate(log):
        is_last = index + 1 == len(log)
        until = end if is_last else log[index + 1].time
        segments.append(span.segment(one.application_state, one.time, max(until, one.time), is_last=is_last))
    return span, segments


def task_rows(allocations: Sequence[shapes.Allocation], span: Span) -> list[TaskRow]:
    """Return the rows of tasks, with their stretches of a timeline."""
    return [
        TaskRow(
            allocation=one,
            waiting=span.segment("waiting", one.request_time, one.allocation_time),
            running=span.segment("running", one.allocation_time, span.end),
        )
        for one in allocations
    ]


async def view(call: Call) -> PageContent:
    """Return the page."""
    app_id = call.query("id")
    if not app_id:
        raise RequestRefused(400, "The address names no application: /application?id=ID.")
    key, number = call.query("partition"), wanted_number(call)
    frame, app, content = await call.read(lambda core: _read_page(core, key, app_id, number))
    content |= {"id": app_id, "app": app, "runs": ()}
    if app is not None:
        span, segments = states_of(app, frame.now)
        counts = content["tasks"]
        content |= {
            "tasks": [
                (state, words, counts[state])
                for state, words in TASKS.items()
                if counts[state] or state in ("running", "waiting")
            ],
            "span": span,
            "segments": segments,
            "rows": task_rows(content["allocations"], span),
            "is_over": app.application_state in FINAL_STATES,
        }
    return PageContent(
        template="application.html", title=app_id, section="/applications", frame=frame, content=content
    )
