"""`yunikorn plugins --faults FILE`: what plugins did wrong in a run of the service, from its log."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from yunikorn.errors import UsageError, printable
from yunikorn.scheduling.faults import Fault


def read_faults(lines: Iterable[str]) -> list[Fault]:
    """The kinds of misdeed in a log of JSON lines, in the order of their first entries.

    A misdeed is logged when it happens first, and once more with its number when the service ends. Of a
    service that was killed, or still runs, only the first is known. Logs of several runs one after another
    are added up. Raises `UsageError` for what is not such a log; single lines that are not JSON, such as what
    other programs wrote between, are passed over.
    """
    faults: dict[tuple[str, str], Fault] = {}
    counted: dict[tuple[str, str], int] = {}
    has_text = has_entry = False
    for line in lines:
        entry = _entry(line)
        has_text |= bool(line.strip())
        has_entry |= entry is not None
        if entry is None or "plugin" not in entry:
            continue
        plugin, deed = str(entry["plugin"]), str(entry.get("deed", ""))
        times = entry.get("times")
        times = times if isinstance(times, int) else 1
        # Within one run of the service the number grows from 1 on.
        before = 0 if times == 1 else counted.get((plugin, deed), 0)
        more = max(0, times - before)
        counted[plugin, deed] = times
        fault = faults.get((plugin, deed))
        if fault is None:
            faults[plugin, deed] = Fault(plugin, deed, str(entry["message"]), more)
        else:
            fault.count += more
    if has_text and not has_entry:
        raise UsageError(
            "--faults: this is not a log of `yunikorn serve --log-format json`: no line is of it"
        )
    return list(faults.values())


def _entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and {"area", "level", "message"} <= entry.keys() else None


def faults_as_json(faults: list[Fault]) -> str:
    """One JSON object."""
    data = [
        {"plugin": fault.plugin, "deed": fault.deed, "times": fault.count, "first": fault.message}
        for fault in faults
    ]
    return json.dumps({"faults": data}, indent=2, ensure_ascii=False)


def faults_as_text(faults: list[Fault]) -> str:
    """By plugin: how often, and what it was the first time."""
    if not faults:
        return "no plugin did anything wrong, as far as this log says"
    by_plugin: dict[str, list[Fault]] = {}
    for fault in faults:
        by_plugin.setdefault(fault.plugin, []).append(fault)
    lines = []
    for plugin, own in by_plugin.items():
        lines.append(printable(plugin))
        lines += [f"  {fault.count:>6} x {printable(fault.message)}" for fault in own]
    return "\n".join(lines)
