"""Report as one self-contained HTML page that needs no network. Requires jinja2."""

from __future__ import annotations

import base64
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.sections import Section, sections
from yunikorn.simulation.config_events import describe_reload
from yunikorn.simulation.report import WAITS, Report, limits, outcome, queues, reasons, totals, waits

CAPTIONS = {
    "cluster.png": "Capacity, usage, and free resources that waiting tasks could not use.",
    "queue-use.png": "Usage of each queue, with its guarantee and its limit.",
    "queue-lengths.png": "Number of waiting tasks.",
    "waits.png": "Cumulative distributions of the waits and slowdowns of applications.",
    "nodes.png": "Utilisation of each node.",
}


def render_page(result: FullReport, pictures: dict[str, bytes]) -> str:
    """Render the page of one run."""
    report = result.report
    return render(
        title=f"Simulation of {report.workload} ({outcome(report)})",
        facts=_facts(report),
        parts=[*_first_parts(report), *sections(result.figures), *_last_parts(report)],
        pictures=pictures,
        captions=CAPTIONS,
    )


def render(
    *,
    title: str,
    facts: list[tuple[str, str]],
    parts: list[Section],
    pictures: dict[str, bytes],
    captions: dict[str, str],
    paragraphs: list[str] | None = None,
) -> str:
    """Render a page of facts, paragraphs, pictures with captions, and tables; all texts are escaped."""
    # StrictUndefined makes a missing variable of the template an error instead of an empty string.
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = files("yunikorn.reporting").joinpath("page.html").read_text("utf-8")
    shown = [
        (name, captions[name], base64.b64encode(content).decode("ascii"))
        for name, content in pictures.items()
    ]
    return environment.from_string(template).render(
        title=title, facts=facts, parts=parts, pictures=shown, paragraphs=paragraphs or []
    )


def _facts(report: Report) -> list[tuple[str, str]]:
    notes = [*report.remarks, *report.node_troubles, *map(describe_reload, report.reloads)]
    return [
        *totals(report),
        *(("note", text) for text in notes),
        *(("plugin failure", text) for text in report.plugin_faults),
    ]


def _first_parts(report: Report) -> list[Section]:
    """Return the tables that precede the full report, as on the terminal."""
    title, columns, rows = queues(report)
    found = [Section("Waiting time", ["of", *WAITS], [list(row) for row in waits(report)])]
    return [*found, Section(title, ["queue", *columns], rows)] if rows else found


def _last_parts(report: Report) -> list[Section]:
    """Return the tables of limits and refusals."""
    held = [list(row) for row in limits(report.limit_waits.limits)]
    found = [Section("Limits that blocked requests", ["limit", "blocked in total"], held)] if held else []
    for title, rows in reasons(report):
        found.append(Section(title, ["reason", "count", "example"], [list(row) for row in rows]))
    return found
