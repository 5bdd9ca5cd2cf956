"""An application as its resource manager submits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import attrs

from yunikorn.api import Submission
from yunikorn.resources import NOTHING, Resource


@attrs.define
class ApplicationSpec:
    """An application as submitted."""

    id: str
    queue_name: str = ""
    user: str = ""
    groups: Sequence[str] = ()
    tags: Mapping[str, str] = attrs.field(factory=dict)
    execution_timeout: int = 0
    """Maximum running time, or placeholder timeout of a gang (ns); 0 for no limit, or the default."""
    gang: Resource = NOTHING
    """Total resources of the gang's tasks; empty without a gang."""
    gang_style: str = ""
    implicit: bool = False
    """True if the core created the application for an ask without one; then only the ask is answered."""

    def view(self) -> Submission:
        """Return the application as submit policies see it, with tags that cannot be modified."""
        return Submission(
            self.id,
            self.user,
            tuple(self.groups),
            self.queue_name,
            MappingProxyType(self.tags),
            gang_total=self.gang,
            gang_style=self.gang_style,
        )
