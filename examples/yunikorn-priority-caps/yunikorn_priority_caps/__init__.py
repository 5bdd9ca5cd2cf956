"""A submit policy for YuniKorn: highest priorities by group, and limits on single requests.

partitions:
  - name: default
    submitpolicies:
      - name: priority-caps
        caps: {staff: 100, students: 10}
        largest: {gpu: 4}

A request with a higher priority gets the highest that its user may have. A request for more of a resource
than one task may have is rejected. Both hold for every request, also those that come later.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from yunikorn.api import AskSubmission, Submission, SubmitPolicy, hookimpl


@attrs.frozen
class PriorityCaps(SubmitPolicy):
    """Caps priorities of requests by group, and rejects requests that are too large."""

    name = "priority-caps"
    blocking = False
    caps: Mapping[str, int] = attrs.field(factory=dict)
    """Highest priority by group; the highest of the user's groups applies."""
    otherwise: int = 0
    """Highest priority of users in none of these groups."""
    largest: Mapping[str, int] = attrs.field(factory=dict)
    """Largest amount of one request by resource type, in the units of the scheduler."""

    def submit(self, app: Submission) -> None:
        """Leave applications as they are."""

    def submit_ask(self, ask: AskSubmission) -> AskSubmission | str | None:
        """Return the request with the highest priority that its user may have, or a reason."""
        for name, most in self.largest.items():
            if ask.resource.get(name, 0) > most:
                return f"a task may have {most} of {name}, not {ask.resource[name]}"
        cap = max(
            (self.caps[group] for group in ask.app.groups if group in self.caps), default=self.otherwise
        )
        return attrs.evolve(ask, priority=cap) if ask.priority > cap else None


@hookimpl
def yunikorn_submit_policies() -> list[type[SubmitPolicy]]:
    """Return the policy."""
    return [PriorityCaps]
