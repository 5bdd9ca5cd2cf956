"""Which names queues, users, groups and rules may have.

Source: facts §1.4 (queues), §1.7 (users and groups in limits and filters), §1.8 (rules), §1.9 (ACLs).
"""

from __future__ import annotations

import re
from collections.abc import Callable

QUEUE = re.compile(r"[a-zA-Z0-9_:#/@-]{1,64}\Z")
USER = re.compile(r"[_a-zA-Z][a-zA-Z0-9:#/_.@-]*\$?\Z")
GROUP = re.compile(r"[_a-zA-Z][a-zA-Z0-9:_.-]*\Z")
ACL_USER = re.compile(r"[_a-zA-Z][a-zA-Z0-9_.@-]*\$?\Z")
ACL_GROUP = re.compile(r"[_a-zA-Z][a-zA-Z0-9_-]*\Z")

ROOT = "root"
RECOVERY = "@recovery@"
"""The queue that the core makes for recovered applications; nobody else may use its name."""

WILDCARD = "*"
EXPRESSION_MARKS = frozenset("^$*+?()[{}|")
"""A single filter entry with one of these is a regular expression, unless it is a legal name."""


def is_queue_name(name: str) -> bool:
    """Whether a queue below root may be called `name` (one level, no dots)."""
    return QUEUE.match(name) is not None


def is_user_name(name: str) -> bool:
    """Whether a limit or a filter may name this user."""
    return USER.match(name) is not None


def is_group_name(name: str) -> bool:
    """Whether a limit or a filter may name this group."""
    return GROUP.match(name) is not None


def is_expression(entry: str, is_name: Callable[[str], bool]) -> bool:
    """Whether a single filter entry is a regular expression; `is_name` accepts the legal names.

    A user may be called `svc$`, a group may not: there the same text is an expression.
    """
    return not EXPRESSION_MARKS.isdisjoint(entry) and not is_name(entry)
