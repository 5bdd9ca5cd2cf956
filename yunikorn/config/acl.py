"""Access control lists, for submission and administration, and legal names of queues, users and groups.

The text of a list is `*` for all users, or `USER,USER GROUP,GROUP`. A leading blank means that there are only
groups. An empty text allows no user. See `docs/decisions/archive/0013`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import attrs

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


@attrs.frozen
class Acl:
    """Parsed access control list; names are case-sensitive."""

    everybody: bool = False
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Acl:
        """Parse an ACL. Raises `ValueError` if the text has more than a list of users and a list of groups.

        Repeated blanks are ignored; YuniKorn 1.9 accepts such texts in its check and then fails on them.
        Names that are not legal for users or groups are left out, as in 1.9; `illegal_names` returns them.
        """
        fields = text.split()
        if len(fields) > 2:
            raise ValueError(
                f"an ACL has at most one list of users and one list of groups, got {len(fields)} lists"
            )
        if not fields:
            return NOBODY
        if len(fields) == 1:
            fields.insert(0 if text[0].isspace() else 1, "")
        users, groups = fields
        if WILDCARD in (users, groups):
            return EVERYBODY
        return cls(False, _named(users, ACL_USER), _named(groups, ACL_GROUP))

    @property
    def names_anyone(self) -> bool:
        """True if there is anyone whom the list allows."""
        return self.everybody or bool(self.users or self.groups)

    def allows(self, user: str, groups: Iterable[str]) -> bool:
        """Return True if the user or one of the groups is allowed."""
        return self.everybody or user in self.users or not self.groups.isdisjoint(groups)


EVERYBODY = Acl(everybody=True)
NOBODY = Acl()


def illegal_names(text: str, parsed: Acl | None = None) -> tuple[str, ...]:
    """Return the names in an ACL that are not legal for users or groups, and are therefore ignored."""
    known = parsed or Acl.parse(text)
    if known.everybody:
        return ()
    names = [name for field in text.split() for name in field.split(",") if name]
    return tuple(name for name in names if name not in known.users and name not in known.groups)


def _named(entries: str, pattern: re.Pattern[str]) -> frozenset[str]:
    return frozenset(name for name in entries.split(",") if pattern.match(name))
