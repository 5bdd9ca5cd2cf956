"""Access control lists: who may submit to a queue, or administer it.

The text is `*` for everybody, or `USER,USER GROUP,GROUP`; a leading blank means groups only, and an
empty text means nobody. Source: facts §1.9, §20.7.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs

from yunikorn.config.names import ACL_GROUP, ACL_USER, WILDCARD


@attrs.frozen
class Acl:
    """Who is let in; names are case-sensitive."""

    everybody: bool = False
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Acl:
        """Read an ACL text; raises `ValueError` when it has more than users and groups.

        Blanks around and between the two lists may repeat: 1.9 lets such texts pass its check and then
        fails on them (facts §20.7), here they mean what they look like. Names that no user or group can
        have are left out, as in 1.9; `unknown_releases` tells them.
        """
        fields = text.split()
        if len(fields) > 2:
            raise ValueError(
                f"an ACL is at most one list of users and one of groups, got {len(fields)} lists"
            )
        if not fields:
            return NOBODY
        if len(fields) == 1:
            fields.insert(0 if text[0].isspace() else 1, "")
        users, groups = fields
        if WILDCARD in (users, groups):
            return EVERYBODY
        return cls(False, _named(users, ACL_USER), _named(groups, ACL_GROUP))

    def allows(self, user: str, groups: Iterable[str]) -> bool:
        """Whether this user, or one of these groups, is let in."""
        return self.everybody or user in self.users or any(group in self.groups for group in groups)


EVERYBODY = Acl(everybody=True)
NOBODY = Acl()


def unknown_releases(text: str) -> tuple[str, ...]:
    """The names in an ACL text that no user or group can have, and that are therefore ignored."""
    known = Acl.parse(text)
    if known.everybody:
        return ()
    names = [name for field in text.split() for name in field.split(",") if name]
    return tuple(name for name in names if name not in known.users and name not in known.groups)


def _named(entries: str, pattern: re.Pattern[str]) -> frozenset[str]:
    return frozenset(name for name in entries.split(",") if pattern.match(name))
