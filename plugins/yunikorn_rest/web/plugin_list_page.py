"""Page of plugins: faults, time, those in use, and everything that is installed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import attrs

from yunikorn_rest.endpoints import Call
from yunikorn_rest.plugin_shapes import InstalledPlugin, PluginFault, Plugins
from yunikorn_rest.routes.plugin_route import installed_plugins
from yunikorn_rest.web.frame import frame_of
from yunikorn_rest.web.page_server import PageContent

TIMES = 20
"""Number of plugins and operations whose time is shown."""


@attrs.frozen(kw_only=True)
class TimeRow:
    """Time of the core in an operation of a plugin."""

    plugin: str
    operation: str
    seconds: float


def fault_rows(plugins: Plugins) -> list[PluginFault]:
    """Return all distinct failures, most frequent first."""
    found = {
        (one.plugin, one.operation, one.message): one
        for faults in (*(each.faults for each in plugins.plugins), plugins.other_faults)
        for one in faults
    }
    return sorted(found.values(), key=lambda one: (-one.count, one.plugin, one.operation, one.message))


def by_kind(plugins: Sequence[InstalledPlugin]) -> list[tuple[str, list[InstalledPlugin]]]:
    """Return plugins by kind."""
    found: defaultdict[str, list[InstalledPlugin]] = defaultdict(list)
    for one in plugins:
        found[one.kind].append(one)
    return sorted(found.items())


async def view(call: Call) -> PageContent:
    """Return the page."""
    frame = await frame_of(call)
    plugins = await installed_plugins(call)
    metrics = call.context.metrics
    times = {} if metrics is None else metrics.plugin_time
    rows = sorted(
        (
            TimeRow(plugin=plugin, operation=operation, seconds=seconds)
            for (plugin, operation), seconds in times.items()
        ),
        key=lambda row: (-row.seconds, row.plugin, row.operation),
    )
    used = [one for one in plugins.plugins if one.in_use]
    calls = [(one, each) for one in plugins.plugins for each in one.calls]
    return PageContent(
        template="plugins.html",
        title="Plugins",
        section="/plugins",
        frame=frame,
        content={
            "faults": fault_rows(plugins),
            "broken": plugins.broken,
            "times_of": rows[:TIMES],
            "has_times": metrics is not None,
            "calls": calls,
            "used": used,
            "installed": by_kind(plugins.plugins),
            "total": len(plugins.plugins),
        },
    )
