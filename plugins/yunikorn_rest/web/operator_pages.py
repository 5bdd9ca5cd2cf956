"""Pages of the configurations that were in use, with what changed in each, and of decisions of operators."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from yunikorn_history.history_filter import HistoryFilter
from yunikorn_history.page_queries import PageQueries
from yunikorn_history.past_records import PastConfig
from yunikorn_history.queries import HistoryPage, HistoryQueries
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.endpoints import Call
from yunikorn_rest.routes.history_routes import scope_of
from yunikorn_rest.web.page_server import PageContent
from yunikorn_rest.web.past_access import page_of_records, wanted_id

LONGEST = 20_000
"""Number of lines of configurations that are compared."""
CONTEXT = 4
"""Number of equal lines around each change."""
STYLES = {"+": "added", "-": "removed", "@": "place"}


async def config_list_view(call: Call) -> PageContent:
    """Return the page with the configurations that were in use, latest first."""
    read = HistoryQueries.configs
    return await page_of_records(call, "configurations.html", "Configurations", read, HistoryFilter())


async def config_view(call: Call) -> PageContent:
    """Return the page of one configuration: its text, and how it differs from the one before."""
    number = wanted_id(call, "/configuration")

    def read(queries: HistoryQueries, _: HistoryFilter) -> HistoryPage[PastConfig | None]:
        before = PageQueries(queries).config_before(number)
        return HistoryPage((queries.config(number), None if before is None else queries.config(before)))

    def content(found: tuple[PastConfig | None, ...]) -> dict[str, object]:
        config, before = found
        if config is None:
            raise RequestRefused(404, f"The history has no configuration with the number {number}.")
        lines = config.text.splitlines()
        diff = None if before is None else diff_of(before.text.splitlines(), lines)
        return {"config": config, "before": before, "lines": lines, "diff": diff}

    title = f"Configuration {number}"
    return await page_of_records(call, "configuration.html", title, read, HistoryFilter(), content)


def diff_of(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, str]] | None:
    """Return styles and texts of the lines that differ, with some around; None if it would take too long."""
    if len(before) + len(after) > LONGEST:
        return None
    found = list(difflib.unified_diff(before, after, n=CONTEXT, lineterm=""))[2:]
    return [(STYLES.get(line[0], "same"), _place(line) if line[0] == "@" else line[1:]) for line in found]


def _place(line: str) -> str:
    """Return the place of changes in words."""
    return f"line {line.partition('+')[2].split(',')[0].split()[0]}"


async def audit_view(call: Call) -> PageContent:
    """Return the page with the decisions of operators, latest first."""
    asked = {name: call.query(name).strip() for name in ("user", "state")}
    return await page_of_records(
        call,
        "audit.html",
        "Decisions of operators",
        HistoryQueries.audit,
        HistoryFilter(user=asked["user"], state=asked["state"], scope=await scope_of(call)),
        lambda rows: {"rows": rows, "asked": asked},
    )
