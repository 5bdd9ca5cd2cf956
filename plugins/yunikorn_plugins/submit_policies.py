"""Default submit policy: `default-tags`, for tags that every application must have.

    partitions:
      - name: default
        submitpolicies:
          - name: default-tags
            tags:                     # added where an application does not have them
              team: none
            require: [project]        # an application without one of these is rejected

A submit policy returns None to leave an application as it is, a changed copy, or the reason for a rejection.
"""

from __future__ import annotations

import attrs

from yunikorn.api import Submission, SubmitPolicy, hookimpl


@attrs.frozen
class DefaultTags(SubmitPolicy):
    """Adds missing tags to applications, and rejects applications without required tags."""

    name = "default-tags"
    blocking = False
    tags: dict[str, str] = attrs.field(factory=dict)
    """Value of each tag for applications that do not have it."""
    require: tuple[str, ...] = ()
    """Tags that an application must have, with a value that is not empty."""

    def submit(self, app: Submission) -> Submission | str | None:
        """Return the application with the missing tags, or the names of the required tags it lacks."""
        lacking = [name for name in self.require if not app.tags.get(name) and not self.tags.get(name)]
        if lacking:
            return f"it lacks the tags {', '.join(lacking)}"
        if all(name in app.tags for name in self.tags):
            return None
        return attrs.evolve(app, tags={**self.tags, **app.tags})


@hookimpl
def yunikorn_submit_policies() -> list[type[SubmitPolicy]]:
    """Return the only policy."""
    return [DefaultTags]
