"""Applications: pods with one application id, as the core sees them."""

from __future__ import annotations

import logging

import attrs

from yunikorn.interface.messages import AddApplicationRequest
from yunikorn_kubernetes.shim.shim_states import FAILED, FAILING, NEW, REJECTED
from yunikorn_kubernetes.shim.tasks import Task
from yunikorn_kubernetes.translation.placeholders import PlaceholderOwner
from yunikorn_kubernetes.translation.task_groups import HARD, AnnotatedGang

_log = logging.getLogger("yunikorn.kubernetes.applications")


@attrs.define(eq=False, slots=True)
class KubernetesApplication:
    """An application with the tasks that have not ended."""

    request: AddApplicationRequest
    """The submission, made from the first pod."""
    owner: PlaceholderOwner
    """The application as its placeholders show it."""
    gang: AnnotatedGang | None = None
    """Gang that the first pod describes; None without one, or if it is invalid."""
    has_run: bool = False
    """True if members of the gang ran and ended before this process began: the rest are ordinary requests."""
    state: str = NEW
    batch: int = 0
    """Number of the batch with the submission."""
    tasks: dict[str, Task] = attrs.Factory(dict)
    """Tasks by uid, in the order of their arrival."""
    ever_bound: int = 0
    """Number of placeholders that were bound, including those that have ended since."""
    controllers: set[str] = attrs.Factory(set)
    """Uids of the controllers that have made its pods, "" for pods without one."""
    originator: str = ""
    """Uid of the pod that owns the placeholders: the first pod of the application."""
    deleted: list[Task] = attrs.Factory(list)
    """Placeholders that were deleted, by a person as it seems, while the gang collected room."""
    reason: str = ""
    """Reason of a failure."""
    core_state: str = ""
    """State in the core as last reported; the core completes only applications that had requests."""

    @property
    def id(self) -> str:
        """Id of the application."""
        return self.request.application_id

    @property
    def label(self) -> str:
        """Name of the application in messages."""
        return f"application {self.id}"

    @property
    def has_placeholders(self) -> bool:
        """True if the gang of the application reserves its room by placeholder pods."""
        return self.gang is not None and self.gang.has_placeholders and not self.has_run

    @property
    def is_hard(self) -> bool:
        """True if the application fails when its gang finds no room in time."""
        return self.gang is not None and self.gang.style == HARD

    @property
    def is_failing(self) -> bool:
        """True if the core accepts no requests for the application any more."""
        return self.state in (FAILING, FAILED, REJECTED)

    @property
    def has_placeholder_tasks(self) -> bool:
        """True if placeholders are left."""
        return any(task.placeholder for task in self.tasks.values())

    def placeholders(self) -> list[Task]:
        """Return the tasks that are placeholders."""
        return [task for task in self.tasks.values() if task.placeholder]

    def on_state_change(self, before: str, reason: str) -> None:
        """Log a change of the state."""
        _log.debug("%s: %s -> %s %s", self.label, before, self.state, reason)
