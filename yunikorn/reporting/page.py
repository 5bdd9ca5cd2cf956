"""Report as one self-contained HTML page that needs no network. Requires jinja2."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.provenance import Provenance
from yunikorn.reporting.tables import (
    Table,
    figure_tables,
    limit_tables,
    main_tables,
    outcome,
    reason_tables,
    totals,
)
from yunikorn.simulation.report import Report
from yunikorn.simulation.workload import describe_reload


def render_page(result: FullReport, pictures: dict[str, bytes], captions: Mapping[str, str]) -> str:
    """Render the page of one run."""
    report = result.report
    return render(
        title=f"Simulation of {report.workload} ({outcome(report)})",
        facts=_facts(report),
        tables=[
            *main_tables(report),
            *figure_tables(result.figures),
            *limit_tables(report),
            *reason_tables(report),
        ],
        pictures=pictures,
        captions=captions,
        provenance=[("Provenance", result.provenance)],
    )


def render(
    *,
    title: str,
    facts: list[tuple[str, str]],
    tables: Sequence[Table],
    pictures: dict[str, bytes],
    captions: Mapping[str, str],
    paragraphs: Sequence[str] = (),
    provenance: Sequence[tuple[str, Provenance | None]] = (),
) -> str:
    """Render a page of facts, paragraphs, pictures with captions, and tables; all texts are escaped.

    Each `provenance` is a block with a title at the end of the page.
    """
    # StrictUndefined makes a missing variable of the template an error instead of an empty string.
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = files("yunikorn.reporting").joinpath("page.html").read_text("utf-8")
    shown = [
        (name, captions[name], base64.b64encode(content).decode("ascii"))
        for name, content in pictures.items()
    ]
    blocks = [(name, one.rows(), one.config_text) for name, one in provenance if one is not None]
    return environment.from_string(template).render(
        title=title, facts=facts, tables=tables, pictures=shown, paragraphs=paragraphs, provenance=blocks
    )


def _facts(report: Report) -> list[tuple[str, str]]:
    notes = [*report.remarks, *report.node_troubles, *map(describe_reload, report.reloads)]
    return [
        *totals(report),
        *(("note", text) for text in notes),
        *(("plugin failure", text) for text in report.plugin_faults),
    ]
