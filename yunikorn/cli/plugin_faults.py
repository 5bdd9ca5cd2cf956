"""`yunikorn plugins --faults FILE`: plugin failures in a run of the service, read from its log."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from yunikorn.errors import UsageError, printable
from yunikorn.scheduling.plugin_failures import PluginFailure


def read_faults(lines: Iterable[str]) -> list[PluginFailure]:
    """Return the failures in a log of JSON lines, in the order of their first entries.

    The service logs a failure when it first occurs, and again with its count when the service ends. If the
    service was killed or still runs, only the first occurrence is counted. The counts of several runs in one
    log are added up. Lines that are not JSON, such as output of other programs, are ignored. Raises
    `UsageError` for a file that is not such a log.
    """
    failures: dict[tuple[str, str], PluginFailure] = {}
    counted: dict[tuple[str, str], int] = {}
    has_text = has_entry = False
    for line in lines:
        entry = _entry(line)
        has_text |= bool(line.strip())
        has_entry |= entry is not None
        if entry is None or "plugin" not in entry:
            continue
        plugin, operation = str(entry["plugin"]), str(entry.get("operation", ""))
        times = entry.get("times")
        times = times if isinstance(times, int) else 1
        # Within one run of the service, the count starts at 1 and grows.
        before = 0 if times == 1 else counted.get((plugin, operation), 0)
        more = max(0, times - before)
        counted[plugin, operation] = times
        failure = failures.get((plugin, operation))
        if failure is None:
            failures[plugin, operation] = PluginFailure(plugin, operation, str(entry["message"]), more)
        else:
            failure.count += more
    if has_text and not has_entry:
        raise UsageError(
            "--faults: this is not a log of `yunikorn serve --log-format json`: no line is in that format"
        )
    return list(failures.values())


def _entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and {"area", "level", "message"} <= entry.keys() else None


def faults_as_json(failures: list[PluginFailure]) -> str:
    """Return the failures as one JSON object."""
    data = [
        {
            "plugin": failure.plugin,
            "operation": failure.operation,
            "times": failure.count,
            "first": failure.message,
        }
        for failure in failures
    ]
    return json.dumps({"faults": data}, indent=2, ensure_ascii=False)


def faults_as_text(failures: list[PluginFailure]) -> str:
    """Return the failures by plugin as text, with their counts and first messages."""
    if not failures:
        return "this log contains no plugin failures"
    by_plugin: dict[str, list[PluginFailure]] = {}
    for failure in failures:
        by_plugin.setdefault(failure.plugin, []).append(failure)
    lines = []
    for plugin, own in by_plugin.items():
        lines.append(printable(plugin))
        lines += [f"  {failure.count:>6} x {printable(failure.message)}" for failure in own]
    return "\n".join(lines)
