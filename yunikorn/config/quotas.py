"""Consistency checks of the guarantees, quotas and maximum applications in a queue tree.

The max of a queue may not exceed a max above it. The guarantees of the queues below must fit into the
guarantee and the max of their parent. The max of siblings together may exceed that of their parent.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

import attrs

from yunikorn.config.amounts import smaller
from yunikorn.config.queues import QueueDraft
from yunikorn.config.reading import Findings
from yunikorn.resources import NOTHING, sum_of

Bound = Mapping[str, int]
_NONE: Set[str] = frozenset()


@attrs.define(eq=False)
class _Owed:
    """Guarantees of a queue and those below, and the resource types already reported as exceeded below."""

    amount: Mapping[str, int]
    told: Set[str]


def check_resources(root: QueueDraft, findings: Findings) -> None:
    """Check the resources of all queues against those above and below them."""
    _check_queue(root, findings, {})


def _check_queue(queue: QueueDraft, findings: Findings, above: Bound) -> _Owed:
    own, guaranteed = queue.max.value, queue.guaranteed
    if own:
        _check_max(queue, findings, above)
    bound = smaller(own, above) if own and above else own or above
    owed = [_check_queue(child, findings, bound) for child in queue.queues]
    told = _check_sum(queue, owed, bound, findings) if owed else _NONE
    if any(guaranteed.value.values()):
        return _Owed(guaranteed.value, told)
    return _Owed(sum_of(each.amount for each in owed) if owed else NOTHING, told)


def _check_max(queue: QueueDraft, findings: Findings, above: Bound) -> None:
    own, guaranteed = queue.max.value, queue.guaranteed
    for name in guaranteed.over(own):
        text = f"the guaranteed {guaranteed.value[name]} is more than the max of the queue, {own[name]}"
        findings.problem(guaranteed.at(name), text)
    for name in queue.max.over(above):
        text = f"the max {own[name]} is more than the {above[name]} that the queues above allow"
        findings.problem(queue.max.at(name), text)


def _check_sum(queue: QueueDraft, owed: list[_Owed], bound: Bound, findings: Findings) -> Set[str]:
    told: set[str] = set()
    for name, total in sum_of(each.amount for each in owed).items():
        guaranteed = queue.guaranteed.value.get(name, total)
        if total > guaranteed:
            text = f"the queues below are guaranteed {total} in total, more than this queue, {guaranteed}"
            findings.problem(queue.guaranteed.at(name), text)
        elif name in bound and total > bound[name]:
            # Report each mistake once, not again for every queue above the reported one.
            if not any(name in each.told and each.amount.get(name, 0) > bound[name] for each in owed):
                text = f"the queues below are guaranteed {total} {name} in total,"
                text += f" more than the max, {bound[name]}"
                findings.problem(queue.max.at(name) if name in queue.max.value else queue.table.here(), text)
            told.add(name)
    return told


def check_applications(queue: QueueDraft, findings: Findings) -> None:
    """Check that queues below one with maxapplications have one too, and none that is larger."""
    most = queue.max_applications
    for child in queue.queues:
        wanted = child.max_applications
        if most and wanted is not None and not 0 < wanted <= most:
            text = f"queue {queue.path} may run {most} applications: expected 1 to {most} here, got {wanted}"
            findings.problem(child.table.spot("maxapplications"), text)
        if child.queues:
            check_applications(child, findings)
