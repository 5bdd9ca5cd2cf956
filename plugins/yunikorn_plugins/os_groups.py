"""Default user-group resolver: `os`, for applications that are submitted without groups.

    partitions:
      - name: default
        usergroupresolver:
          type: os

A resolver returns the groups, the primary group first, or None for "there is no such user". The core caches
an answer for five minutes and a failure for thirty seconds. Without a resolver every user is the only member
of a group of the same name.
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
        """Look up the password and group databases; a group without a name is returned as a number."""
        try:
            entry = pwd.getpwnam(user)
        except KeyError:
            return None
        others = os.getgrouplist(user, entry.pw_gid)
        return list(dict.fromkeys(group_name(gid) for gid in [entry.pw_gid, *others]))


def group_name(gid: int) -> str:
    """Return the name of a group, or its number as text if it has none."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


@hookimpl
def yunikorn_user_group_resolvers() -> list[type[UserGroupResolver]]:
    """Return the only resolver."""
    return [Os]
