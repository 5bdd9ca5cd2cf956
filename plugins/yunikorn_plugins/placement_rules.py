"""Placement rules: which queue an application goes to.

    partitions:
      - name: default
        placementrules:
          - name: provided            # the queue it asked for, below a queue of its user
            create: true
            parent:
              name: user
              create: true
          - name: tag                 # else the queue called like its namespace
            value: namespace
            filter:
              type: allow
              groups: [developers]
          - name: fixed               # else this one
            value: root.default

A rule answers one question: what is the queue called? It returns a name, or None for "no match, try the
next rule". What every rule has in common is not its business: `create`, `filter` and `parent` belong to
the core, as do access control and the check that the name is legal (docs/placement.md).

The name is complete when it starts with `root.`, in any case; `root.` alone is root itself. Any other
name goes below the parent rule's queue. See "Names" in docs/placement.md.
"""

from __future__ import annotations

import attrs

from yunikorn.api import Application, PlacementRule, dotless, hookimpl


def level_or_path(name: str) -> str:
    """A name that users wrote: a complete one stays, any other is one level and loses its dots."""
    lower = name.lower()
    if lower == "root":
        return "root."
    return name if lower.startswith("root.") else dotless(name)


@attrs.frozen
class Provided(PlacementRule):
    """The queue that the application asked for."""

    name = "provided"

    def place(self, app: Application) -> str | None:
        """Its queue name, as one level unless it is complete; no match when it asked for none."""
        return level_or_path(app.queue_name) if app.queue_name else None


@attrs.frozen
class User(PlacementRule):
    """A queue called like the user."""

    name = "user"

    def place(self, app: Application) -> str | None:
        """The user's name as one level."""
        return dotless(app.user)


@attrs.frozen
class Fixed(PlacementRule):
    """Always the same queue."""

    name = "fixed"
    value: str = attrs.field()
    """The queue; dots separate levels."""

    @value.validator
    def _names_something(self, _: object, value: str) -> None:
        if not value.strip():
            raise ValueError("value must name the queue, for example root.default")

    def place(self, app: Application) -> str | None:
        """The value, whoever asks."""
        queue = self.value.strip().lower()
        return "root." if queue == "root" else queue


@attrs.frozen
class Tag(PlacementRule):
    """A queue called like the value of a tag of the application."""

    name = "tag"
    value: str = attrs.field()
    """The tag's name, in any case."""

    @value.validator
    def _names_something(self, _: object, value: str) -> None:
        if not value.strip():
            raise ValueError("value must name the tag, for example namespace")

    def place(self, app: Application) -> str | None:
        """The tag's value, as one level unless it is complete; no match when the tag is not set."""
        wanted = self.value.strip().lower()
        # A tag written exactly so comes before those that differ in case; of these the first one given.
        found = app.tags.get(wanted) or next(
            (value for name, value in app.tags.items() if value and name.lower() == wanted), ""
        )
        return level_or_path(found) if found else None


@hookimpl
def yunikorn_placement_rules() -> list[type[PlacementRule]]:
    """The rules of the seed."""
    return [Provided, User, Fixed, Tag]
