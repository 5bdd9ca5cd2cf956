"""The `os` user-group resolver."""

from __future__ import annotations

import grp
import os
import pwd

import pytest

from yunikorn.framework.kinds import RESOLVER
from yunikorn.framework.registry import Registry


@pytest.fixture
def user() -> pwd.struct_passwd:
    """A user and one of its groups known to this machine; not necessarily the user who runs the tests."""
    named = {entry.gr_gid for entry in grp.getgrall()}
    return next(entry for entry in pwd.getpwall() if entry.pw_gid in named)


def test_primary_group_is_first_without_duplicates(registry: Registry, user: pwd.struct_passwd) -> None:
    groups = registry.make(RESOLVER, "os", {}).groups(user.pw_name)
    assert groups[0] == grp.getgrgid(user.pw_gid).gr_name
    assert len(set(groups)) == len(groups)


def test_a_group_without_a_name_stays_a_number(
    registry: Registry, user: pwd.struct_passwd, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = grp.getgrgid(user.pw_gid).gr_name
    monkeypatch.setattr(os, "getgrouplist", lambda name, gid: [4_000_000_001, gid])
    assert registry.make(RESOLVER, "os", {}).groups(user.pw_name) == [named, "4000000001"]


def test_unknown_user_has_no_groups(registry: Registry) -> None:
    assert registry.make(RESOLVER, "os", {}).groups("nobody-is-called-so") is None
