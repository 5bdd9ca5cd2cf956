"""Filters of placement rules, by user and group.

A filter without entries matches all users (`allow`) or none (`deny`). A single entry is a literal name
if it is a legal name; names of users may end in `$`, names of groups may not. Any other single entry with one
of the characters ``^$*+?()[{}|`` is a regular expression (RE2 syntax) that is searched anywhere in the name.
Several entries are always literal names. See "Filters" in `docs/placement.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from yunikorn.config.acl import is_expression, is_group_name, is_user_name
from yunikorn.config.keys import key
from yunikorn.config.values import NAMES, choice


@attrs.frozen
class FilterConfig:
    """Filter that matches users by name or group."""

    allow: bool = key(choice({"allow": True, "deny": False}), True, name="type")
    users: tuple[str, ...] = key(NAMES, ())
    groups: tuple[str, ...] = key(NAMES, ())
    _is_user: Callable[[str], bool] = attrs.field(init=False, eq=False, repr=False)
    _is_group: Callable[[str], bool] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_is_user", _matcher(self.users, is_user_name))
        object.__setattr__(self, "_is_group", _matcher(self.groups, is_group_name))

    def allows(self, user: str, groups: Iterable[str]) -> bool:
        """Return True if the rule applies to a user with these groups."""
        if not self.users and not self.groups:
            return self.allow
        if self._is_user(user) or any(self._is_group(group) for group in groups):
            return self.allow
        return not self.allow


def expression_fault(entry: str) -> str | None:
    """Return the error of `entry` as a regular expression (RE2 syntax), or None if it is valid."""
    try:
        compile_expression(entry)
    except ValueError as error:
        return str(error)
    return None


def _matcher(entries: tuple[str, ...], is_name: Callable[[str], bool]) -> Callable[[str], bool]:
    if len(entries) == 1 and is_expression(entries[0], is_name):
        search = compile_expression(entries[0]).search
        return lambda name: search(name) is not None
    return frozenset(entry for entry in entries if is_name(entry)).__contains__


def compile_expression(entry: str) -> Any:
    """Return a compiled expression (RE2 syntax). Raises `ValueError` with the reason."""
    # Imported here because the library slows down the start, and only filters with expressions need it.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(entry, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise ValueError(reason.decode(errors="replace") if isinstance(reason, bytes) else reason) from None
