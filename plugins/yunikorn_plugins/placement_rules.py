"""Default placement rules: `provided`, `user`, `fixed` and `tag`.

    partitions:
      - name: default
        placementrules:
          - name: provided            # the requested queue, below a queue of the user
            create: true
            parent:
              name: user
              create: true
          - name: tag                 # else the queue with the name of the namespace
            value: namespace
            filter:
              type: allow
              groups: [developers]
          - name: fixed               # else this queue
            value: root.default

A rule returns the name of a queue, or None for "no match, try the next rule". The core implements what all
rules have in common: `create`, `filter` and `parent`, access control, and the check for legal names (see
`docs/placement.md`).

A name that starts with `root.`, in any case, is a full path; `root.` alone is root itself. Any other name is
relative to the queue of the parent rule. See "Names" in `docs/placement.md`.
"""

from __future__ import annotations

import attrs

from yunikorn.api import Application, PlacementRule, dotless, hookimpl


def level_or_path(name: str) -> str:
    """Return a full path unchanged, and any other name of a user as one level, without dots."""
    lower = name.lower()
    if lower == "root":
        return "root."
    return name if lower.startswith("root.") else dotless(name)


@attrs.frozen
class Provided(PlacementRule):
    """The queue that the application asked for."""

    name = "provided"

    def place(self, app: Application) -> str | None:
        """Return the requested queue, as one level unless it is a full path; None if there is none."""
        return level_or_path(app.queue_name) if app.queue_name else None


@attrs.frozen
class User(PlacementRule):
    """A queue called like the user."""

    name = "user"

    def place(self, app: Application) -> str | None:
        """Return the name of the user as one level."""
        return dotless(app.user)


@attrs.frozen
class Fixed(PlacementRule):
    """Always the same queue."""

    name = "fixed"
    value: str = attrs.field()
    """Name of the queue; dots separate levels."""

    @value.validator
    def _names_something(self, _: object, value: str) -> None:
        if not value.strip():
            raise ValueError("value must name the queue, for example root.default")

    def place(self, app: Application) -> str | None:
        """Return the configured queue."""
        queue = self.value.strip().lower()
        return "root." if queue == "root" else queue


@attrs.frozen
class Tag(PlacementRule):
    """A queue called like the value of a tag of the application."""

    name = "tag"
    value: str = attrs.field()
    """Name of the tag, in any case."""

    @value.validator
    def _names_something(self, _: object, value: str) -> None:
        if not value.strip():
            raise ValueError("value must name the tag, for example namespace")

    def place(self, app: Application) -> str | None:
        """Return the value of the tag, as one level unless it is a full path; None if the tag is not set."""
        wanted = self.value.strip().lower()
        # An exact match of the name takes precedence; of names that differ in case the first one counts.
        found = app.tags.get(wanted) or next(
            (value for name, value in app.tags.items() if value and name.lower() == wanted), ""
        )
        return level_or_path(found) if found else None


@hookimpl
def yunikorn_placement_rules() -> list[type[PlacementRule]]:
    """Return the rules of YuniKorn."""
    return [Provided, User, Fixed, Tag]
