"""The report as one HTML page with everything in it; opens from disk, asks no network. Needs jinja2."""

from __future__ import annotations

import base64
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.sections import Section, sections
from yunikorn.reporting.words import percent, spell_time
from yunikorn.simulation.report import Report

CAPTIONS = {
    "cluster.png": "What there was, what was used, and what was free but of no use to what waited.",
    "queue-use.png": "What each queue used, with its guarantee and its limit.",
    "queue-lengths.png": "How many tasks waited.",
    "waits.png": "Which part of the applications waited no longer, and was slowed down no more, than that.",
    "nodes.png": "How full each node was.",
}


def render_page(result: FullReport, pictures: dict[str, bytes]) -> str:
    """The page of one run."""
    report = result.report
    return render(
        title=f"Simulation of {report.workload}",
        facts=_facts(report),
        parts=sections(result.figures),
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
    """A page: facts in a list, paragraphs, pictures with their captions, tables. Everything is escaped."""
    # StrictUndefined: a name that the template has and nobody gives is a bug, not an empty place.
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
    apps, tasks = report.applications, report.tasks
    use = [
        f"{partition}: " + ", ".join(f"{name} {percent(share)}" for name, share in shares.items())
        for partition, shares in report.utilisation.items()
    ]
    found = [
        (
            "applications",
            f"{apps.submitted} submitted: {apps.finished} finished, {apps.failed} failed, "
            f"{apps.rejected} rejected, {apps.running} running, {apps.waiting} waiting",
        ),
        (
            "tasks",
            f"{tasks.asked} asked for: {tasks.ended} ended, {tasks.running} running, "
            f"{tasks.waiting} waiting, {tasks.failed + tasks.dropped + tasks.refused} failed, dropped or "
            f"refused; {tasks.restarted} restarts",
        ),
        ("nodes", f"{report.nodes} registered"),
        ("makespan", spell_time(report.times.makespan)),
        ("use", "; ".join(use) or "-"),
        ("decisions", f"{report.decisions}, {report.preemptions} tasks preempted"),
    ]
    found += [
        (reason.reason, f"{reason.count} rejected, first {reason.example}") for reason in report.rejections
    ]
    found += [("note", remark) for remark in report.remarks]
    return found
