"""Whether queues stand at the same place in all partitions. Source: the core design seed, decision 8."""

from __future__ import annotations

from yunikorn.config.queues import QueueDraft
from yunikorn.config.reading import Findings

KEY = "samehierarchy"


def check_hierarchy(roots: list[QueueDraft], enforced: bool, findings: Findings) -> None:
    """Each queue name has one place: in all partitions, and in each of them.

    A queue may be missing in a partition. Not enforced, only a name whose places in two partitions have
    nothing in common is told, as a warning.
    """
    if len(roots) < 2 and not enforced:
        return
    places: dict[str, list[set[str]]] = {}
    for number, root in enumerate(roots):
        for queue in root.walk():
            if queue is root:
                continue
            seen = places.setdefault(queue.name, [set() for _ in roots])
            elsewhere = sorted(path for paths in seen for path in paths if path != queue.path)
            others = [paths for index, paths in enumerate(seen) if index != number and paths]
            spot = queue.table.spot("name")
            text = f"queue '{queue.name}' has another place already: {', '.join(elsewhere)}"
            if enforced and elsewhere:
                findings.problem(spot, f"{text} ({KEY} is true)")
            elif not enforced and any(queue.path not in paths for paths in others):
                findings.warning(
                    spot, f"{text}; partitions should share one hierarchy ({KEY}: true enforces it)"
                )
            seen[number].add(queue.path)
