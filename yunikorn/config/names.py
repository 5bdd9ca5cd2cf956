"""Legal names of queues, users and groups, in limits, filters and ACLs."""

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
"""Queue that the core creates for recovered applications; the name is reserved."""

WILDCARD = "*"
EXPRESSION_MARKS = frozenset("^$*+?()[{}|")
"""Characters that make a single filter entry a regular expression, unless it is a legal name."""


def is_queue_name(name: str) -> bool:
    """Return True if `name` is a legal name of a queue below root (one level, no dots)."""
    return QUEUE.match(name) is not None


def is_user_name(name: str) -> bool:
    """Return True if `name` is a legal user name in limits and filters."""
    return USER.match(name) is not None


def is_group_name(name: str) -> bool:
    """Return True if `name` is a legal group name in limits and filters."""
    return GROUP.match(name) is not None


def is_expression(entry: str, is_name: Callable[[str], bool]) -> bool:
    """Return True if a single filter entry is a regular expression; `is_name` accepts the legal names.

    `svc$` is a legal user name but not a legal group name; as a group the text is an expression.
    """
    return not EXPRESSION_MARKS.isdisjoint(entry) and not is_name(entry)
