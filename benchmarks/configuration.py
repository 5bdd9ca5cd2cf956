"""Configuration of a benchmark, with leaf queues two levels below root, `root.pI.qJ`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.failure import BenchmarkFailure


def leaf_names(queues: int) -> list[str]:
    """Return the full names of `queues` leaf queues, under ceil(sqrt(queues)) parents."""
    parents = math.ceil(math.sqrt(queues))
    return [f"root.p{leaf % parents}.q{leaf}" for leaf in range(queues)]


def queues_yaml(
    queues: int,
    guaranteed: Mapping[str, int],
    *,
    app_sort: str = "fifo",
    queue_sort: str = "fair",
    node_sort: str = "fair",
    predicates: Sequence[str] = (),
    preemption: str = "standard",
    sink: str = "",
    topology: Sequence[str] = (),
    raised: Mapping[int, int] | None = None,
) -> str:
    """Return a configuration in which every leaf has the same guarantee (`vcore` in milli-vcores).

    `sink` is the YAML of an event sink. `raised` adds to the guaranteed memory of single leaves, by number,
    as the change of a reload.
    """
    parents = math.ceil(math.sqrt(queues))
    lines = [f"events: {{sinks: [{{{sink}}}]}}"] if sink else []
    lines += ["partitions:", "  - name: default", f"    nodesortpolicy: {{type: {node_sort}}}"]
    if preemption != "standard":
        lines.append(f"    preemption: {{policy: {preemption}}}")
    if topology:
        lines.append(f"    topology: [{', '.join(topology)}]")
    if predicates:
        lines.append(f"    predicates: [{', '.join(predicates)}]")
    lines += [
        "    queues:",
        "      - name: root",
        "        submitacl: '*'",
        f"        properties: {{queue.sort.policy: {queue_sort}, application.sort.policy: {app_sort}}}",
        "        queues:",
    ]
    for parent in range(parents):
        lines += [f"          - name: p{parent}", "            parent: true", "            queues:"]
        for leaf in range(parent, queues, parents):
            amounts = {**guaranteed, "memory": guaranteed["memory"] + (raised or {}).get(leaf, 0)}
            lines += [
                f"              - name: q{leaf}",
                f"                resources: {{guaranteed: {{{_quantities(amounts)}}}}}",
            ]
    return "\n".join(lines) + "\n"


def _quantities(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: '{value}{'m' if name == 'vcore' else ''}'" for name, value in amounts.items())


def with_keys_of(text: str, file: Path) -> str:
    """Return the configuration `text` with the keys of another file, except its queues.

    Of the other file's first partition, all keys but `name` and `queues` apply, and the properties of its
    root queue. Raises `BenchmarkFailure` for a file that is no configuration.
    """
    given: Any = yaml.safe_load(file.read_text("utf-8"))
    data: Any = yaml.safe_load(text)
    if (
        not isinstance(given, dict)
        or not isinstance(given.get("partitions"), list)
        or not given["partitions"]
    ):
        raise BenchmarkFailure(f"{file} is no queues.yaml: it has no partitions")
    first = given["partitions"][0]
    data |= {key: value for key, value in given.items() if key not in ("partitions", "checksum")}
    here = data["partitions"][0]
    here |= {key: value for key, value in first.items() if key not in ("name", "queues", "limits")}
    roots = [queue for queue in first.get("queues") or () if str(queue.get("name")).lower() == "root"]
    for root in roots:
        here["queues"][0]["properties"] |= root.get("properties") or {}
    return json.dumps(data)
