"""Checks of guarantees, quotas, maximum applications and limits in a queue tree.

The max of a queue may not exceed a max above it. The guarantees of the queues below must fit into the
guarantee and the max of their parent. The max of siblings together may exceed that of their parent.

A limit names users, groups or both, and limits resources, running applications or both. A queue further down
may only tighten the limits that a queue above sets for the same user or group, or for `*`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import TypeVar

import attrs

from yunikorn.config.acl import WILDCARD, is_group_name, is_user_name
from yunikorn.config.document import quote
from yunikorn.config.queue_configs import LimitDraft, Named, QueueDraft
from yunikorn.config.yaml_reading import Findings, plain_data
from yunikorn.quantities import spell_amount, spell_quantity
from yunikorn.resources import NOTHING, above_zero, smaller_of, sum_of

T = TypeVar("T")
Bound = Mapping[str, int]
_NONE: Set[str] = frozenset()


@attrs.define(eq=False)
class _Owed:
    """Guarantees of a queue and those below, and the resource types already reported as exceeded below."""

    amount: Mapping[str, int]
    reported: Set[str]


def check_resources(root: QueueDraft, findings: Findings) -> None:
    """Check the resources of all queues against those above and below them."""
    _check_resources(root, findings, {})


def _check_resources(queue: QueueDraft, findings: Findings, above: Bound) -> _Owed:
    own, guaranteed = queue.max.value, queue.guaranteed
    if own:
        _check_max(queue, findings, above)
    bound = smaller_of(own, above) if own and above else own or above
    owed = [_check_resources(child, findings, bound) for child in queue.queues]
    reported = _check_sum(queue, owed, bound, findings) if owed else _NONE
    if any(guaranteed.value.values()):
        return _Owed(guaranteed.value, reported)
    return _Owed(sum_of(each.amount for each in owed) if owed else NOTHING, reported)


def _check_max(queue: QueueDraft, findings: Findings, above: Bound) -> None:
    own, guaranteed = queue.max.value, queue.guaranteed
    for name in guaranteed.over(own):
        text = (
            f"the guaranteed {spell_amount(name, guaranteed.value[name])} is more than the max of the queue,"
        )
        text += f" {spell_quantity(name, own[name])}"
        findings.problem(guaranteed.at(name), text)
    for name in queue.max.over(above):
        text = f"the max {spell_amount(name, own[name])} is more than the"
        text += f" {spell_quantity(name, above[name])} that the queues above allow"
        findings.problem(queue.max.at(name), text)


def _check_sum(queue: QueueDraft, owed: list[_Owed], bound: Bound, findings: Findings) -> Set[str]:
    reported: set[str] = set()
    for name, total in sum_of(each.amount for each in owed).items():
        guaranteed = queue.guaranteed.value.get(name, total)
        if total > guaranteed:
            text = (
                f"the queues below are guaranteed {spell_amount(name, total)} in total, more than this queue,"
            )
            text += f" {spell_quantity(name, guaranteed)}"
            findings.problem(queue.guaranteed.at(name), text)
        elif name in bound and total > bound[name]:
            # Report each mistake once, not again for every queue above the reported one.
            if not any(name in each.reported and each.amount.get(name, 0) > bound[name] for each in owed):
                text = f"the queues below are guaranteed {spell_amount(name, total)} in total,"
                text += f" more than the max, {spell_quantity(name, bound[name])}"
                findings.problem(queue.max.at(name) if name in queue.max.value else queue.table.here(), text)
            reported.add(name)
    return reported


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


# -- limits -------------------------------------------------------------------------------------------

_USER_FORM = "a letter or _, then letters, digits and : # / _ . @ -, and optionally a $ at the end"
_GROUP_FORM = "a letter or _, then letters, digits and : _ . -"


def check_limits(root: QueueDraft, findings: Findings) -> None:
    """Check each limit of each queue by itself, and against the limits of the queues above."""
    _check_limits(root, findings, is_root=True)
    for kind in ("users", "groups"):
        _check_below(root, kind, {}, _resources_of, _bind_resources)
        _check_below(root, kind, {}, lambda draft: draft.max_applications, _bind_applications)


def _check_limits(queue: QueueDraft, findings: Findings, *, is_root: bool = False) -> None:
    users: set[str] = set()
    groups: set[str] = set()
    for draft in queue.limits:
        _check_entry(draft, findings)
        _check_names(draft.users, "user", users, findings)
        _check_names(draft.groups, "group", groups, findings)
        _check_against_queue(draft, queue, findings, is_root)
    for child in queue.queues:
        if child.limits or child.queues:
            _check_limits(child, findings)


def _check_entry(draft: LimitDraft, findings: Findings) -> None:
    here = draft.table.here()
    if not draft.users and not draft.groups:
        # Users and groups that are no lists of texts were already reported.
        written = [draft.table.get("users"), draft.table.get("groups")]
        if all(node is None or plain_data(node) == [] for node in written):
            findings.problem(here, "the limit applies to no user or group: set users or groups")
    amount = draft.max_resources
    if amount.faulty:
        return
    if amount.names_types and not above_zero(amount.value):
        findings.problem(amount.spot, "at least one resource must be above 0")
    elif not amount.names_types and draft.max_applications == 0:
        findings.problem(here, "the limit has no effect: set maxresources or maxapplications")


def _check_names(names: Named, what: str, seen: set[str], findings: Findings) -> None:
    is_name, form = (is_user_name, _USER_FORM) if what == "user" else (is_group_name, _GROUP_FORM)
    for name, spot in names:
        if name != WILDCARD and not is_name(name):
            findings.problem(spot, f"{quote(name)} is not a valid {what} name: expected * or {form}")
        elif name in seen:
            findings.problem(spot, f"{what} {quote(name)} is already limited in this queue")
        elif WILDCARD in seen:
            findings.problem(spot, f"{what} {quote(name)} comes after *: put * last")
        elif name == WILDCARD and what == "group" and not seen:
            findings.problem(spot, "* cannot be the only group: add another group before it")
        seen.add(name)


def _check_against_queue(draft: LimitDraft, queue: QueueDraft, findings: Findings, is_root: bool) -> None:
    wanted, allowed = draft.max_applications, queue.max_applications
    if wanted and allowed and wanted > allowed:
        text = f"{wanted} is more than the {allowed} applications that queue {queue.path} may run"
        findings.problem(draft.table.spot("maxapplications"), text)
    if is_root:
        return
    for name in draft.max_resources.over(queue.max.value):
        text = f"{spell_amount(name, draft.max_resources.value[name])} is more than the max of queue"
        text += f" {queue.path}, {spell_quantity(name, queue.max.value[name])}"
        findings.problem(draft.max_resources.at(name), text)


def _check_below(
    queue: QueueDraft,
    kind: str,
    carried: dict[str, T],
    value_of: Callable[[LimitDraft], T | None],
    bind: Callable[[LimitDraft, str, str, str, T], T],
) -> None:
    """Check the limits of a queue and of all below; `carried` has those of the queues above, by name.

    `bind` reports a limit that exceeds the one above, and returns the value for the queues below. A limit
    without a value was refused.
    """
    own: dict[str, T] = {}
    for draft in queue.limits:
        value = value_of(draft)
        if value is None:
            continue
        for name, _ in draft.users if kind == "users" else draft.groups:
            # The limit above for `*` binds names without a limit of their own.
            whose = name if name in carried else WILDCARD
            own[name] = bind(draft, kind, name, whose, carried[whose]) if whose in carried else value
    with _carrying(carried, own):
        for child in queue.queues:
            if child.limits or child.queues:
                _check_below(child, kind, carried, value_of, bind)


@contextmanager
def _carrying(carried: dict[str, T], own: Mapping[str, T]) -> Iterator[None]:
    """Add a queue's own settings to `carried` while the queues below it are checked.

    The settings are added and removed in place. A copy for each queue below would be expensive, because a
    queue above may name thousands of users.
    """
    before = {name: carried[name] for name in own if name in carried}
    carried.update(own)
    yield
    for name in own:
        if name not in before:
            del carried[name]
    carried.update(before)


def _resources_of(draft: LimitDraft) -> Mapping[str, int] | None:
    return None if draft.max_resources.faulty else draft.max_resources.value


def _bind_resources(
    draft: LimitDraft, kind: str, name: str, whose: str, allowed: Mapping[str, int]
) -> Mapping[str, int]:
    amount = draft.max_resources
    for resource in amount.over(allowed):
        text = f"{spell_amount(resource, amount.value[resource])} for {_title(kind, name)} is more than the"
        text += (
            f" {spell_quantity(resource, allowed[resource])} that a queue above allows {_title(kind, whose)}"
        )
        draft.table.findings.problem(amount.at(resource), text)
    return smaller_of(amount.value, allowed) if whose == name else amount.value


def _bind_applications(draft: LimitDraft, kind: str, name: str, whose: str, allowed: int) -> int:
    wanted = draft.max_applications or 0
    if allowed and not 0 < wanted <= allowed:
        text = f"a queue above allows {_title(kind, whose)} {allowed} applications: here"
        text += f" {_title(kind, name)} must have maxapplications from 1 to {allowed}, got {wanted}"
        draft.table.findings.problem(draft.table.spot("maxapplications"), text)
    return wanted


def _title(kind: str, name: str) -> str:
    if name == WILDCARD:
        return f"all {kind}"
    return f"{kind[:-1]} {quote(name)}"
