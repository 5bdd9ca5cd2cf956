"""Base classes of plugins that handle an application as it arrives."""

from __future__ import annotations

from collections.abc import Sequence

from yunikorn.api.base import Plugin
from yunikorn.api.views import Application


class PlacementRule(Plugin):
    """Base class of rules that choose the queue of an application."""

    def place(self, app: Application) -> str | None:
        """Return the name of the queue, or None for "no match, try the next rule".

        A name that starts with `root.`, in any case, is a full path; `root.` alone is root itself. Any
        other name is relative to the queue of the parent rule, or to root. A dot separates levels; use
        `dotless` for text that is a single level.
        """
        raise TypeError(f"{type(self).__name__} has no place(app)")


class UserGroupResolver(Plugin):
    """Base class of resolvers that look up the groups of a user."""

    def groups(self, user: str) -> Sequence[str] | None:
        """Return the groups of a user, the primary group first, or None if there is no such user."""
        raise TypeError(f"{type(self).__name__} has no groups(user)")
