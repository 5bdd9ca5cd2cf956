"""Tasks: pods of ours, each with the state of its scheduling."""

from __future__ import annotations

import logging

import attrs

from yunikorn.interface.messages import TerminationType
from yunikorn.resources import NOTHING, Resource
from yunikorn_kubernetes.names import TAG_DEVICES
from yunikorn_kubernetes.objects import Pod
from yunikorn_kubernetes.shim.shim_states import BOUND, NEW, TERMINATED, UNALLOCATED

_log = logging.getLogger("yunikorn.kubernetes.tasks")


@attrs.frozen
class Shown:
    """Condition of a waiting pod as it was written."""

    reason: str
    message: str
    kinds: tuple[str, ...]
    """Kinds of the reasons in the message, without numbers."""
    at: float
    """Time of the event loop in seconds."""


@attrs.define(eq=False, slots=True)
class Task:
    """A pod with our `schedulerName`; its uid is the key of its ask and of its allocation."""

    pod: Pod
    """Latest version of the pod."""
    app_id: str
    placeholder: bool = False
    group: str = ""
    """Name of its task group; empty for a task outside of gangs."""
    originator: bool = False
    priority: int | None = None
    """Priority of its gang; None for that of the pod."""
    state: str = NEW
    node: str = ""
    """Node that the core chose, or to which the pod is bound."""
    uuid: str = ""
    """Identifier that the core gave the allocation."""
    resource: Resource = NOTHING
    """Resources of the pod as last computed."""
    tags: dict[str, str] = attrs.Factory(dict)
    """Tags as last computed."""
    batch: int = 0
    """Number of the batch with the latest entry of this task; answers to earlier ones are stale."""
    first_batch: int = 0
    """Number of the batch with the first entry: an earlier placement was of an application that is gone."""
    termination: TerminationType = TerminationType.STOPPED_BY_RM
    """Type with which the end of the pod is reported; the one of the core if the core requested the end."""
    deleting: bool = False
    """True once the deletion of the pod was requested by us."""
    is_foreign: bool = False
    """True if the core counts the bound pod as a foreign allocation, because its application has ended."""
    submitted_at: float = 0.0
    """Time of the event loop in seconds when the request was sent to the core."""
    shown: Shown | None = None
    """Latest condition that was written because the pod waits."""

    @property
    def uid(self) -> str:
        """Uid of the pod."""
        return self.pod.metadata.uid

    @property
    def namespace(self) -> str:
        """Namespace of the pod."""
        return self.pod.metadata.namespace

    @property
    def name(self) -> str:
        """Name of the pod."""
        return self.pod.metadata.name

    @property
    def devices(self) -> str:
        """Devices that the core has chosen, or that a bound pod has; empty for none."""
        return self.tags.get(TAG_DEVICES, "")

    @property
    def label(self) -> str:
        """Name of the task in messages."""
        return f"pod {self.namespace}/{self.name} ({self.uid})"

    @property
    def is_bound(self) -> bool:
        """True if the pod has a node."""
        return self.state == BOUND

    @property
    def is_unallocated(self) -> bool:
        """True if the pod waits for a node."""
        return self.state in UNALLOCATED

    @property
    def is_terminated(self) -> bool:
        """True if nothing more is scheduled for the pod."""
        return self.state in TERMINATED

    def on_state_change(self, before: str, reason: str) -> None:
        """Log a change of the state."""
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("%s: %s -> %s %s", self.label, before, self.state, reason)
