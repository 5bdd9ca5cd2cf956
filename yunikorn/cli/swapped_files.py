"""Recognition of a configuration where a workload is expected, and the other way round."""

from __future__ import annotations

import re

from yunikorn.cli.foreign_workloads import describe_foreign, foreign_format
from yunikorn.errors import UsageError
from yunikorn.simulation.source import InputError

LOOKED_AT = 1 << 16
"""Number of characters at the beginning of a text that are looked at."""
_CONFIG = re.compile(r"^[\"'{ ]{0,4}partitions[\"']?\s*:", re.MULTILINE)
_WORKLOAD = re.compile(r"^(?:[\"'{ ]{0,4}(?:applications|generate|nodes)[\"']?\s*:|;)", re.MULTILINE)
NOT_A_CONFIG = "is a workload, not a queues.yaml"
ADVICE = "were --config and --workload swapped?"


def is_config(text: str) -> bool:
    """Return True if a text looks like a queues.yaml, and not like a workload."""
    start = text[:LOOKED_AT]
    return bool(_CONFIG.search(start)) and not _WORKLOAD.search(start)


def is_workload(text: str) -> bool:
    """Return True if a text looks like a scenario or a trace, and not like a queues.yaml."""
    start = text[:LOOKED_AT]
    return bool(_WORKLOAD.search(start)) and not _CONFIG.search(start)


def check_config_text(text: str, name: str) -> None:
    """Raise `UsageError` if a text that should be a queues.yaml is a workload."""
    if is_workload(text):
        raise UsageError(f"{name}: {NOT_A_CONFIG}: {ADVICE}")


def explained(error: InputError, text: str, name: str, *, has_config: bool = True) -> InputError | UsageError:
    """Return a better error for a workload that is a queues.yaml or in a format that is not read.

    Other errors stay as they are. `has_config` says that the command reads a queues.yaml, too.
    """
    if is_config(text):
        return UsageError(f"{name}: is a queues.yaml, not a workload{f': {ADVICE}' if has_config else ''}")
    foreign = foreign_format(text[:LOOKED_AT])
    return UsageError(f"{name}: {describe_foreign(foreign)}") if foreign else error
