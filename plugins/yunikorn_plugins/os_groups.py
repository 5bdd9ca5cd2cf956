"""User-group resolvers: which groups a user is in, when an application came without any.

    partitions:
      - name: default
        usergroupresolver:
          type: os

A resolver returns the groups, the primary one first, or None for "there is no such user". It is asked
seldom: the core remembers an answer for five minutes, and a failure for thirty seconds. Without a
resolver every user is the only member of a group of the same name. Source: facts §15.
"""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Sequence

import attrs

from yunikorn.api import UserGroupResolver, hookimpl


@attrs.frozen
class Os(UserGroupResolver):
    """The groups that the operating system knows of."""

    name = "os"

    def groups(self, user: str) -> Sequence[str] | None:
        """From the password and group databases; a group without a name stays a number."""
        try:
            entry = pwd.getpwnam(user)
        except KeyError:
            return None
        others = os.getgrouplist(user, entry.pw_gid)
        return list(dict.fromkeys(group_name(gid) for gid in [entry.pw_gid, *others]))


def group_name(gid: int) -> str:
    """The group's name, or its number as text when it has none."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


@hookimpl
def yunikorn_user_group_resolvers() -> list[type[UserGroupResolver]]:
    """Only `os`: the absence of a resolver needs none."""
    return [Os]
