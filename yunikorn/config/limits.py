"""Limits on the usage of users and groups in a queue and below.

An entry names users, groups or both, and limits resources, running applications or both. A queue further
down may only tighten the limits that a queue above sets for the same user or group, or for `*`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import attrs

from yunikorn.config.amounts import Amount, read_amount, smaller
from yunikorn.config.document import quote
from yunikorn.config.names import WILDCARD, is_group_name, is_user_name
from yunikorn.config.reading import Findings, Spot, Table
from yunikorn.config.schema import LimitConfig
from yunikorn.resources import above_zero

if TYPE_CHECKING:
    from yunikorn.config.queues import QueueDraft

KEYS = ("limit", "users", "groups", "maxresources", "maxapplications")
_USER_FORM = "a letter or _, then letters, digits and : # / _ . @ -, and optionally a $ at the end"
_GROUP_FORM = "a letter or _, then letters, digits and : _ . -"

Named = list[tuple[str, Spot]]
T = TypeVar("T")


@attrs.define(eq=False)
class LimitDraft:
    """Limit entry as parsed, with its position in the text."""

    table: Table
    limit: str
    users: Named
    groups: Named
    resources: Amount
    max_applications: int | None
    """None if the value was refused."""
    nameless: bool = False
    """True if a problem with the users or groups was already reported."""

    def build(self) -> LimitConfig:
        """Return the checked limit."""
        return LimitConfig(
            limit=self.limit,
            users=tuple(name for name, _ in self.users),
            groups=tuple(name for name, _ in self.groups),
            max_resources=self.resources.setting(),
            max_applications=self.max_applications or 0,
        )

    def as_written(self) -> tuple[object, ...]:
        """Return the texts of the entry, for comparison with another entry."""
        users, groups = [name for name, _ in self.users], [name for name, _ in self.groups]
        return self.limit, users, groups, self.resources.texts, self.max_applications


def read_limits(table: Table, key: str) -> list[LimitDraft]:
    """Read the entries under `key` of a queue or a partition."""
    drafts = []
    for entry in table.tables(key):
        entry.only(KEYS)
        known = len(entry.findings.problems)
        users, groups = entry.texts("users"), entry.texts("groups")
        drafts.append(
            LimitDraft(
                table=entry,
                limit=entry.text("limit"),
                users=users,
                groups=groups,
                nameless=len(entry.findings.problems) > known,
                resources=read_amount(entry, "maxresources"),
                max_applications=entry.count("maxapplications"),
            )
        )
    return drafts


def check_limits(root: QueueDraft, findings: Findings) -> None:
    """Check each limit of each queue by itself, and against the limits of the queues above."""
    _check_queue(root, findings, is_root=True)
    for kind in ("users", "groups"):
        _check_resources_below(root, kind, {}, findings)
        _check_applications_below(root, kind, {}, findings)


# -- single entries -----------------------------------------------------------------------------------


def _check_queue(queue: QueueDraft, findings: Findings, *, is_root: bool = False) -> None:
    users: set[str] = set()
    groups: set[str] = set()
    for draft in queue.limits:
        _check_entry(draft, findings)
        _check_names(draft.users, "user", users, findings)
        _check_names(draft.groups, "group", groups, findings)
        _check_against_queue(draft, queue, findings, is_root)
    for child in queue.queues:
        if child.limits or child.queues:
            _check_queue(child, findings)


def _check_entry(draft: LimitDraft, findings: Findings) -> None:
    here = draft.table.here()
    if not draft.users and not draft.groups and not draft.nameless:
        findings.problem(here, "the limit applies to no user or group: set users or groups")
    amount = draft.resources
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
    for name in draft.resources.over(queue.max.value):
        text = f"{draft.resources.value[name]} {name} is more than the max of queue {queue.path}"
        findings.problem(draft.resources.at(name), f"{text}, {queue.max.value[name]}")


# -- against the queues above -------------------------------------------------------------------------


def _names(draft: LimitDraft, kind: str) -> Named:
    return draft.users if kind == "users" else draft.groups


def _above(name: str, carried: Mapping[str, T]) -> tuple[str, T] | None:
    """Return the name and value of the setting above that binds `name`: its own, else that of `*`."""
    if name in carried:
        return name, carried[name]
    return (WILDCARD, carried[WILDCARD]) if WILDCARD in carried else None


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


def _check_resources_below(
    queue: QueueDraft, kind: str, carried: dict[str, Mapping[str, int]], findings: Findings
) -> None:
    own: dict[str, Mapping[str, int]] = {}
    for draft in queue.limits:
        if draft.resources.faulty:
            continue
        for name, _ in _names(draft, kind):
            own[name] = draft.resources.value
            bound = _above(name, carried)
            if bound is None:
                continue
            whose, allowed = bound
            for resource in draft.resources.over(allowed):
                text = (
                    f"{draft.resources.value[resource]} {resource} for {_title(kind, name)} is more than the"
                )
                text += f" {allowed[resource]} that a queue above allows {_title(kind, whose)}"
                findings.problem(draft.resources.at(resource), text)
            if whose == name:
                own[name] = smaller(draft.resources.value, allowed)
    with _carrying(carried, own):
        for child in queue.queues:
            if child.limits or child.queues:
                _check_resources_below(child, kind, carried, findings)


def _check_applications_below(
    queue: QueueDraft, kind: str, carried: dict[str, int], findings: Findings
) -> None:
    own: dict[str, int] = {}
    for draft in queue.limits:
        wanted = draft.max_applications
        if wanted is None:
            continue
        for name, _ in _names(draft, kind):
            own[name] = wanted
            bound = _above(name, carried)
            if bound is None or bound[1] == 0 or 0 < wanted <= bound[1]:
                continue
            text = f"a queue above allows {_title(kind, bound[0])} {bound[1]} applications: here"
            text += f" {_title(kind, name)} must have maxapplications from 1 to {bound[1]}, got {wanted}"
            findings.problem(draft.table.spot("maxapplications"), text)
    with _carrying(carried, own):
        for child in queue.queues:
            if child.limits or child.queues:
                _check_applications_below(child, kind, carried, findings)


def _title(kind: str, name: str) -> str:
    if name == WILDCARD:
        return f"all {kind}"
    return f"{kind[:-1]} {quote(name)}"
