"""`yunikorn plugins --failures FILE`: what plugins did wrong in a run of the service, from its log."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from yunikorn.errors import UsageError, printable
from yunikorn.scheduling.plugin_failures import PluginFailure


def read_faults(lines: Iterable[str]) -> list[PluginFailure]:
    """The kinds of failure in a log of JSON lines, in the order of their first entries.

    A failure is logged when it happens first, and once more with its number when the service ends. Of a
    service that was killed, or still runs, only the first is known. Logs of several runs one after another
    are added up. Raises `UsageError` for what is not such a log; single lines that are not JSON, such as what
    other programs wrote between, are passed over.
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
        # Within one run of the service the number grows from 1 on.
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
            "--faults: this is not a log of `yunikorn serve --log-format json`: no line is of it"
        )
    return list(failures.values())


def _entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and {"area", "level", "message"} <= entry.keys() else None


def faults_as_json(failures: list[PluginFailure]) -> str:
    """One JSON object."""
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
    """By plugin: how often, and what it was the first time."""
    if not failures:
        return "no plugin did anything wrong, as far as this log says"
    by_plugin: dict[str, list[PluginFailure]] = {}
    for failure in failures:
        by_plugin.setdefault(failure.plugin, []).append(failure)
    lines = []
    for plugin, own in by_plugin.items():
        lines.append(printable(plugin))
        lines += [f"  {failure.count:>6} x {printable(failure.message)}" for failure in own]
    return "\n".join(lines)
