"""Configuration of a benchmark, with leaf queues two levels below root, `root.pI.qJ`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


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
    sink: str = "",
    raised: Mapping[int, int] | None = None,
) -> str:
    """Return a configuration in which every leaf has the same guarantee (`vcore` in milli-vcores).

    `sink` is the YAML of an event sink. `raised` adds to the guaranteed memory of single leaves, by number,
    as the change of a reload.
    """
    parents = math.ceil(math.sqrt(queues))
    lines = [f"events: {{sinks: [{{{sink}}}]}}"] if sink else []
    lines += ["partitions:", "  - name: default", f"    nodesortpolicy: {{type: {node_sort}}}"]
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
