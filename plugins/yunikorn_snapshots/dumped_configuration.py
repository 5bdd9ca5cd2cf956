"""Configurations in state dumps: JSON with the names of Go's fields, as the text of a queues.yaml."""

from __future__ import annotations

from typing import Any

import yaml

from yunikorn_snapshots.dumped_state import DumpedState
from yunikorn_snapshots.snapshot_errors import SnapshotError

FREE = ("Properties", "Guaranteed", "Max", "MaxResources", "ResourceWeights")
"""Mappings whose keys are names, and not fields."""
DEEPEST = 100
"""Largest depth of queues, and of other values in each other."""
OPEN_RULES = [{"name": "provided", "create": True}]
"""Placement rules under which each application gets the queue that it names."""
EVERYONE = "*"


def partitions_of_dump(state: DumpedState) -> list[dict[str, Any]]:
    """Return the partitions of the configuration, with the keys of a queues.yaml."""
    if not state.config.partitions:
        raise SnapshotError(
            "config.Partitions is empty: the scheduler had no configuration when it was dumped"
        )
    partitions = [
        _lowered(one, f"config.Partitions[{i}]", 0) for i, one in enumerate(state.config.partitions)
    ]
    for one in partitions:
        # The resolver needs settings that no dump has; the groups of those who submitted are in the dump.
        one.pop("usergroupresolver", None)
    return partitions


def configuration_text(partitions: list[dict[str, Any]]) -> str:
    """Return the text of a configuration."""
    return yaml.safe_dump({"partitions": partitions}, sort_keys=False, allow_unicode=True)


def opened(partitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a configuration under which applications return into the queues in which they were."""
    found = []
    for one in partitions:
        queues = [{**queue, "submitacl": EVERYONE} for queue in one.get("queues", [])]
        found.append({**one, "placementrules": OPEN_RULES, "queues": queues})
    return found


def _lowered(value: Any, place: str, depth: int) -> Any:
    """Return a value with keys in lower case, without what is empty."""
    if depth > DEEPEST:
        raise SnapshotError(f"{place}: more than {DEEPEST} values in each other")
    if isinstance(value, list):
        return [_lowered(one, f"{place}[{index}]", depth + 1) for index, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, one in value.items():
        inner = one if key in FREE else _lowered(one, f"{place}.{key}", depth + 1)
        if inner not in ("", {}, [], None):
            found[key.lower()] = inner
    return found
