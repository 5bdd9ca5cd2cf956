"""Statistics of plugins in the log of a service: `yunikorn serve --stats TIME`."""

from __future__ import annotations

import asyncio
import logging

import attrs

from yunikorn.framework.plugin_statistics import PluginStatistics

_log = logging.getLogger("yunikorn.plugins")


def log_statistics(statistics: PluginStatistics) -> None:
    """Log one entry for each method of a plugin that was called; JSON entries have the numbers as well."""
    for use in statistics:
        _log.info("%s", use, extra={"statistics": attrs.asdict(use)})


async def log_repeatedly(statistics: PluginStatistics, interval: float) -> None:
    """Log the statistics every `interval` seconds, until the task is cancelled."""
    while True:
        await asyncio.sleep(interval)
        log_statistics(statistics)
